/** The program as an operator starts it: a process, its environment, and the signal that ends it. */
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
import { failureOf } from './storage/waiting.ts';
import { hurryTime } from './support/clock.ts';
import { eventually } from './support/eventually.ts';
import { authorizationUrl, exchangeCode } from './support/oauth.ts';
import { createOpened } from './support/opened.ts';
import { createPerson, type Person } from './support/person.ts';
import { COMPILE_CACHE, freePort } from './support/programs.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const MAIN = new URL('../src/main.ts', import.meta.url).pathname;
const DEMO = { email: 'ada@demo.test', password: 'gatehouse-demo' };

describe('node src/main.ts', () => {
  const dataDirectory = path.join(temporaryDirectory('main'), 'data');
  const children: ChildProcess[] = [];
  const opened = createOpened();
  let service: Run;
  let issuer: string;
  let person: Person;
  /** What it told systemd, a line for each. */
  let messages: string;

  /** Runs it with these variables and none of the test's own. */
  function start(environment: Readonly<Record<string, string>>): Run {
    const child = spawn(process.execPath, [MAIN], {
      env: { ...COMPILE_CACHE, ...environment },
    });
    children.push(child);
    child.stdin.end();
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk;
    });
    const logged = once(child.stdout, 'data');
    const log = text(child.stdout);
    const closed = once(child, 'close').then(([exitCode]) => exitCode as number | null);
    return {
      said: () => said,
      async untilSaid(words) {
        while (!said.includes(words)) {
          const ended = await Promise.race([closed, once(child.stderr, 'data')]);
          if (typeof ended === 'number') throw new Error(`ended with ${ended}: ${said}`);
        }
      },
      untilLogged: async () => void (await logged),
      terminate: () => child.kill('SIGTERM'),
      outcome: async () => ({ exitCode: await closed, said, log: await log }),
    };
  }

  const onFreePorts = async (): Promise<Record<string, string>> => ({
    GATEHOUSE_DATA_DIR: dataDirectory,
    PORT: String(await freePort()),
    GATEHOUSE_OPERATORS_PORT: '0',
  });

  /** The service as the program starts it with these variables, in this process. */
  const startHere = (environment: Readonly<Record<string, string>>) => {
    const settings = loadSettings({ environment });
    const log = pino({ level: 'silent' });
    const parts = { settings, loadSettings: () => settings, clock: systemClock, log };
    return opened.add(startService(parts), (here) => here.close());
  };

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
    // What the libraries trace goes to standard error, which is searched for secrets below.
    service = start({ ...environment, ...systemd, DEBUG: '*' });
    await service.untilSaid('Gatehouse answers at ');
  });

  after(async () => {
    for (const child of children) child.kill('SIGKILL');
    await opened.closeAll();
  });

  it('on an empty directory prints where it answers and the demo account, and answers', async () => {
    const page = await person.signIn(DEMO);
    expect(page.html).to.include(DEMO.email).and.to.include('Hamburg').and.to.include('Riga');
    await service.untilSaid('Demo account');
    const own = service
      .said()
      .split('\n')
      .filter((line) => !line.includes(' koa-router '));
    expect(own.join('\n')).to.match(
      new RegExp(`^Gatehouse answers at ${issuer} \\(operators: `, 'm'),
    );
    expect(own).to.include(`Demo account: ${DEMO.email}, password ${DEMO.password}`);
  });

  it('under systemd reports that it is ready, and goes on reporting to the watchdog', () =>
    eventually(() => {
      const [first, ...others] = readFileSync(messages, 'utf8').trim().split('\n');
      expect(first).to.equal('READY=1');
      expect(others.slice(0, 2)).to.deep.equal(['WATCHDOG=1', 'WATCHDOG=1']);
    }));

  it('a client that the operator adds beside it works at once, and no output tells a secret', async () => {
    const operator = operatorWith({ GATEHOUSE_DATA_DIR: dataDirectory });
    const redirectUri = 'https://partner.example/callback';
    const added = await valueFrom(operator, [
      ...['clients', 'add', '--kind', 'confidential', '--name', 'Newcomer'],
      ...['--redirect-uri', redirectUri],
    ]);
    const client = { id: added.client_id, secret: added.client_secret, redirectUri };
    const redirect = await person.authorize(authorizationUrl(issuer, client), DEMO);
    const code = redirect.searchParams.get('code') ?? '';
    const { status, body } = await exchangeCode(issuer, client, code);
    expect(status).to.equal(200);
    const cookies = person.cookieHeader('/profile').split('; ');
    const secrets = [client.secret, code, body.access_token, body.refresh_token].map(String);
    for (const secret of [...secrets, ...cookies.map((cookie) => cookie.split('=')[1] ?? '')]) {
      expect(secret.length).to.be.greaterThan(20);
      expect(service.said()).not.to.include(secret);
    }
  });

  it('a second process on the same directory is refused, and told what to do', async () => {
    const restoreTime = hurryTime();
    const refused = failureOf(startHere(await onFreePorts()));
    const said = explained(await refused.finally(restoreTime));
    expect(said).to.include(`another process serves the data directory ${dataDirectory}`);
    expect(said).to.include('GATEHOUSE_DATA_DIR').and.not.to.include('    at ');
    expect((await person.get('/profile')).status).to.equal(200);
  });

  it('at SIGTERM it answers what is in flight, lets nobody in, logs it all, and ends with 0', async () => {
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
        // Its answer tells that the request was taken up.
        expect: '100-continue',
      },
    });
    asked.flushHeaders();
    await once(asked, 'continue');
    service.terminate();
    await eventually(async () => expect(await accepts(new URL(issuer))).to.equal(false));
    asked.end(body);
    const [answer] = await once(asked, 'response');
    const page = await text(answer);
    // No form token: a whole page says so.
    expect(answer.statusCode).to.equal(403);
    expect(page).to.include('</html>');

    const { exitCode, said, log } = await service.outcome();
    expect(exitCode, said).to.equal(0);
    const lines: Record<string, unknown>[] = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).to.include({ path: '/login', status: 403 });
    expect(lines.map(({ msg }) => msg)).to.include.members(['started', 'closing']);
    const requestIds = lines.map(({ requestId }) => requestId);
    expect(requestIds.filter((id) => ids.includes(id))).to.deep.equal(ids);
    for (const cookie of person.cookieHeader('/profile').split('; ')) {
      expect(log).not.to.include(cookie.split('=')[1]);
    }
  });

  it('the next start has everything that was there, and seeds nothing again', async () => {
    const { port } = new URL(issuer);
    const again = await startHere({ ...(await onFreePorts()), PORT: port });
    expect((await person.get('/profile')).html).to.include(DEMO.email);
    expect(again.isSeeded).to.equal(false);
  });

  it('a database that is away is waited for, which the log says', async () => {
    const environment = {
      ...(await onFreePorts()),
      GATEHOUSE_COOKIE_KEYS: randomBytes(32).toString('base64url'),
      GATEHOUSE_TOKEN_KEYS: randomBytes(32).toString('base64url'),
    };
    const nobody = `postgres://nobody@127.0.0.1:${await freePort()}/it`;
    const run = start({ ...environment, DATABASE_URL: nobody });
    await run.untilLogged();
    run.terminate();
    const { log } = await run.outcome();
    expect(JSON.parse(log).msg).to.match(/^not started yet, for 60 s more: the database does not/);
  });

  it('a Node that is too old is told so in one sentence', async () => {
    const older = 'Object.defineProperty(process.versions, "node", { value: "22.1.0" })';
    const check = path.join(import.meta.dirname, '../src/node-version.cjs');
    const words = ['--import', `data:text/javascript,${older}`, '--import', check, MAIN];
    const child = spawn(process.execPath, words, { env: COMPILE_CACHE });
    const said = await text(child.stderr);
    expect(said).to.match(/^Gatehouse needs Node 24 or later, and this is 22\.1\.0 .*\n$/);
  });

  it('a bad configuration is told whole, before anything opens', async () => {
    const untouched = path.join(temporaryDirectory('main'), 'data');
    const run = start({
      GATEHOUSE_CONFIG: fileWith('tokens:\n  retry_window: soon\n  colour: red\n', 'bad.yaml'),
      GATEHOUSE_DATA_DIR: untouched,
      GATEHOUSE_ISSUER: 'http://auth.example.com',
      GATEHOUSE_COOKIE_KEYS: 'too-short',
      PORT: 'eighty',
    });
    const { exitCode, said, log } = await run.outcome();
    expect(exitCode).to.equal(78);
    expect(said).to.match(/^The configuration has \d+ problems:/);
    const places = ['tokens.retry_window', 'tokens.colour', 'issuer', 'GATEHOUSE_COOKIE_KEYS'];
    for (const place of [...places, 'server.port']) expect(said).to.include(`\n  ${place}`);
    expect(said.match(/remedy:/g)?.length).to.be.at.least(places.length + 1);
    expect(said).not.to.include('too-short').and.not.to.include('    at ');
    expect(JSON.parse(log)).to.include({ level: 60, code: 'configuration_problems' });
    expect(log).not.to.include('too-short');
    expect(existsSync(untouched)).to.equal(false);
  });
});

function accepts({ hostname, port }: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

interface Run {
  /** Standard error so far. */
  said(): string;
  untilSaid(words: string): Promise<void>;
  /** Until there is something in its log. */
  untilLogged(): Promise<void>;
  terminate(): void;
  /** Once it ended: what it said on standard error, and its log. */
  outcome(): Promise<{ exitCode: number | null; said: string; log: string }>;
}
