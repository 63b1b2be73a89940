/** nginx and Caddy as configured in deploy/proxies, in front of two nodes. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { NodeAddress } from '../many-nodes/running-node.ts';
import type { Opened } from '../support/opened.ts';
import { freePort, startProgram } from '../support/programs.ts';
import { type Requirement, required } from '../support/requirements.ts';
import { caddy, nginx, writeCertificate } from '../support/reverse-proxies.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const FOLDER = path.join(import.meta.dirname, '../../deploy/proxies');

/** Returns the configuration that operators copy, without its first line, a comment. */
export const shippedConfiguration = (name: string): string =>
  readFileSync(path.join(FOLDER, name), 'utf8').replace(/^#.*\n/, '');

/** Two addresses of this machine stand for two machines, so that the nodes' ports are the same. */
const HOSTS = ['127.0.0.1', '127.0.0.2'] as const;

/** The local values that replace those of the documented configuration. */
interface Place {
  readonly folder: string;
  readonly certificate: string;
  readonly key: string;
  /** The public ports of the proxy. */
  readonly ports: { readonly tls: number; readonly plain: number };
  readonly nodes: readonly [NodeAddress, NodeAddress];
}

export interface DocumentedProxy extends Requirement {
  readonly name: string;
  /** The settings below `server` that the docs require for this proxy. */
  readonly serverSettings: object;
  /** Milliseconds after a node was killed in which POSTs that the node refused may fail. */
  readonly failsRefusedPostsForMs: number;
  /** Milliseconds to wait after a node is ready, before the next one is stopped. */
  readonly pauseBetweenNodesMs: number;
  /** The nodes are processes of one machine: their address is the same, and their ports differ. */
  readonly isOneMachine?: true;
  /** Writes the configuration. @returns the arguments to start the proxy with. */
  configure(place: Place): readonly string[];
}

const documentedNginx: DocumentedProxy = {
  ...nginx,
  serverSettings: {},
  failsRefusedPostsForMs: 0,
  pauseBetweenNodesMs: 0,
  configure({ folder, certificate, key, ports: { tls, plain }, nodes: [one, another] }) {
    const block = replaced(shippedConfiguration('nginx.conf'), {
      'server 127.0.0.1:3000 max_fails=0;': [one, another]
        .map(({ host, port }) => `server ${host}:${port} max_fails=0;`)
        .join('\n  '),
      'listen 80;': `listen 127.0.0.1:${plain};`,
      'listen 443 ssl;': `listen 127.0.0.1:${tls} ssl;`,
      '/etc/letsencrypt/live/auth.example.com/fullchain.pem': certificate,
      '/etc/letsencrypt/live/auth.example.com/privkey.pem': key,
      'auth.example.com': 'localhost',
    });
    return nginx.write(folder, block);
  },
};

const [, caddyMinor = '8'] =
  /2\.(\d+)/.exec(caddy.program ? execFileSync(caddy.program, ['version']).toString() : '') ?? [];
const REQUEST_BUFFERS = /\n *request_buffers .*/;
/** Before 2.8, Caddy loses the body of a POST that a node refused, more often if Caddy buffers requests. */
const buffersRequests = Number(caddyMinor) >= 8;

const documentedCaddy: DocumentedProxy = {
  ...caddy,
  serverSettings: { shutdown_delay: '3s' },
  // Allow two intervals of Caddy's health check, which runs once a second.
  failsRefusedPostsForMs: buffersRequests ? 0 : 2_000,
  // Wait: if Caddy notices the stop of one node before the start of the other one, it refuses POSTs.
  pauseBetweenNodesMs: buffersRequests ? 0 : 2_000,
  configure({ folder, certificate, key, ports: { tls, plain }, nodes: [one, another] }) {
    const block = replaced(supportedConfiguration('Caddyfile'), {
      '10.0.0.1:3000': `${one.host}:${one.port}`,
      '10.0.0.2:3000': `${another.host}:${another.port}`,
      'health_port 3001': `health_port ${one.operatorsPort}`,
      'auth.example.com {': `https://localhost:${tls} {\n  tls ${certificate} ${key}`,
    });
    return caddy.write(folder, globalOptions({ tls, plain }) + block);
  },
};

/** Returns the configuration with what this version of Caddy supports. */
function supportedConfiguration(name: string): string {
  const shipped = shippedConfiguration(name);
  expect(shipped).to.match(REQUEST_BUFFERS);
  return buffersRequests ? shipped : shipped.replace(REQUEST_BUFFERS, '');
}

const globalOptions = ({ tls, plain }: Place['ports']): string =>
  `{\n  admin off\n  http_port ${plain}\n  https_port ${tls}\n}\n`;

export const caddyOnOneMachine: DocumentedProxy = {
  ...documentedCaddy,
  name: 'Caddy, as processes of one machine',
  serverSettings: { ...documentedCaddy.serverSettings, host: 'localhost' },
  isOneMachine: true,
  configure({ folder, certificate, key, ports, nodes: [one, another] }) {
    const block = replaced(supportedConfiguration('one-machine.Caddyfile'), {
      '127.0.0.1:3000': `127.0.0.1:${one.port}`,
      '[::1]:3010': `[::1]:${another.port}`,
      'health_port 3001': `health_port ${one.operatorsPort}`,
      'http://[::1]:3001': `http://[::1]:${one.operatorsPort}`,
      '127.0.0.1:3002': `127.0.0.1:${another.operatorsPort}`,
      'auth.example.com {': `https://localhost:${ports.tls} {\n  tls ${certificate} ${key}`,
    });
    return caddy.write(folder, globalOptions(ports) + block);
  },
};

export const DOCUMENTED_PROXIES: readonly DocumentedProxy[] = [documentedNginx, documentedCaddy];

/** A running proxy, whose nodes may not be running yet. */
export interface RunningProxy {
  readonly issuer: string;
  /** The plain HTTP origin, which redirects to the issuer. */
  readonly plainOrigin: string;
  readonly nodes: readonly [NodeAddress, NodeAddress];
  /** The file with the certificate of the proxy. */
  readonly certificate: string;
}

/** Starts the proxy and adds it to `opened`. Resolves when it accepts connections. */
export async function startProxy(opened: Opened, proxy: DocumentedProxy): Promise<RunningProxy> {
  const folder = temporaryDirectory('proxy');
  const [certificate, key] = writeCertificate(folder);
  const ports = { tls: await freePort(), plain: await freePort() };
  const [port, operatorsPort] = [await freePort(), await freePort()];
  const [one, another] = HOSTS;
  const nodes = [
    { host: one, port, operatorsPort },
    proxy.isOneMachine
      ? { host: one, port: await freePort(), operatorsPort: await freePort() }
      : { host: another, port, operatorsPort },
  ] as const;
  const args = proxy.configure({ folder, certificate, key, ports, nodes });
  const environment = { PATH: process.env.PATH, HOME: folder };
  const running = await opened.add(
    Promise.resolve(startProgram(required(proxy), args, { cwd: folder, environment })),
    (started) => started.end('SIGTERM'),
  );
  const plainOrigin = `http://localhost:${ports.plain}`;
  await running.waitUntil(() => fetch(plainOrigin, { redirect: 'manual' }));
  return { issuer: `https://localhost:${ports.tls}`, plainOrigin, nodes, certificate };
}

/** @throws AssertionError if the text lacks a part to replace. */
export function replaced(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((done, [from, to]) => {
    expect(done, 'the configuration').to.include(from);
    return done.replaceAll(from, to);
  }, text);
}
