/** A machine of docs/operations/deploy.md in a folder: its unit runs by the rules of systemd that the unit names. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readEnvironmentFile } from '../../src/operator/environment-file.ts';
import type { NodeAddress } from '../many-nodes/running-node.ts';
import type { Opened } from '../support/opened.ts';
import { type Program, startProgram } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
/** Prints each message to the socket in a line. Node has no Unix datagram sockets. */
const RECEIVER = `import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
while True: print(receiver.recv(4096).decode(), flush=True)`;
const UNIT_SECONDS: Readonly<Record<string, number>> = { '': 1, min: 60 };

/** Reads a time span such as `30` or `30min`. */
function millisecondsOf(span = ''): number {
  const [, number, unit = ''] = /^(\d+)(min)?$/.exec(span) ?? [];
  return Number(number) * (UNIT_SECONDS[unit] ?? Number.NaN) * 1_000;
}

export type Machine = Awaited<ReturnType<typeof startMachine>>;

/**
 * @param origin a git repository with the versions
 * @param files the files in /etc/gatehouse
 */
export async function startMachine(
  opened: Opened,
  parts: { address: NodeAddress; origin: string; files: Readonly<Record<string, string>>; python: string },
) {
  const { address, origin, files } = parts;
  const folder = temporaryDirectory('machine');
  const at = (name: string): string => path.join(folder, name);
  const places = { '/opt/gatehouse': 'opt', '/etc/gatehouse': 'etc', '/etc/systemd/system': 'units' };
  const here = (written: string): string =>
    Object.entries(places).reduce((done, [from, to]) => done.replaceAll(from, at(to)), written);
  const name = `gatehouse@${address.operatorsPort}.service`;
  /** What systemd would write into the journal as a failure. */
  const failures: string[] = [];

  for (const made of ['etc', 'units', 'bin']) mkdirSync(at(made));
  execFileSync('git', ['clone', '-q', origin, at('opt')], { stdio: 'pipe' });
  for (const [file, content] of Object.entries(files)) writeFileSync(path.join(at('etc'), file), here(content));
  symlinkSync(path.join(at('opt'), 'bin/gatehouse'), at('bin/gatehouse'));
  symlinkSync(path.join(ROOT, 'node_modules'), at('opt/node_modules'));

  let unit: Readonly<Record<string, string>> = {};
  let running: Program | undefined;
  let isStopping = false;
  let hear = (_message: string): void => {};

  const receiver = spawn(parts.python, ['-c', RECEIVER, at('notify')], { stdio: ['ignore', 'pipe', 'inherit'] });
  createInterface(receiver.stdout).on('line', (message) => hear(message));

  function readUnit(): void {
    const written = here(readFileSync(at('units/gatehouse@.service'), 'utf8'))
      .replaceAll('/usr/bin/node', process.execPath)
      .replaceAll('%i', String(address.operatorsPort));
    unit = Object.fromEntries([...written.matchAll(/^(\w+)=(.+)$/gm)].map(([, key = '', value = '']) => [key, value]));
    const environment = [...written.matchAll(/^Environment=(.*)$/gm)].map(([, one]) => one).join(' ');
    unit = { ...unit, Environment: environment };
  }

  /** Resolves once the unit is started, which for Type=notify means that it has sent READY=1. */
  async function start(): Promise<void> {
    const [program = '', ...words] = unit.ExecStart?.split(' ') ?? [];
    const environment = {
      PATH: process.env.PATH,
      ...Object.fromEntries((unit.Environment ?? '').split(' ').map((one) => one.split('='))),
      ...readEnvironmentFile(readFileSync(unit.EnvironmentFile ?? '', 'utf8')),
      PORT: String(address.port),
      NOTIFY_SOCKET: at('notify'),
      WATCHDOG_USEC: String(millisecondsOf(unit.WatchdogSec) * 1_000),
    };
    const started = startProgram(program, words, { cwd: unit.WorkingDirectory ?? '', environment, output: 'drop' });
    running = started;
    isStopping = false;
    let watchdog: NodeJS.Timeout | undefined;
    const ready = new Promise<void>((resolve) => {
      hear = (message) => {
        if (message === 'READY=1') resolve();
        clearTimeout(watchdog);
        watchdog = setTimeout(() => failures.push('watchdog'), millisecondsOf(unit.WatchdogSec)).unref();
      };
    });
    const ended = started.exitCode.then((code) => {
      clearTimeout(watchdog);
      if (isStopping) return;
      failures.push(`exit ${code}: ${started.output()}`);
      const isRestarted = unit.Restart === 'on-failure' && code !== 0 && `${code}` !== unit.RestartPreventExitStatus;
      if (isRestarted) setTimeout(() => void start().catch(() => {}), millisecondsOf(unit.RestartSec)).unref();
      throw new Error(`${name} ended`);
    });
    const late = delay(millisecondsOf(unit.TimeoutStartSec), undefined, { ref: false }).then(() => {
      throw new Error(`${name} was not ready in time`);
    });
    ended.catch(() => {});
    late.catch(() => {});
    await Promise.race([ready, ended, late]);
  }

  async function stop(): Promise<void> {
    isStopping = true;
    const late = delay(millisecondsOf(unit.TimeoutStopSec), 'late', { ref: false });
    if ((await Promise.race([running?.end('SIGTERM'), late])) === 'late') {
      failures.push('stopped too late');
      await running?.end('SIGKILL');
    }
    const code = await running?.exitCode;
    if (code !== 0) failures.push(`stopped with exit ${code}`);
  }

  const COMMANDS: Readonly<Record<string, () => Promise<string> | string>> = {
    'daemon-reload': () => {
      readUnit();
      return '';
    },
    'list-units': () => `${name} loaded active running Gatehouse\n`,
    show: () => `LoadState=loaded\nEnvironmentFiles=${unit.EnvironmentFile} (ignore_errors=no)\nUser=\n`,
    restart: async () => {
      await stop();
      await start();
      return '';
    },
  };
  const server = createServer(async (request, response) => {
    const [verb = ''] = (await text(request)).split(' ');
    try {
      response.end(await COMMANDS[verb]?.());
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const programs = {
    systemctl: `exec curl -sSf --data-binary "$*" http://127.0.0.1:${port}/`,
    // While npm runs, the packages are missing.
    npm: `rm node_modules && sleep 0.2 && ln -s ${path.join(ROOT, 'node_modules')} node_modules`,
  };
  for (const [program, script] of Object.entries(programs)) {
    writeFileSync(path.join(at('bin'), program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  await opened.add(Promise.resolve(), async () => {
    isStopping = true;
    await running?.end('SIGKILL');
    receiver.kill();
    server.close();
  });

  return {
    failures,
    start: () => {
      readUnit();
      return start();
    },
    /** Runs commands of the docs in a shell. @returns what they print */
    async run(commands: string): Promise<string> {
      const environment = { PATH: `${at('bin')}:${path.dirname(process.execPath)}:${process.env.PATH}`, HOME: folder };
      const ran = await promisify(execFile)('sh', ['-ec', here(commands)], { env: environment });
      return ran.stdout;
    },
  };
}
