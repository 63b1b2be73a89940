/** Runs the sandbox's own service: a separate process with a temporary database. */
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';

export interface Gatehouse {
  readonly issuer: string;
  /** The settings file: with it as GATEHOUSE_CONFIG, `npm run operator` acts on this service. */
  readonly settingsFile: string;
  /** Runs one operator command. @returns its output with `--json`. */
  operator(...args: readonly string[]): Promise<Record<string, unknown>>;
  /** Resolves with the last output when the service has ended, by itself or by `close`. */
  readonly ended: Promise<string>;
  /** Ends the service and deletes its data. */
  close(): Promise<void>;
}

/** The first start creates the database, which takes long on a slow disk or a busy machine. */
const START_TIMEOUT_MS = 300_000;
/** This is longer than the service itself waits for requests in progress. */
const CLOSE_TIMEOUT_MS = 10_000;

/**
 * @param stop aborts the start and running operator commands.
 * @throws Error with the output of the service if it does not start.
 */
export async function startGatehouse(parts: {
  readonly port: number;
  /** The address at which the warehouse API will listen. */
  readonly apiUrl: string;
  readonly stop: AbortSignal;
  /** The operator's settings file, of which `brand` and `rights` are used. */
  readonly lookOf?: string | undefined;
}): Promise<Gatehouse> {
  const { port, apiUrl, stop, lookOf = source('config/gatehouse.yaml') } = parts;
  const look = await operatorsLook(lookOf);
  const directory = await mkdtemp(path.join(tmpdir(), 'gatehouse-sandbox-'));
  const issuer = new URL(`http://localhost:${port}`).origin;
  const settingsFile = path.join(directory, 'gatehouse.yaml');
  const settings = {
    issuer,
    // Of the two ports, the first is public; the sandbox does not use the operators' port.
    server: { port, operators_port: 0 },
    storage: { data_directory: path.join(directory, 'data') },
    api: {
      graphql_url: apiUrl,
      example_query: '{ organizations { name warehouses { name rights stock { article count } } } }',
    },
    ...look,
    demo: true,
    log: { level: 'warn' },
  };
  // Write JSON: it is valid YAML.
  await writeFile(settingsFile, `${JSON.stringify(settings, null, 2)}\n`);

  // Pass no environment: with the operator's DATABASE_URL the sandbox would use that database.
  const options = { env: { GATEHOUSE_CONFIG: settingsFile } };
  const child = spawn(process.execPath, [source('src/main.ts')], { ...options, stdio: 'pipe' });
  child.stdout.pipe(process.stdout);
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
    const cut = setTimeout(() => child.kill('SIGKILL'), CLOSE_TIMEOUT_MS);
    await ended;
    clearTimeout(cut);
    await rm(directory, { recursive: true, force: true });
  }

  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(issuer))) {
    const isLate = performance.now() > deadline;
    if (hasEnded || stop.aborted || isLate) {
      await close();
      const limit = isLate ? ` within ${START_TIMEOUT_MS / 1_000} seconds` : '';
      throw new Error(`Gatehouse did not start${limit}:\n${said}`);
    }
    await delay(100);
  }

  return {
    issuer,
    settingsFile,
    async operator(...args) {
      const command = [source('src/operator/main.ts'), ...args, '--json'];
      const { stdout } = await run(process.execPath, command, { ...options, signal: stop });
      return JSON.parse(stdout);
    },
    ended,
    close,
  };
}

/** Returns the operator's settings for brand and rights, so that the operator can try them here. */
async function operatorsLook(file: string): Promise<object> {
  const { brand, rights } = parse(await readFile(file, 'utf8')) ?? {};
  const logos = ['logo', 'logo_dark'].filter((name) => brand?.[name] !== undefined);
  for (const name of logos) brand[name] = path.resolve(path.dirname(file), brand[name]);
  return { ...(brand && { brand }), ...(rights && { rights }) };
}

const run = promisify(execFile);

const source = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));

async function answers(issuer: string): Promise<boolean> {
  try {
    const url = new URL('/.well-known/oauth-authorization-server', issuer);
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}
