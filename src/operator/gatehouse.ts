/**
 * `gatehouse …`: runs an operator command as the user of the local service, with the environment of that service. If
 * the caller's environment names the stores, as in a container, the command runs as the caller in that environment.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { environmentOfProcess, namesADeployment, type Variables } from '../config/environment.ts';
import { readAssignments, readEnvironmentFile } from './environment-file.ts';

const COMMAND = path.join(import.meta.dirname, 'main.ts');
const UNITS = 'gatehouse@*.service';
/** The instance whose properties are read if `list-units` finds no instance. All instances have the same properties. */
const ANY_INSTANCE = 'gatehouse@3001.service';

const AS_ROOT = 'Run it as root: sudo gatehouse …';
const NO_ENVIRONMENT =
  'Create the file: see the example deploy/systemd/environment (docs/operations/deploy.md lists what else is needed).';

interface Unit {
  /** The name of the service's user; empty for root. */
  readonly user: string;
  readonly environment: Variables;
}

const unit = namesADeployment(environmentOfProcess) ? undefined : findUnit();
if (unit === undefined) await import('./main.ts');
else runIn(unit);

/** Returns undefined if systemd does not run here, or if it has no such unit. */
function findUnit(): Unit | undefined {
  const loaded = systemctl('list-units', '--all', '--plain', '--no-legend', UNITS);
  if (loaded === undefined) return undefined;
  const names = loaded.split('\n').map((line) => line.trim().split(/\s/)[0] ?? '');
  const port = environmentOfProcess.GATEHOUSE_OPERATORS_PORT;
  const name = port ? `gatehouse@${port}.service` : (names.find(Boolean) ?? ANY_INSTANCE);
  const shown = systemctl('show', name) ?? '';
  const values = (key: string): string[] =>
    [...shown.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);
  if (values('LoadState')[0] !== 'loaded') return undefined;
  const environment = readAssignments(values('Environment').join(' '));
  for (const line of values('EnvironmentFiles')) {
    // A line looks like `/etc/gatehouse/environment (ignore_errors=no)`.
    const [, file = '', mayBeMissing] = /^(.*) \(ignore_errors=(?:(yes)|no)\)$/.exec(line) ?? [];
    Object.assign(environment, readEnvironmentFile(contentOf(file, mayBeMissing !== undefined)));
  }
  return { user: values('User')[0] ?? '', environment };
}

function systemctl(...words: string[]): string | undefined {
  try {
    return execFileSync('systemctl', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return undefined;
  }
}

function contentOf(file: string, mayBeMissing: boolean): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (mayBeMissing && code === 'ENOENT') return '';
    const message = `The environment of the service, ${file}, cannot be read (${code}).`;
    return fail(message, code === 'ENOENT' ? NO_ENVIRONMENT : AS_ROOT);
  }
}

/** Replaces this process with the command, so that the command itself receives signals and sets the exit code. */
function runIn({ user, environment }: Unit): void {
  const caller = userInfo().username;
  if (user !== '' && user !== caller) {
    if (process.getuid?.() !== 0) {
      fail(`The service runs as ${user}, but you are ${caller}.`, AS_ROOT);
    }
    const group = groupOf(user);
    // Node's types lack this function, which exists on POSIX systems.
    (process as NodeJS.Process & { initgroups(user: string, group: number): void }).initgroups(user, group);
    process.setgid?.(group);
    process.setuid?.(user);
  }
  const variables = {
    ...environmentOfProcess,
    // Pass the caller's name, because the audit log records the caller and the user of the service.
    SUDO_USER: environmentOfProcess.SUDO_USER ?? caller,
    HOME: userInfo().homedir,
    ...environment,
  };
  const { execPath, argv } = process;
  // bin/gatehouse has already used `--require` to check the version of Node. Do not repeat this option: Node would
  // search the working directory, such as /root, which the user of the service may be unable to read.
  process.execve?.(execPath, [execPath, '--max-semi-space-size=8', COMMAND, ...argv.slice(2)], variables);
}

function groupOf(user: string): number {
  try {
    const id = execFileSync('id', ['-g', user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return Number(id);
  } catch {
    return fail(
      `The user of the service, ${user}, does not exist on this machine.`,
      'Create the user with systemd-sysusers and deploy/systemd/sysusers.conf (docs/operations/deploy.md).',
    );
  }
}

function fail(message: string, remedy: string): never {
  process.stderr.write(`${message}\n${remedy}\n`);
  process.exit(1);
}
