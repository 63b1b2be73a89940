/** The reverse proxies of docs/operations.md as they stand there: the doctor finds nothing behind them. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { environmentOf, nodeBehind, trusting } from '../operator/behind-proxy.ts';
import { examine } from '../operator/doctor-findings.ts';
import { createOpened } from '../support/opened.ts';
import { findProgram, freePort, runsAsRoot, startProgram } from '../support/programs.ts';
import { describeOn, openssl, postgresServer, redisServer } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const DOCS = readFileSync(path.join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
const blockOf = (language: string): string =>
  new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(DOCS)?.[1] ?? '';

interface Place {
  readonly folder: string;
  readonly certificate: string;
  readonly key: string;
  /** Of the two nodes, of the public address, and of plain HTTP. */
  readonly ports: readonly [number, number, number, number];
}

const replaced = (text: string, replacements: Readonly<Record<string, string>>): string =>
  Object.entries(replacements).reduce((done, [from, to]) => {
    expect(done, 'the docs').to.include(from);
    return done.replaceAll(from, to);
  }, text);

const PROXIES: readonly {
  name: string;
  program: string | undefined;
  /** Writes its configuration. @returns the arguments that it is started with. */
  configure(place: Place): readonly string[];
}[] = [
  {
    name: 'nginx',
    program: findProgram('nginx', ['/usr/sbin']),
    configure({ folder, certificate, key, ports: [one, another, tls, plain] }) {
      const block = replaced(blockOf('nginx'), {
        '10.0.0.1:3000': `127.0.0.1:${one}`,
        '10.0.0.2:3000': `127.0.0.1:${another}`,
        'listen 80;': `listen 127.0.0.1:${plain};`,
        'listen 443 ssl;': `listen 127.0.0.1:${tls} ssl;`,
        '/etc/letsencrypt/live/auth.example.com/fullchain.pem': certificate,
        '/etc/letsencrypt/live/auth.example.com/privkey.pem': key,
        'auth.example.com': 'localhost',
      });
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
        .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
        .join(' ');
      // Its processes leave root, which owns the folder.
      const user = runsAsRoot ? 'user root;' : '';
      const main = `${user} daemon off; pid ${folder}/pid; error_log stderr; events {}
http { access_log off; ${temporary}
${block}}`;
      writeFileSync(path.join(folder, 'nginx.conf'), main);
      return ['-p', folder, '-e', 'stderr', '-c', path.join(folder, 'nginx.conf')];
    },
  },
  {
    name: 'caddy',
    program: findProgram('caddy'),
    configure({ folder, certificate, key, ports: [one, another, tls, plain] }) {
      const block = replaced(blockOf('caddy'), {
        '10.0.0.1:3000': `127.0.0.1:${one}`,
        '10.0.0.2:3000': `127.0.0.1:${another}`,
        'auth.example.com {': `https://localhost:${tls} {\n  tls ${certificate} ${key}`,
      });
      // As the docs say of a Caddy before 2.7.
      const [, minor] = /2\.(\d+)/.exec(execFileSync('caddy', ['version']).toString()) ?? [];
      const understood =
        Number(minor) < 7 ? block.replace('request_buffers 64KiB', 'buffer_requests') : block;
      const global = `{\n  admin off\n  http_port ${plain}\n  https_port ${tls}\n}\n`;
      writeFileSync(path.join(folder, 'Caddyfile'), global + understood);
      return ['run', '--adapter', 'caddyfile', '--config', path.join(folder, 'Caddyfile')];
    },
  },
];

for (const { name, program, configure } of PROXIES) {
  const proxy = { program, remedy: `${name} (Debian package ${name})` };
  describeOn([postgresServer, redisServer, openssl, proxy], `behind ${name}`, () => {
    const opened = createOpened();
    after(opened.closeAll);

    it('as it stands in the docs the doctor finds nothing wrong, and plain HTTP leads to TLS', async () => {
      const folder = temporaryDirectory('proxy');
      const [certificate, key] = [path.join(folder, 'host.pem'), path.join(folder, 'host.key')];
      execFileSync(
        openssl.program ?? '',
        [
          ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate],
          ...['-days', '60', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
        ],
        { stdio: 'pipe' },
      );
      const [tls, plain] = [await freePort(), await freePort()];
      const issuer = `https://localhost:${tls}`;
      const node = await nodeBehind(opened, issuer);
      const another = await nodeBehind(opened, issuer, { beside: node });
      const ports = [node, another].map(({ settings }) => settings.server.port) as [number, number];
      const args = configure({ folder, certificate, key, ports: [...ports, tls, plain] });
      const environment = { PATH: process.env.PATH, HOME: folder };
      const running = await opened.add(
        Promise.resolve(startProgram(program ?? '', args, { cwd: folder, environment })),
        (started) => started.end('SIGTERM'),
      );
      await trusting(certificate, async () => {
        await running.waitUntil(() => fetch(issuer));
        const { troubles, output, exitCode } = await examine(environmentOf(node));
        expect({ troubles, exitCode }, output).to.deep.equal({ troubles: [], exitCode: 0 });
      });
      const { status, headers } = await fetch(`http://localhost:${plain}/login?a=b`, {
        redirect: 'manual',
      });
      expect(status).to.be.within(301, 308);
      expect(headers.get('location')).to.match(/^https:\/\/localhost(:\d+)?\/login\?a=b$/);
    });
  });
}
