/** The program as an operator runs it: a process, its environment, and SIGTERM. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { pino } from 'pino';
import { systemClock } from '../src/base/clock.ts';
import { loadSettings } from '../src/config/load.ts';
import { startService } from '../src/service/service.ts';
import { explained } from '../src/service/startup-errors.ts';
import { fileWith } from './config/configuration.ts';
import { operatorWith, valueFrom } from './operator/run-operator.ts';
import { textOf } from './pages/client-owner.ts';
import { failureOf } from './storage/waiting.ts';
import { hurryTime } from './support/clock.ts';
import { eventually } from './support/eventually.ts';
import { scrape } from './support/metrics.ts';
import { authorizationUrl, exchangeCode } from './support/oauth.ts';
import { createOpened } from './support/opened.ts';
import { createPerson, type Person } from './support/person.ts';
import { COMPILE_CACHE, freePort } from './support/programs.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const MAIN = new URL('../src/main.ts', import.meta.url).pathname;
const DEMO = { email: 'ada@demo.test', password: 'gatehouse-demo' };

/** Makes a program fail in one of two ways when it gets a signal. */
const FAILING_ON_SIGNALS = {
  NODE_OPTIONS: `--import=data:text/javascript,${[
    "process.on('SIGUSR2',()=>{throw/**/Error('thrown')})",
    "process.on('SIGWINCH',()=>{Promise.reject(Error('rejected'))})",
  ].join(';')}`,
};

describe('node src/main.ts', () => {
  const dataDirectory = path.join(temporaryDirectory('main'), 'data');
  const children: ChildProcess[] = [];
  const opened = createOpened();
  let service: Run;
  let issuer: string;
  let person: Person;
  /** The file with the messages of the process to systemd, one per line. */
  let messages: string;

  /** Runs the program with these variables instead of the environment of the tests. */
  function start(environment: Readonly<Record<string, string>>): Run {
    const child = spawn(process.execPath, [MAIN], {
      env: { ...COMPILE_CACHE, ...environment },
    });
    children.push(child);
    child.stdin.end();
    let printed = '';
    child.stderr.on('data', (chunk: Buffer) => {
      printed += chunk;
    });
    let logged = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      logged += chunk;
    });
    const closed = once(child, 'close').then(([exitCode]) => exitCode as number | null);
    return {
      printed: () => printed,
      async untilPrinted(words) {
        while (!printed.includes(words)) {
          const ended = await Promise.race([closed, once(child.stderr, 'data')]);
          if (typeof ended === 'number') throw new Error(`ended with ${ended}: ${printed}`);
        }
      },
      logged: () => entriesIn(logged),
      kill: (signal) => child.kill(signal),
      outcome: async () => ({ exitCode: await closed, printed, log: logged }),
    };
  }

  const onFreePorts = async (): Promise<Record<string, string>> => ({
    GATEHOUSE_DATA_DIR: dataDirectory,
    PORT: String(await freePort()),
    GATEHOUSE_OPERATORS_PORT: '0',
  });

  /** Starts the service in this process, as the program does with these variables. */
  const startHere = (environment: Readonly<Record<string, string>>) => {
    const settings = loadSettings({ environment });
    const log = pino({ level: 'silent' });
    const parts = { settings, loadSettings: () => settings, clock: systemClock, log };
    return opened.add(startService(parts), (here) => here.close());
  };

  /** Retries: the process has the time limits of production, and on a busy machine may answer 503 first. */
  const expectProfile = () =>
    eventually(async () => expect((await person.get('/profile')).html).to.include(DEMO.email));

  before(async () => {
    const environment = await onFreePorts();
    issuer = `http://localhost:${environment.PORT}`;
    person = createPerson(issuer);
    const folder = temporaryDirectory('systemd');
    messages = path.join(folder, 'messages');
    const stub = `#!/bin/sh\necho "$1" >> ${messages}\n`;
    writeFileSync(path.join(folder, 'systemd-notify'), stub, { mode: 0o755 });
    const systemd = {
      PATH: `${folder}:${process.env.PATH}`,
      NOTIFY_SOCKET: '/run/systemd/notify',
      WATCHDOG_USEC: '300000',
    };
    // Debug output of the libraries goes to standard error, in which the test below searches for secrets.
    service = start({ ...environment, ...systemd, ...FAILING_ON_SIGNALS, DEBUG: '*' });
    await service.untilPrinted('Gatehouse answers at ');
    await eventually(async () => {
      const page = await person.open('/profile');
      const isAsked = page.forms.some(({ names }) => names.has('password'));
      const shown = isAsked ? await person.follow(await person.submit(page, DEMO)) : page;
      expect(shown.html).to.include(DEMO.email);
    });
  });

  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await opened.closeAll();
  });

  it('on an empty directory the service starts, prints its address and the demo account, and answers', async () => {
    const { html } = await person.get('/profile');
    expect(html).to.include(DEMO.email);
    expect(textOf(html)).to.match(/Your access Demo Logistics owner 2 warehouses Hamburg .*manage Riga .*manage Gate/);
    await service.untilPrinted('Demo account');
    const own = service
      .printed()
      .split('\n')
      .filter((line) => !line.includes(' koa-router '));
    expect(own.join('\n')).to.match(new RegExp(`^Gatehouse answers at ${issuer} \\(operators: `, 'm'));
    expect(own).to.include(`Demo account: ${DEMO.email}, password ${DEMO.password}`);
  });

  it('under systemd the service reports that it is ready, and then reports to the watchdog', () =>
    eventually(() => {
      const [first, ...others] = readFileSync(messages, 'utf8').trim().split('\n');
      expect(first).to.equal('READY=1');
      expect(others.slice(0, 2)).to.deep.equal(['WATCHDOG=1', 'WATCHDOG=1']);
    }));

  it('a client added by the operator command works at once, and no output contains a secret', async () => {
    const operator = operatorWith({ GATEHOUSE_DATA_DIR: dataDirectory });
    const redirectUri = 'https://partner.example/callback';
    const added = await valueFrom(operator, [
      'clients',
      'add',
      '--kind',
      'confidential',
      '--name',
      'Newcomer',
      '--redirect-uri',
      redirectUri,
    ]);
    const client = { id: added.client_id, secret: added.client_secret, redirectUri };
    const { code, body } = await eventually(async () => {
      const redirect = await person.authorize(authorizationUrl(issuer, client), DEMO);
      const code = redirect.searchParams.get('code') ?? '';
      const { status, body } = await exchangeCode(issuer, client, code);
      expect(status).to.equal(200);
      return { code, body };
    });
    const cookies = person.cookieHeader('/profile').split('; ');
    const secrets = [client.secret, code, body.access_token, body.refresh_token].map(String);
    for (const secret of [...secrets, ...cookies.map((cookie) => cookie.split('=')[1] ?? '')]) {
      expect(secret.length).to.be.greaterThan(20);
      expect(service.printed()).not.to.include(secret);
    }
  });

  it('a second process on the same data directory fails, and the error suggests another directory', async () => {
    const restoreTime = hurryTime();
    const refused = failureOf(startHere(await onFreePorts()));
    const printed = explained(await refused.finally(restoreTime));
    expect(printed).to.include(`another process uses the data directory ${dataDirectory}`);
    expect(printed).to.include('GATEHOUSE_DATA_DIR').and.not.to.include('    at ');
    await expectProfile();
  });

  it('an error or rejection outside of requests and jobs is logged and counted, and the service continues', async () => {
    const [, operatorsUrl = ''] = /\(operators: (\S+)\)/.exec(service.printed()) ?? [];
    const counter = 'gatehouse_unexpected_errors_total';
    expect((await scrape({ operatorsUrl })).get(counter)).to.equal(0);
    for (const [index, signal] of (['SIGUSR2', 'SIGWINCH'] as const).entries()) {
      service.kill(signal);
      await eventually(async () => expect((await scrape({ operatorsUrl })).get(counter)).to.equal(index + 1));
    }
    await eventually(() => {
      const unexpected = service.logged().filter(({ msg }) => msg === 'unexpected error outside of requests and jobs');
      expect(unexpected.map(({ err }) => (err as Error).message)).to.deep.equal(['thrown', 'rejected']);
    });
    await expectProfile();
  });

  it('on SIGTERM the service answers current requests, refuses new connections, writes all log lines, and exits with 0', async () => {
    const ids: unknown[] = [];
    for (let count = 0; count < 20; count += 1) {
      const answer = await fetch(`${issuer}/login`);
      await answer.text();
      ids.push(answer.headers.get('x-request-id'));
    }
    const body = 'email=ada%40demo.test&password=wrong';
    const asked = request(`${issuer}/login`, {
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': body.length,
        // The interim response shows that the request is being processed.
        expect: '100-continue',
      },
    });
    // Listen from the start: a connection that breaks meanwhile then fails this test, not the process.
    const answered = once(asked, 'response');
    answered.catch(() => {});
    asked.flushHeaders();
    await once(asked, 'continue');
    service.kill('SIGTERM');
    await eventually(async () => expect(await accepts(new URL(issuer))).to.equal(false));
    asked.end(body);
    const [answer] = await answered;
    const page = await text(answer);
    // Although the request has no form token, the answer is complete: it is an error page.
    expect([answer.statusCode, answer.headers.connection]).to.deep.equal([403, 'close']);
    expect(page).to.include('</html>');

    const { exitCode, printed, log } = await service.outcome();
    expect(exitCode, printed).to.equal(0);
    const lines = entriesIn(log);
    expect(lines.at(-1)).to.include({ path: '/login', status: 403 });
    expect(lines.map(({ msg }) => msg)).to.include.members(['started', 'closing']);
    const requestIds = lines.map(({ requestId }) => requestId);
    expect(requestIds.filter((id) => ids.includes(id))).to.deep.equal(ids);
    for (const cookie of person.cookieHeader('/profile').split('; ')) {
      expect(log).not.to.include(cookie.split('=')[1]);
    }
  });

  it('the next start finds all data, and does not add the demo data again', async () => {
    service.kill('SIGTERM');
    await service.outcome();
    const { port } = new URL(issuer);
    const again = await startHere({ ...(await onFreePorts()), PORT: port });
    await expectProfile();
    expect(again.isSeeded).to.equal(false);
  });

  it('while the database is unavailable, the start waits, says so in the log, and survives SIGHUP', async () => {
    const environment = {
      ...(await onFreePorts()),
      GATEHOUSE_COOKIE_KEYS: randomBytes(32).toString('base64url'),
      GATEHOUSE_TOKEN_KEYS: randomBytes(32).toString('base64url'),
    };
    const unavailable = `postgres://nobody@127.0.0.1:${await freePort()}/it`;
    const run = start({ ...environment, DATABASE_URL: unavailable });
    await eventually(() => expect(run.logged()).not.to.be.empty);
    run.kill('SIGHUP');
    run.kill('SIGTERM');
    const { log, exitCode } = await run.outcome();
    // 143: ended by SIGTERM, which would find no process after an unhandled SIGHUP.
    expect(exitCode).to.equal(143);
    expect(JSON.parse(log).msg).to.match(/^not started yet, retrying for 60 s: the database does not/);
  });

  it('an outdated version of Node is refused with one sentence', async () => {
    const older = 'Object.defineProperty(process.versions, "node", { value: "22.1.0" })';
    const check = path.join(import.meta.dirname, '../src/node-version.cjs');
    const words = ['--import', `data:text/javascript,${older}`, '--import', check, MAIN];
    const child = spawn(process.execPath, words, { env: COMPILE_CACHE });
    const printed = await text(child.stderr);
    expect(printed).to.match(/^Gatehouse needs Node 24 or later, but this is 22\.1\.0 .*\n$/);
  });

  it('all problems of the configuration are reported before any store or port is opened', async () => {
    const untouched = path.join(temporaryDirectory('main'), 'data');
    const run = start({
      GATEHOUSE_CONFIG: fileWith('tokens:\n  retry_window: soon\n  colour: red\n', 'bad.yaml'),
      GATEHOUSE_DATA_DIR: untouched,
      GATEHOUSE_ISSUER: 'http://auth.example.com',
      GATEHOUSE_COOKIE_KEYS: 'too-short',
      PORT: 'eighty',
    });
    const { exitCode, printed, log } = await run.outcome();
    expect(exitCode).to.equal(78);
    expect(printed).to.match(/^The configuration has \d+ problems:/);
    const places = ['tokens.retry_window', 'tokens.colour', 'issuer', 'GATEHOUSE_COOKIE_KEYS'];
    for (const place of [...places, 'server.port']) expect(printed).to.include(`\n  ${place}`);
    expect(printed.match(/remedy:/g)?.length).to.be.at.least(places.length + 1);
    expect(printed).not.to.include('too-short').and.not.to.include('    at ');
    expect(JSON.parse(log)).to.include({ level: 60, code: 'configuration_problems' });
    expect(log).not.to.include('too-short');
    expect(existsSync(untouched)).to.equal(false);
  });
});

/** Returns the entries of complete lines. */
const entriesIn = (log: string): Record<string, unknown>[] =>
  log
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

function accepts({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

interface Run {
  /** Returns standard error so far. */
  printed(): string;
  untilPrinted(words: string): Promise<void>;
  /** Returns the entries of the log so far. */
  logged(): Record<string, unknown>[];
  kill(signal: NodeJS.Signals): void;
  /** Resolves when the process has ended, with its standard error and log. */
  outcome(): Promise<{ exitCode: number | null; printed: string; log: string }>;
}
