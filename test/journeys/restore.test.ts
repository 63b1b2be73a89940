/**
 * Backup and restore, by the commands of docs/operations.md in their order: nobody who was revoked comes
 * back, and nobody is locked out.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { keysOf, operatorWith, storesOf } from '../operator/run-operator.ts';
import { partnerTokens, type Tokens, tokensOf } from '../provider/partner-tokens.ts';
import {
  authorizationUrl,
  clientCredentials,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { findProgram, freePort, runProgram } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import {
  describeOn,
  openssl,
  postgresServer,
  redisServer,
  required,
} from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const BACKUP = path.join(import.meta.dirname, '../../deploy/backup.sh');
const REWRITE_PERCENTAGE = 'auto-aof-rewrite-percentage';
const DOCS = readFileSync(path.join(import.meta.dirname, '../../docs/operations.md'), 'utf8');

/** The lines of the first block of commands behind these words. */
function commandsBehind(words: string): string[] {
  const [, block = ''] = /```sh\n(.*?)```/s.exec(DOCS.slice(DOCS.indexOf(words))) ?? [];
  const lines = block.split('\n').filter(Boolean);
  expect(lines, words).not.to.be.empty;
  return lines;
}

const ROOT = path.join(import.meta.dirname, '../..');

const dumps = { program: findProgram('pg_dump'), remedy: 'pg_dump (package postgresql-client)' };
const asks = { program: findProgram('redis-cli'), remedy: 'redis-cli (package redis-tools)' };

describeOn([postgresServer, redisServer, openssl, dumps, asks], 'a restored backup', () => {
  const start = startsOn();
  const folder = temporaryDirectory('kept');
  let redis: RedisServer;
  let redisFolder: string;
  let service: TestService;
  let issuer: string;
  let seeded: Seed;

  beforeEach(async () => {
    redis = await startRedisServer();
    const administrator = new Redis(redis.url);
    [, redisFolder = ''] = (await administrator.config('GET', 'dir')) as string[];
    administrator.disconnect();
    const storage = { databaseUrl: await freshMigratedDatabaseUrl(), redisUrl: redis.url };
    writeFileSync(path.join(folder, 'database-url'), storage.databaseUrl);
    const server = { port: await freePort() };
    service = await start({ settings: { storage, server } });
    issuer = service.issuer;
    seeded = await seed(service);
  });
  afterEach(async () => {
    await service.close();
    await redis.stop();
  });

  /** Each as it stands there, on the paths and ports of this test. */
  async function carryOut(commands: readonly string[]): Promise<void> {
    const { settings } = service;
    const operator = operatorWith({ ...storesOf(service), ...keysOf(service) });
    const doings: Readonly<Record<string, () => unknown>> = {
      "systemctl stop gatehouse.target 'gatehouse@*'": () => service.close(),
      'systemctl start gatehouse.target': async () => {
        service = await start({ settings });
      },
      'systemctl stop redis-server': () => redis.stop(),
      'systemctl start redis-server': () => redis.restart(),
    };
    for (const command of commands) {
      const [, words] = /^gatehouse (.*)$/.exec(command) ?? [];
      if (words !== undefined) {
        // One process runs here, and a command that only waits has nothing to confirm.
        const isWait = words.startsWith('nodes ');
        const line = isWait ? words.replace('--wait 2', '--wait 1') : `${words} --yes`;
        const { exitCode, output, errors } = await operator(line);
        expect(exitCode, `${command}\n${output}${errors}`).to.equal(0);
      } else if (doings[command]) await doings[command]();
      else {
        const here = command
          .replaceAll('/opt/gatehouse', ROOT)
          .replaceAll('/etc/gatehouse', folder)
          .replaceAll(/(?<= |=)\/backup\b/g, folder)
          .replaceAll('/var/lib/redis', redisFolder);
        const redisCli = `redis-cli -p ${new URL(redis.url).port}`;
        const variables = `DATABASE_URL_FILE=${folder}/database-url REDIS_CLI='${redisCli}'`;
        runProgram('bash', ['-ec', `export ${variables}; ${here}`], { cwd: folder });
      }
    }
  }

  /** What becomes of people and clients, of whom some are ended before and some after the backup. */
  async function ledger() {
    const { clients, person } = seeded;
    const { confidential, otherConfidential, machine } = clients;
    const partner = partnerTokens(issuer, seeded);
    const connect = (client: TestClient = confidential) => partner.tokens(client);
    const next = async ({ refreshToken }: Tokens) =>
      tokensOf(await refresh(issuer, confidential, refreshToken));
    const end = async ({ accessToken }: Tokens) =>
      expect((await revokeCurrent(issuer, accessToken)).status).to.equal(204);
    const machineToken = async () =>
      String((await clientCredentials(issuer, machine)).body.access_token);

    const revokedBefore = await connect();
    const [kept, refreshed, revoked, replayed] = [
      ...[await connect(), await connect(), await connect(), await connect()],
    ] as const;
    const disconnected = await connect(otherConfidential);
    const ofMachine = await machineToken();
    const elsewhere = createPerson(issuer);
    await elsewhere.signIn(seeded.other);
    const cookies = [partner.browser, elsewhere].map((browser) => browser.cookieHeader('/profile'));
    await end(revokedBefore);

    await carryOut(commandsBehind('Back up both,'));

    const current = await next(await next(refreshed));
    await end(revoked);
    await next(await next(replayed));
    expect((await refresh(issuer, confidential, replayed.refreshToken)).status).to.equal(400);
    const later = await connect();
    await (await partner.askToDisconnect(otherConfidential))();
    await service.clients.endMachineTokens(machine.id);
    await partner.browser.submit(await partner.browser.get('/logout'), {});
    await service.accounts.endSessions(seeded.other.accountId);
    // With the generations that these ends led to, which an older PostgreSQL does not know.
    const connectedAgain = await connect(otherConfidential);
    const laterMachineToken = await machineToken();
    await elsewhere.signIn(seeded.other);
    const laterCookie = elsewhere.cookieHeader('/profile');
    await service.revocations.close();

    const isDead = async (tokens: Tokens, client = confidential) => {
      expect(await partner.isActive(tokens.accessToken)).to.equal(false);
      const { status, body } = await refresh(issuer, client, tokens.refreshToken);
      expect({ status, error: body.error }).to.deep.equal({ status: 400, error: 'invalid_grant' });
    };
    const isSignedOut = async (cookie: string) => {
      const asked = { headers: { cookie }, redirect: 'manual' } as const;
      const { status } = await fetch(`${issuer}/profile`, asked);
      expect(status, 'the profile without a session').to.be.within(302, 303);
    };
    return {
      ...{ kept, current, isDead },
      async nobodyComesBack() {
        for (const tokens of [revokedBefore, revoked, replayed]) await isDead(tokens);
        await isDead(disconnected, otherConfidential);
        expect(await partner.isActive(ofMachine)).to.equal(false);
        for (const cookie of cookies) await isSignedOut(cookie);
      },
      /** Issued after the backup: lost with an older Redis, ended by the commands for an older PostgreSQL. */
      async everyLaterCredentialHasEnded() {
        await isDead(later);
        await isDead(connectedAgain, otherConfidential);
        expect(await partner.isActive(laterMachineToken)).to.equal(false);
        await isSignedOut(laterCookie);
      },
      /** @param client that was connected, and is connected again unasked. */
      async nobodyIsLockedOut(client = confidential) {
        const browser = createPerson(issuer);
        expect((await browser.signIn(person)).html).to.include(person.email);
        const url = authorizationUrl(issuer, client, { prompt: 'none' });
        const { searchParams } = await browser.authorize(url, person);
        expect(searchParams.get('code'), `${searchParams}`).to.be.a('string');
        expect(await partner.isActive(await machineToken())).to.equal(true);
      },
    };
  }

  it('is made of a Redis with TLS, a password and ACL; without the password it fails', async () => {
    const [port, file] = [await freePort(), (name: string) => path.join(folder, name)];
    const certificate = [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
      ...['-keyout', file('redis.key'), '-out', file('redis.crt'), '-days', '2'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
    ];
    runProgram(required(openssl), certificate, { cwd: folder });
    const guarded = await startRedisServer({
      ...{ 'tls-port': String(port), 'tls-auth-clients': 'no' },
      ...{ 'tls-cert-file': file('redis.crt'), 'tls-key-file': file('redis.key') },
    });
    const administrator = new Redis(guarded.url);
    const rights = ['+config|get', '+config|set', '+info'];
    await administrator.acl('SETUSER', 'backup', 'on', '>swordfish', ...rights);
    await administrator.acl('SETUSER', 'default', 'resetpass', '>another');
    const redisCli = `redis-cli -h localhost -p ${port} --tls --cacert ${file('redis.crt')}`;
    const backUp = (variables: string) => {
      const kept = temporaryDirectory('kept');
      const script = `export DATABASE_URL_FILE=${file('database-url')} ${variables}; "$0" "$1"`;
      runProgram('bash', ['-ec', script, BACKUP, kept], { cwd: folder });
      return readdirSync(kept);
    };
    expect(() => backUp(`REDIS_CLI='${redisCli}'`)).to.throw(/No backup was made: .*NOAUTH/);
    const made = backUp(`REDIS_CLI='${redisCli} --user backup' REDISCLI_AUTH=swordfish`);
    expect(made).to.have.members(['gatehouse.dump', 'redis.tar']);
    const [, percentage] = (await administrator.config('GET', REWRITE_PERCENTAGE)) as string[];
    expect(percentage, 'as it was before').to.equal('100');
    administrator.disconnect();
  });

  it('an older Redis: what was ended since stays so, who refreshed since goes on', async () => {
    const people = await ledger();
    await carryOut(commandsBehind('**An older Redis, below'));
    await people.nobodyComesBack();
    const { confidential } = seeded.clients;
    for (const { refreshToken } of [people.kept, people.current]) {
      expect((await refresh(issuer, confidential, refreshToken)).status).to.equal(200);
    }
    await people.everyLaterCredentialHasEnded();
    await people.nobodyIsLockedOut();
  });

  it('an older PostgreSQL: everything is ended, and nobody is asked again', async () => {
    const people = await ledger();
    await carryOut(commandsBehind('**An older PostgreSQL, above'));
    await people.nobodyComesBack();
    for (const tokens of [people.kept, people.current]) await people.isDead(tokens);
    await people.everyLaterCredentialHasEnded();
    await people.nobodyIsLockedOut();
    await people.nobodyIsLockedOut(seeded.clients.otherConfidential);
  });

  it('who changed a password or revoked an API key since can be found in the log', async () => {
    const partner = partnerTokens(issuer, seeded);
    await partner.browser.signIn(seeded.person);
    const fields = { name: 'Scale', expires_in_days: '30' };
    await partner.browser.submit(await partner.browser.get('/profile/api-keys'), fields);
    const [, pattern = ''] = /grep -E '([^']+)'/.exec(DOCS) ?? [];
    const lines = service.logLines
      .filter((line) => line.includes('"method":"POST"'))
      .filter((line) => new RegExp(pattern).test(line));
    expect(lines).to.have.length(1);
    expect(JSON.parse(lines[0] ?? '')).to.include({ accountId: seeded.person.accountId });
    await postForm(issuer, '/password', {});
    expect(service.logLines.at(-1)).to.match(new RegExp(pattern));
  });
});
