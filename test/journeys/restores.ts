/**
 * Backup and restore with the commands of docs/operations/backup.md and incidents.md in their order:
 * revoked access stays revoked, and no user is locked out.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { operatorFor } from '../operator/run-operator.ts';
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
import { execute, freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { findProgram, freePort, runProgram } from '../support/programs.ts';
import { addFrozenNode } from '../support/ready-node.ts';
import { inRedis, type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const PASSWORD = 'swordfish';
const [DOCS = '', INCIDENTS = ''] = ['backup.md', 'incidents.md'].map((name) =>
  readFileSync(path.join(ROOT, 'docs/operations', name), 'utf8'),
);

/** Returns the first block of commands after this phrase in this section. */
function commandsBehind(section: string, words: string, docs = DOCS): string[] {
  const text = docs.slice(docs.indexOf(section));
  const [, block = ''] = /```sh\n(.*?)```/s.exec(text.slice(text.indexOf(words))) ?? [];
  const lines = block.split('\n').flatMap((line) => line.replace(/ +# .*$/, '') || []);
  expect(lines, words).not.to.be.empty;
  return lines;
}

/** Removes the last command, which waits about ten seconds for a heartbeat: only one deployment runs it. */
function withoutWait(commands: readonly string[]): readonly string[] {
  expect(commands.at(-1)).to.match(/gatehouse nodes --wait 2$/);
  return commands.slice(0, -1);
}

const SECTIONS = {
  systemd: '## With systemd',
  Compose: '## With Compose',
  Kubernetes: '## With Kubernetes',
};

/** Matches a command in a container. The test runs it on this machine, with the test's stores. */
const IN_CONTAINER =
  /^(?:docker compose (?:exec|run)(?: --?[a-zA-Z-]+)* [a-z]+|kubectl --namespace [a-z]+ exec(?: --stdin)? \S+ --) (.*)$/;

/** Commands that prepare a new machine, or name the folder of the backup, which the test skips. */
const ABOUT_MACHINE = /^(?:DAY=|install |systemctl daemon-reload|cp -r|echo "|chown )/;

/** Commands about containers and pods, which the test skips: it has neither. */
const ABOUT_PODS = [
  /^kubectl --namespace [a-z]+ (?:wait|rollout status) /,
  /^kubectl --namespace gatehouse scale deployment\/gatehouse-operator /,
  /^kubectl (?:apply --filename deploy\/kubernetes\/restore-redis.yaml|--namespace stores delete pod\/restore-redis)$/,
];

const pgDump = { program: findProgram('pg_dump'), remedy: 'pg_dump (package postgresql-client)' };
const redisCli = { program: findProgram('redis-cli'), remedy: 'redis-cli (package redis-tools)' };

/** Defines the restores of the section about systemd, or all others. */
export function defineRestores(which: 'systemd' | 'others'): void {
  describeOn([postgresServer, redisServer, pgDump, redisCli], 'a restored backup', () => testRestores(which));
}

function testRestores(which: 'systemd' | 'others'): void {
  const start = startsOn();
  const folder = temporaryDirectory('kept');
  let redis: RedisServer;
  let databaseUrl: string;
  let service: TestService;
  let issuer: string;
  let seeded: Seed;

  beforeEach(async () => {
    redis = await startRedisServer({ requirepass: PASSWORD });
    databaseUrl = await freshMigratedDatabaseUrl();
    const storage = { databaseUrl, redisUrl: redis.url };
    writeFileSync(path.join(folder, 'database-url'), databaseUrl);
    writeFileSync(path.join(folder, 'redis.conf'), `requirepass ${PASSWORD}\n`);
    const server = { port: await freePort() };
    service = await start({ settings: { storage, server } });
    issuer = service.issuer;
    seeded = await seed(service);
  });
  afterEach(async () => {
    await service.close();
    await redis.stop();
  });

  /** Runs each command of the docs with the paths and ports of this test. */
  async function runCommands(commands: readonly string[]): Promise<void> {
    const { settings } = service;
    const operator = operatorFor(service);
    const stopNodes = () => service.close();
    const startNodes = async () => {
      service = await start({ settings });
    };
    const stopRedis = () => redis.stop();
    const startRedis = () => redis.restart();
    const actions: Readonly<Record<string, () => unknown>> = {
      "systemctl stop gatehouse.target 'gatehouse@*'": stopNodes,
      'systemctl start gatehouse.target': startNodes,
      'systemctl enable gatehouse@3001 && systemctl enable --now gatehouse.target': startNodes,
      'systemctl stop redis-server': stopRedis,
      'systemctl start redis-server': startRedis,
      'docker compose stop one two': stopNodes,
      'docker compose start one two': startNodes,
      'docker compose stop redis': stopRedis,
      'docker compose up --detach --no-deps --wait redis': startRedis,
      'kubectl --namespace gatehouse scale deployment/gatehouse --replicas=0': stopNodes,
      'kubectl --namespace gatehouse scale deployment/gatehouse --replicas=2': startNodes,
      'kubectl --namespace stores scale statefulset/redis --replicas=0': stopRedis,
      'kubectl --namespace stores scale statefulset/redis --replicas=1': startRedis,
    };
    for (const line of commands) {
      if (actions[line]) await actions[line]();
      if (actions[line] || [ABOUT_MACHINE, ...ABOUT_PODS].some((pattern) => pattern.test(line))) continue;
      const [, inContainer] = IN_CONTAINER.exec(line) ?? [];
      const command = inContainer ?? line;
      const [, words] = /^gatehouse (.*)$/.exec(command) ?? [];
      if (words === undefined) run(command);
      else {
        // Wait for only one node, because only one runs here.
        const here = words.replace('nodes --wait 2', 'nodes --wait 1');
        const { exitCode, output, errors } = await operator(here);
        expect(exitCode, `${line}\n${output}${errors}`).to.equal(0);
      }
    }
  }

  function run(command: string): void {
    const here = command
      .replaceAll('/opt/gatehouse', ROOT)
      .replaceAll(/(?<=^| )deploy\//g, `${ROOT}/deploy/`)
      .replaceAll('/etc/gatehouse', folder)
      .replaceAll('/run/redis-secrets', folder)
      .replaceAll(/\$DAY|\/backup\/\$\(date \+%F\)/g, folder)
      .replaceAll(/\/var\/lib\/redis|(?<= )\/data\b/g, redis.directory)
      .replace('--username=gatehouse --dbname=gatehouse', `--dbname='${databaseUrl}'`)
      .replace(/--username=gatehouse (.*) gatehouse /, `$1 '${databaseUrl}' `);
    const variables = [
      `DATABASE_URL_FILE=${folder}/database-url`,
      `REDIS_CLI='redis-cli -p ${new URL(redis.url).port}'`,
      // Pass the password unless the command sets it itself: the containers of compose.yaml do not.
      ...(command.includes('REDISCLI_AUTH') ? [] : [`REDISCLI_AUTH=${PASSWORD}`]),
    ];
    runProgram('bash', ['-ec', `export ${variables.join(' ')}; ${here}`], { cwd: folder });
  }

  /** Creates users and clients whose access ends before or after the backup, and backs up. */
  async function issueAccess(section: string) {
    const { clients, person } = seeded;
    const { confidential, otherConfidential, machine, public: publicClient } = clients;
    const partner = partnerTokens(issuer, seeded);
    const connect = (client: TestClient = confidential) => partner.tokens(client);
    const next = async ({ refreshToken }: Tokens) => tokensOf(await refresh(issuer, confidential, refreshToken));
    const end = async ({ accessToken }: Tokens) =>
      expect((await revokeCurrent(issuer, accessToken)).status).to.equal(204);
    const machineToken = async () => String((await clientCredentials(issuer, machine)).body.access_token);

    const revokedBefore = await connect();
    const [unchanged, refreshed, revoked, replayed] = [
      await connect(),
      await connect(),
      await connect(),
      await connect(),
    ] as const;
    const disconnected = await connect(otherConfidential);
    const machineTokenBefore = await machineToken();
    const elsewhere = createPerson(issuer);
    await elsewhere.signIn(seeded.other);
    const cookies = [partner.browser, elsewhere].map((browser) => browser.cookieHeader('/profile'));
    await end(revokedBefore);

    const words = section === SECTIONS.systemd ? 'On the machine of Redis' : 'Back up Redis first';
    await runCommands(commandsBehind(section, words));

    const current = await next(await next(refreshed));
    await end(revoked);
    await next(await next(replayed));
    expect((await refresh(issuer, confidential, replayed.refreshToken)).status).to.equal(400);
    const later = await connect();
    await (await partner.askToDisconnect(otherConfidential))();
    const madeAndEnded = await connect(publicClient);
    await (await partner.askToDisconnect(publicClient))();
    await service.clients.revoke(machine.id);
    await partner.browser.submit(await partner.browser.get('/logout'), {});
    await service.accounts.endSessions(seeded.other.accountId);
    // Connect again: this access has later generations than the revocations that an older PostgreSQL lacks.
    const connectedAgain = await connect(otherConfidential);
    const laterMachineToken = await machineToken();
    await elsewhere.signIn(seeded.other);
    const laterCookie = elsewhere.cookieHeader('/profile');

    const expectEnded = async (tokens: Tokens, client = confidential) => {
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
      unchanged,
      current,
      expectEnded,
      async expectRevoked() {
        for (const tokens of [revokedBefore, revoked, replayed]) await expectEnded(tokens);
        await expectEnded(disconnected, otherConfidential);
        expect(await partner.isActive(machineTokenBefore)).to.equal(false);
        for (const cookie of cookies) await isSignedOut(cookie);
      },
      /** Expects that access granted after the backup is lost (older Redis) or revoked (older PostgreSQL). */
      async expectLaterRevoked() {
        await expectEnded(later);
        await expectEnded(connectedAgain, otherConfidential);
        // An older PostgreSQL does not have this connection: it is a new one.
        expect(await partner.isActive((await connect(publicClient)).accessToken)).to.equal(true);
        await expectEnded(madeAndEnded, publicClient);
        expect(await partner.isActive(laterMachineToken)).to.equal(false);
        await isSignedOut(laterCookie);
      },
      /**
       * Expects that users can sign in and connect. @param client a connected client, which is
       * connected again without approval.
       */
      async expectNoLockout(client = confidential) {
        const browser = createPerson(issuer);
        expect((await browser.signIn(person)).html).to.include(person.email);
        const url = authorizationUrl(issuer, client, { prompt: 'none' });
        const { searchParams } = await browser.authorize(url, person);
        expect(searchParams.get('code'), `${searchParams}`).to.be.a('string');
        expect(await partner.isActive(await machineToken())).to.equal(true);
      },
    };
  }

  for (const [name, section] of Object.entries(SECTIONS)) {
    if ((name === 'systemd') !== (which === 'systemd')) continue;
    const commandsFor = (words: string) => {
      const commands = commandsBehind(section, words);
      return section === SECTIONS.systemd ? commands : withoutWait(commands);
    };

    it(`after the restore of an older Redis (${name}), revoked access stays revoked, refreshed tokens stay valid`, async () => {
      const issued = await issueAccess(section);
      await runCommands(commandsFor('**If Redis was restored'));
      await issued.expectRevoked();
      const { confidential } = seeded.clients;
      for (const { refreshToken } of [issued.unchanged, issued.current]) {
        expect((await refresh(issuer, confidential, refreshToken)).status).to.equal(200);
      }
      await issued.expectLaterRevoked();
      await issued.expectNoLockout();
    });

    it(`after the restore of an older PostgreSQL (${name}), all access is revoked, but no new consent is needed`, async () => {
      const issued = await issueAccess(section);
      // Create a table as a later migration would: the backup does not contain it.
      await execute(databaseUrl, 'CREATE TABLE later (id text REFERENCES organizations)');
      await runCommands(commandsFor('**If PostgreSQL was restored'));
      const found = await execute(databaseUrl, "SELECT to_regclass('later') AS later");
      expect(found?.rows).to.deep.equal([{ later: null }]);
      await issued.expectRevoked();
      for (const tokens of [issued.unchanged, issued.current]) await issued.expectEnded(tokens);
      await issued.expectLaterRevoked();
      await issued.expectNoLockout();
      await issued.expectNoLockout(seeded.clients.otherConfidential);
    });
  }

  if (which === 'systemd') return;

  it('a restore to a new server with an empty Redis revokes everything, and the doctor finds no problem', async () => {
    // A process of the lost machine, which no longer runs, belongs to no backup.
    await addFrozenNode(service.database, '', 'lost:1', 300);
    const issued = await issueAccess(SECTIONS.systemd);
    await service.close();
    // Empty stores stand for those of the new machine.
    await inRedis(redis.url, (client) => client.flushall());
    await execute(databaseUrl, 'DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    await runCommands(commandsBehind('## Restore into a new server', 'in the', INCIDENTS));
    // Step 10 of Deploy.
    await runCommands(['gatehouse doctor']);
    await issued.expectRevoked();
    for (const tokens of [issued.unchanged, issued.current]) await issued.expectEnded(tokens);
    await issued.expectLaterRevoked();
    await issued.expectNoLockout();
  });

  it('after a restore, password changes and API key revocations since the backup can be found in the log', async () => {
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
}
