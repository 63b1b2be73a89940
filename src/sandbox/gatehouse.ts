/** The service of the sandbox: a process of its own, on a database that ends with it. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface Gatehouse {
  readonly issuer: string;
  /** What leads `npm run operator` to this service, as GATEHOUSE_CONFIG. */
  readonly settingsFile: string;
  /** Runs one operator command. @returns what it prints with `--json`. */
  operator(...args: readonly string[]): Promise<Record<string, unknown>>;
  /** Resolves when the service ended, by itself or because it was closed, with its last words. */
  readonly ended: Promise<string>;
  /** Ends the service and removes everything it kept. */
  close(): Promise<void>;
}

/** Milliseconds. The first start makes the database; a slow disk may take its time. */
const PATIENCE = 60_000;
/** Milliseconds. Longer than the service itself takes for requests in flight. */
const FAREWELL = 10_000;

/**
 * @param stop ends the start, and operator commands, half-way.
 * @throws Error with what the service said, when it does not start.
 */
export async function startGatehouse(parts: {
  readonly port: number;
  /** Where the warehouse API will be. */
  readonly apiUrl: string;
  readonly stop: AbortSignal;
}): Promise<Gatehouse> {
  const { port, apiUrl, stop } = parts;
  const directory = await mkdtemp(path.join(tmpdir(), 'gatehouse-sandbox-'));
  const issuer = new URL(`http://localhost:${port}`).origin;
  const settingsFile = path.join(directory, 'gatehouse.yaml');
  const settings = {
    issuer,
    // The first port is the public one, the other is nobody's business here.
    server: { port, operators_port: 0 },
    storage: { data_directory: path.join(directory, 'data') },
    api: {
      graphql_url: apiUrl,
      example_query: '{ caller { username } organizations { name warehouses { name rights } } }',
    },
    demo: true,
    log: { level: 'warn' },
  };
  // JSON is YAML.
  await writeFile(settingsFile, `${JSON.stringify(settings, null, 2)}\n`);

  // Nothing of this environment: a DATABASE_URL of the operator must not lead the sandbox there.
  const options = { env: { GATEHOUSE_CONFIG: settingsFile } };
  const child = spawn(process.execPath, [source('main.ts')], {
    ...options,
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text) => {
    said = `${said}${text}`.slice(-4_000);
  });
  let hasEnded = false;
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', () => resolve(said.trim()));
  }).finally(() => {
    hasEnded = true;
  });

  async function close(): Promise<void> {
    child.kill('SIGTERM');
    const cut = setTimeout(() => child.kill('SIGKILL'), FAREWELL);
    await ended;
    clearTimeout(cut);
    await rm(directory, { recursive: true, force: true });
  }

  const deadline = performance.now() + PATIENCE;
  while (!(await answers(issuer))) {
    if (hasEnded || stop.aborted || performance.now() > deadline) {
      await close();
      throw new Error(`Gatehouse did not start:\n${said}`);
    }
    await delay(100);
  }

  return {
    issuer,
    settingsFile,
    async operator(...args) {
      const command = [source('operator/main.ts'), ...args, '--json'];
      const { stdout } = await run(process.execPath, command, { ...options, signal: stop });
      return JSON.parse(stdout);
    },
    ended,
    close,
  };
}

const run = promisify(execFile);

const source = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url));

async function answers(issuer: string): Promise<boolean> {
  try {
    const { ok } = await fetch(new URL('/.well-known/oauth-authorization-server', issuer));
    return ok;
  } catch {
    return false;
  }
}
