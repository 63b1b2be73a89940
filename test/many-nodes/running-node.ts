/** Nodes as operators run them: real processes with shared stores and one issuer. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Environment } from '../operator/run-operator.ts';
import { readinessOf } from '../support/metrics.ts';
import { freePort, type Program, startProgram } from '../support/programs.ts';
import type { TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** The program of a node of this checkout. */
export const MAIN = new URL('../../src/main.ts', import.meta.url).pathname;

export interface RunningNode extends Program {
  readonly port: number;
  readonly operatorsUrl: string;
  /** The variables for the node and for the operator command. */
  readonly environment: Environment;
  /** Replaces the node's settings file. The node reads it at the next reload. */
  writeSettings(yaml: string): void;
  readyz(): Promise<{ status: number; body: Readonly<Record<string, unknown>> }>;
}

interface NodeOptions {
  /** A service whose stores and keys the node shares; without it, `environment` must name them. */
  readonly sharing?: TestService;
  /** The `src/main.ts` to run. Default: that of this checkout. */
  readonly main?: string;
  /** The issuer. Default: the node's own port on localhost. */
  readonly issuer?: string;
  readonly settings?: string;
  readonly environment?: Environment;
  /** The address of the node, to restart a node at the same address. Default: free ports of localhost. */
  readonly address?: NodeAddress;
  /** A file to which the log is written instead of to `output()`. */
  readonly logFile?: string;
}

export interface NodeAddress {
  /** The host on which the node listens, localhost by default. `settings` must contain it as well. */
  readonly host: string;
  readonly port: number;
  readonly operatorsPort: number;
}

/** Starts a node and waits until it is ready. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const node = await launchNode(options);
  await node.waitUntil(async () => {
    if ((await node.readyz()).status !== 200) throw new Error('not ready yet');
  });
  return node;
}

/** Starts a node without waiting until it answers. */
export async function launchNode(options: NodeOptions): Promise<RunningNode> {
  const { sharing, main = MAIN, issuer, settings = '{}', environment: more = {}, address, logFile } = options;
  const { host, port, operatorsPort } = address ?? {
    host: 'localhost',
    port: await freePort(),
    operatorsPort: await freePort(),
  };
  const file = path.join(temporaryDirectory('node'), 'gatehouse.yaml');
  const writeSettings = (yaml: string): void => writeFileSync(file, yaml);
  writeSettings(settings);
  const environment = {
    PATH: process.env.PATH ?? '',
    GATEHOUSE_CONFIG: file,
    GATEHOUSE_ISSUER: issuer ?? `http://localhost:${port}`,
    PORT: String(port),
    GATEHOUSE_OPERATORS_PORT: String(operatorsPort),
    ...(sharing && environmentOf(sharing, more)),
    ...more,
  };
  const program = startProgram(process.execPath, [main], {
    cwd: path.dirname(main),
    environment,
    ...(logFile !== undefined && { output: { file: logFile } }),
  });
  const operatorsUrl = `http://${host}:${operatorsPort}`;
  return { ...program, port, operatorsUrl, environment, writeSettings, readyz: () => readinessOf({ operatorsUrl }) };
}

/** @param more may name files of keys, which then replace the keys. */
function environmentOf({ settings: { storage, secrets } }: TestService, more: Environment) {
  return {
    DATABASE_URL: storage.databaseUrl ?? '',
    REDIS_URL: storage.redisUrl ?? '',
    ...(more.GATEHOUSE_COOKIE_KEYS_FILE === undefined && { GATEHOUSE_COOKIE_KEYS: secrets.cookieKeys.join(',') }),
    ...(more.GATEHOUSE_TOKEN_KEYS_FILE === undefined && { GATEHOUSE_TOKEN_KEYS: secrets.tokenKeys.join(',') }),
  };
}
