/**
 * What breaks for an operator: each fault is really made, and the doctor names it with the right remedy, and without a
 * password.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { Redis } from 'ioredis';
import { listen } from '../../modules/node/test/stand-in.ts';
import packageFile from '../../package.json' with { type: 'json' };
import { fileWith } from '../config/configuration.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import {
  execute,
  freshDatabaseUrl,
  freshMigratedDatabaseUrl,
  type PostgresServer,
  startPostgresServer,
} from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { READY_NODE } from '../support/ready-node.ts';
import { inRedis, type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { examine } from './doctor-findings.ts';

type Environment = Readonly<Record<string, string>>;

type Statement = string | readonly [text: string, values: readonly unknown[]];

/** Makes the fault, and returns the environment of the doctor. */
type Break = () => Environment | Promise<Environment>;

const DOWN = 'localhost:1';
/** A host that never exists (RFC 2606 §2). */
const NO_HOST = 'store.invalid';

let server: PostgresServer;
let issuer: string;
/** Of a node that does not run: another program of this machine may listen on the default port. */
let operatorsPort: string;
let roles = 0;

const asAdmin = (url: string, ...statements: readonly Statement[]) =>
  execute(url, ...statements.map((one) => (typeof one === 'string' ? one : { text: one[0], values: [...one[1]] })));

/** Returns the URL of a role that owns nothing; in the statements, $ROLE is its name. */
async function withRole(databaseUrl: string, ...statements: readonly string[]): Promise<Environment> {
  roles += 1;
  const role = `role_${roles}_${process.pid}`;
  await asAdmin(databaseUrl, `CREATE ROLE ${role} LOGIN`, ...statements.map((one) => one.replaceAll('$ROLE', role)));
  const url = new URL(databaseUrl);
  url.username = role;
  return { DATABASE_URL: url.href };
}

const migrated = async (...statements: readonly Statement[]): Promise<Environment> => {
  const DATABASE_URL = await freshMigratedDatabaseUrl();
  await asAdmin(DATABASE_URL, ...statements);
  return { DATABASE_URL };
};

const LONG_AGO = "now() - interval '5 minutes'";
/** Nodes of this version that were seen just now, except for what is given. */
const withNode =
  (...nodes: readonly { more?: object; seen?: string; noted?: string; keys?: string; state?: string }[]) =>
  () =>
    migrated(
      ...nodes.map(
        (
          { more, seen = 'now()', noted = "now() + interval '10 minutes'", keys = '{}', state = 'ready' },
          at,
        ): Statement => [
          `INSERT INTO node_keys (node, seen_at, noted_at, cookie_keys, token_keys, state, runs_with)
            VALUES ('web:${at}', ${seen}, ${noted}, '${keys}', '${keys}', '${state}', $1)`,
          [{ ...READY_NODE.runsWith, version: packageFile.version, ...more }],
        ],
      ),
    );

async function redisWith(
  settings: Readonly<Record<string, string>>,
  change: (redis: Redis, given: RedisServer) => Promise<unknown> = async () => {},
): Promise<Environment> {
  const given = await startRedisServer(settings);
  await inRedis(given.url, (redis) => change(redis, given));
  return { ...(await migrated()), REDIS_URL: given.url };
}

const withRedisAt = (host: string) => async () => ({ ...(await migrated()), REDIS_URL: `redis://${host}` });

/** Something answers in front of the service, or instead of it. */
async function answering(
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): Promise<Environment> {
  const { origin } = await listen((_request, response) => void response.writeHead(status, headers).end(body));
  return { ...(await migrated()), GATEHOUSE_ISSUER: origin };
}

const file = (text: string): Environment => ({ GATEHOUSE_CONFIG: fileWith(text, 'break.yaml') });
const withFile = async (text: string): Promise<Environment> => ({ ...(await migrated()), ...file(text) });

/** What the remedy says, how the fault is made, and that it is no problem yet. */
type Row = readonly [remedy: RegExp, make: Break, status?: 'warning'];

const WARNING = 'warning';

/** The faults by the check of the doctor that finds them. */
const BREAKS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  settings: {
    'no settings file': [/name a settings file that exists/, () => ({ GATEHOUSE_CONFIG: '/no/file' })],
  },
  database: {
    'PostgreSQL is down': [/check that it is running/, () => ({ DATABASE_URL: `postgres://g:haddock@${DOWN}/g` })],
    'an unknown host of PostgreSQL': [
      /correct the host in DATABASE_URL/,
      () => ({ DATABASE_URL: `postgres://${NO_HOST}/g` }),
    ],
    'an unknown database': [/create the database/, () => ({ DATABASE_URL: server.url.replace(/postgres$/, 'none') })],
    'an unknown role': [
      /correct the account and the password in DATABASE_URL/,
      () => ({ DATABASE_URL: server.url.replace('postgres@', 'none@') }),
    ],
    'a wrong password of PostgreSQL': [
      /correct the account and the password in DATABASE_URL/,
      async () => {
        const hba = path.join(server.data, 'pg_hba.conf');
        writeFileSync(hba, `host all with_password 127.0.0.1/32 scram-sha-256\n${readFileSync(hba, 'utf8')}`);
        await asAdmin(server.url, "CREATE ROLE with_password LOGIN PASSWORD 'swordfish'", 'SELECT pg_reload_conf()');
        return { DATABASE_URL: server.url.replace('postgres@', 'with_password:haddock@') };
      },
    ],
    'a role without the right to connect': [
      /ALTER DATABASE … OWNER TO/,
      async () => {
        const url = await server.createDatabase();
        return withRole(url, `REVOKE CONNECT, TEMPORARY ON DATABASE ${new URL(url).pathname.slice(1)} FROM PUBLIC`);
      },
    ],
    'no connection is left': [
      /lower storage.database_connections/,
      async () => withRole(await freshMigratedDatabaseUrl(), 'ALTER ROLE $ROLE CONNECTION LIMIT 0'),
    ],
    'TLS is required, and PostgreSQL has none': [/TLS|ssl/i, () => ({ DATABASE_URL: `${server.url}?sslmode=require` })],
  },
  migrations: {
    'an empty database': [/run `gatehouse migrate`/, async () => ({ DATABASE_URL: await freshDatabaseUrl() })],
    'a schema that the role may not use': [
      /ALTER SCHEMA public OWNER TO/,
      async () => withRole(await freshDatabaseUrl(), 'REVOKE ALL ON SCHEMA public FROM PUBLIC'),
    ],
  },
  database_writes: {
    'a read-only database': [
      /is read-only: use the primary/,
      () =>
        migrated(
          "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$",
        ),
    ],
  },
  database_owner: {
    'tables that a superuser restored': [
      /A restore gave the tables to another role/,
      async () => withRole(await freshMigratedDatabaseUrl()),
    ],
  },
  database_connections: {
    'fewer connections than the nodes open': [
      /lower storage.database_connections/,
      withNode({ more: { databaseConnections: 900 } }),
      WARNING,
    ],
  },
  redis: {
    'Redis is down': [/check that it is running/, withRedisAt(DOWN)],
    'an unknown host of Redis': [/correct the host in REDIS_URL/, withRedisAt(NO_HOST)],
    'a wrong password of Redis': [
      /correct the account and the password in REDIS_URL/,
      async () => {
        const found = await redisWith({ requirepass: 'swordfish' });
        return { ...found, REDIS_URL: `${found.REDIS_URL}`.replace('swordfish', 'haddock') };
      },
    ],
    'a full Redis': [/raise maxmemory/, () => redisWith({}, (redis) => redis.config('SET', 'maxmemory', '1'))],
    'a replica in REDIS_URL': [
      /point REDIS_URL to the master/,
      async () => {
        const master = await startRedisServer();
        return redisWith({ replicaof: `127.0.0.1 ${new URL(master.url).port}` }, (redis) =>
          eventually(async () => expect(await redis.info('replication')).to.include('master_link_status:up')),
        );
      },
    ],
    'a database number that Redis does not have': [
      /correct the database number/,
      async () => {
        const found = await redisWith({});
        return { ...found, REDIS_URL: `${found.REDIS_URL}/99` };
      },
    ],
  },
  redis_eviction: {
    'a Redis that evicts keys': [/noeviction/, () => redisWith({ 'maxmemory-policy': 'allkeys-lru' })],
  },
  redis_persistence: {
    'a Redis without persistence': [/appendonly/, () => redisWith({ appendonly: 'no' }), WARNING],
    'an interrupted backup of Redis': [
      /auto-aof-rewrite-percentage 100/,
      () => redisWith({ 'auto-aof-rewrite-percentage': '0' }),
      WARNING,
    ],
  },
  nodes: {
    'a frozen node': [/check the process, and restart it/, withNode({ seen: LONG_AGO, noted: LONG_AGO })],
    'a node that is not ready': [/that `\/readyz` on its operators’ listener names/, withNode({ state: 'not_ready' })],
    'no node runs': [/start the service/, () => migrated(), WARNING],
  },
  keys: {
    'a node with other keys': [
      /every node/,
      async () => ({
        ...(await withNode({ keys: '{0badc0de}' })()),
        GATEHOUSE_COOKIE_KEYS: 'a-cookie-key-of-the-tests-0123456789abcdef',
        GATEHOUSE_TOKEN_KEYS: 'a-token-key-of-the-tests-0123456789abcdefg',
      }),
    ],
  },
  node_versions: {
    'nodes of two versions': [/finish the upgrade/, withNode({ more: { version: '0.9.0' } }), WARNING],
  },
  node_settings: {
    'nodes with different settings': [
      /same settings file and variables/,
      withNode(
        { more: { settings: { 'tokens.access_token': '1h' } } },
        { more: { settings: { 'tokens.access_token': '2h' } } },
      ),
    ],
  },
  node_redis: {
    'a node with another Redis': [/the same REDIS_URL/, withNode({ more: { redis: 'abcdef1234' } })],
  },
  node_clocks: {
    'a node whose clock is ahead': [
      /synchronize both clocks/,
      withNode({ seen: "now() + interval '10 seconds'", noted: 'now()' }),
    ],
  },
  units: {
    'a failed unit': [
      /journalctl -u gatehouse@3002.service/,
      async () => {
        const PATH = temporaryDirectory('systemctl');
        const line = 'gatehouse@3002.service loaded failed failed Gatehouse';
        writeFileSync(path.join(PATH, 'systemctl'), `#!/bin/sh\necho "${line}"\n`, { mode: 0o755 });
        return { ...(await migrated()), PATH };
      },
    ],
  },
  public_address: {
    'no server at the public address': [/start the service/, () => migrated()],
    'an issuer that does not resolve': [
      /add it to the DNS/,
      async () => ({ ...(await withFile('server: {proxy_hops: 1}')), GATEHOUSE_ISSUER: `https://${NO_HOST}` }),
    ],
    'an issuer with https where plain HTTP is spoken': [
      /speaks TLS exactly if the issuer says https/,
      async () => {
        const plain = await answering(200);
        return {
          ...plain,
          ...file('server: {proxy_hops: 1}'),
          GATEHOUSE_ISSUER: `${plain.GATEHOUSE_ISSUER}`.replace('http:', 'https:'),
        };
      },
    ],
    'another server at the public address': [/forward every path of the issuer/, () => answering(404)],
    'a proxy that reaches no node': [/cannot reach a node: check with `gatehouse nodes`/, () => answering(502)],
    'a proxy that waits too short': [/did not wait for the answer of a node/, () => answering(504)],
    'a proxy that asks for a password': [/allow every path of the issuer/, () => answering(401)],
    'a port with TLS and an issuer with http': [
      /set GATEHOUSE_ISSUER \(issuer\) to the https origin/,
      () => answering(400, {}, 'The plain HTTP request was sent to HTTPS port'),
    ],
    'a proxy that redirects elsewhere': [
      /must be the address that answers without a redirect/,
      () => answering(301, { location: 'https://www.a.test/' }),
    ],
    'a proxy that changes the host name': [
      /pass the Host header on unchanged/,
      () =>
        answering(
          421,
          { 'x-request-id': 'req_0123456789abcdef' },
          'this service answers only at https://auth.a.test, see',
        ),
    ],
    'an overloaded store of a node': [
      /names the store; .* `pool_mode = session`/,
      () => answering(503, { 'x-request-id': 'req_0123456789abcdef' }),
    ],
  },
  mail: {
    'the mail server is down': [
      /the mail server is running/,
      async () => ({
        ...(await withFile('mail: {from: a@b.test}')),
        SMTP_URL: `smtp://${DOWN}`,
      }),
    ],
    'a wrong password of the mail server': [
      /compare the user name and password in SMTP_URL/,
      async () => {
        const mail = await startMailServer(['gatehouse', 'swordfish']);
        return { ...(await withFile('mail: {from: a@b.test}')), SMTP_URL: mail.url.replace('swordfish', 'haddock') };
      },
    ],
  },
};

describeOn([postgresServer, redisServer], 'the doctor, when something breaks', () => {
  before(async () => {
    server = await startPostgresServer();
    issuer = `http://localhost:${await freePort()}`;
    operatorsPort = `${await freePort()}`;
  });

  for (const [check, faults] of Object.entries(BREAKS)) {
    for (const [name, [remedy, make, status = 'problem']] of Object.entries(faults)) {
      it(`the doctor says what to do: ${name}`, async () => {
        const { troubles, output, exitCode } = await examine({
          GATEHOUSE_ISSUER: issuer,
          GATEHOUSE_OPERATORS_PORT: operatorsPort,
          ...(await make()),
        });
        expect(output).not.to.match(/haddock|swordfish/);
        const found = troubles.filter((one) => one.check === check && one.status === status);
        expect(found.map((one) => one.remedy).join('\n'), JSON.stringify(troubles, undefined, 1)).to.match(remedy);
        expect(exitCode).to.equal(troubles.some((one) => one.status === 'problem') ? 1 : 0);
      });
    }
  }
});
