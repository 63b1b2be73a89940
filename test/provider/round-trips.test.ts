/** The commands that each request sends to Redis and PostgreSQL, as the servers report them. */
import { expect } from 'chai';
import pg from 'pg';
import { NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import { eventually } from '../support/eventually.ts';
import { clientCredentials, exchangeCode, introspect, postForm, refresh } from '../support/oauth.ts';
import { redisCommands } from '../support/redis-commands.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { granted, tokensOf } from './partner-tokens.ts';

describeOn([postgresServer, redisServer], 'store round trips', () => {
  let redis: RedisServer;
  /** A separate connection, for the observations of the tests. */
  let observer: pg.Client;
  const start = startsOn('postgres+redis');
  const on = startSeeded({
    async on(options) {
      redis = await startRedisServer();
      // Use a long window: one token is refreshed many times, which takes long on a slow machine.
      const tokens = { retryWindowSeconds: 3_600 };
      return start({ ...options, settings: { storage: { redisUrl: redis.url }, tokens } });
    },
  });

  before(async () => {
    observer = new pg.Client({ connectionString: on.service.settings.storage.databaseUrl });
    await observer.connect();
    // Exchange and refresh once, because the first ones also load their scripts into Redis.
    const { refreshToken } = await on.partner.tokens(on.clients.confidential);
    await refresh(on.issuer, on.clients.confidential, refreshToken);
  });

  after(async () => {
    await observer?.end();
  });

  const commandsOf = async (work: () => Promise<unknown>): Promise<string[]> =>
    (await redisCommands([redis.url], work)).map(({ name }) => name);

  /** The last query on each connection of the service to PostgreSQL, and its time. */
  async function lastQueries(): Promise<unknown[]> {
    const { rows } = await observer.query(
      `SELECT pid, query_start::text, query FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND application_name <> 'gatehouse changes'
        ORDER BY pid`,
    );
    return rows;
  }

  /**
   * Repeats the attempt, because during one of them background work may query, or an idle connection may be closed: a
   * short attempt meets it seldom, however slow the machine is.
   */
  function expectNoQueryBy(work: () => Promise<unknown>): Promise<void> {
    return eventually(async () => {
      const before = await lastQueries();
      await work();
      expect(before).to.include.deep.members(await lastQueries());
    });
  }

  it('exchange, refresh and retry need two Redis commands; issuing or introspecting a machine token needs one', async () => {
    const { confidential, machine } = on.clients;
    const code = await on.partner.code(confidential);
    const { refreshToken } = await on.partner.tokens(confidential);
    const { accessToken } = tokensOf(await clientCredentials(on.issuer, machine));
    const retried = () => refresh(on.issuer, confidential, refreshToken);
    const steps: readonly (readonly [commands: string[], () => Promise<{ readonly status: number }>])[] = [
      [['mget', 'evalsha'], () => exchangeCode(on.issuer, confidential, code)],
      [['mget', 'evalsha'], retried],
      [['mget', 'evalsha'], retried],
      [['set'], () => clientCredentials(on.issuer, machine)],
      [['mget'], () => introspect(on.issuer, on.clients.resourceServer, accessToken)],
    ];
    for (const [expected, step] of steps) {
      const commands = await commandsOf(async () => expect((await step()).status).to.equal(200));
      expect(commands).to.deep.equal(expected);
    }
  });

  it('an introspection sends one Redis command; the first use of new tokens is recorded in the background', async () => {
    const { confidential } = on.clients;
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const older = tokensOf(await refresh(on.issuer, confidential, refreshToken));
    const next = tokensOf(await refresh(on.issuer, confidential, older.refreshToken));
    for (const token of [accessToken, older.accessToken]) {
      expect(await commandsOf(() => on.partner.isActive(token))).to.deep.equal(['mget']);
    }
    const recorded = () =>
      eventually(async () => {
        const [, id = ''] = /^gate_at_(.{22})/.exec(accessToken) ?? [];
        expect(await on.service.store.readAuthorization(id)).to.include({ isConfirmed: true });
      });
    await on.partner.isActive(next.accessToken);
    await recorded();
    const again = await commandsOf(() => on.partner.isActive(next.accessToken));
    expect(again).to.deep.equal(['mget']);
  });

  it('parallel reads are sent as one Redis command, and each caller gets its own record', async () => {
    const { confidential } = on.clients;
    const codes = [await on.partner.code(confidential), await on.partner.code(confidential)];
    const ids = codes.map((code) => /^gate_ac_(.{22})/.exec(code)?.[1] ?? '');
    const asked = [ids[0], 'of-no-record-at-all-12', ids[1], ids[0]] as const;
    const commands = await commandsOf(async () => {
      const found = await Promise.all(asked.map((id = '') => on.service.store.readAuthorization(id)));
      const [first, missing, second, again] = found.map((record) => record?.secret);
      expect([first, missing]).to.deep.equal([again, undefined]);
      expect(second).to.be.a('string').and.not.equal(first);
    });
    expect(commands).to.deep.equal(['mget']);
  });

  it('with warm caches, introspection and token requests do not query PostgreSQL', async () => {
    const { accessToken, refreshToken } = await on.partner.tokens(on.clients.confidential);
    const { id: clientId } = on.clients.confidential;
    const connection = { accountId: on.seeded.person.accountId, clientId, limit: NO_LIMIT };
    await on.service.connections.limit(connection, { ...NO_LIMIT, isReadOnly: true });
    const requests = async (): Promise<void> => {
      expect(await on.partner.isActive(accessToken)).to.equal(true);
      await granted(refresh(on.issuer, on.clients.confidential, refreshToken));
      const machine = tokensOf(await clientCredentials(on.issuer, on.clients.machine));
      expect(await on.partner.isActive(machine.accessToken)).to.equal(true);
    };
    await requests();
    // Write the uses now, because they are otherwise written every few seconds in the background.
    await on.service.lastUsed.flush();
    await expectNoQueryBy(requests);

    // Prove that the check works: after a change the next requests do query.
    await on.service.clients.suspend(on.clients.machine.id);
    await on.service.clients.resume(on.clients.machine.id);
    const changed = await lastQueries();
    await requests();
    expect(await lastQueries()).to.not.deep.equal(changed);
  });

  it('introspecting an API key sends no Redis command, and with warm caches no PostgreSQL query', async () => {
    const { value } = await apiKeyOf(on.service, on.seeded.person);
    expect(await on.partner.isActive(value)).to.equal(true);
    await on.service.lastUsed.flush();
    await expectNoQueryBy(async () => {
      const commands = await commandsOf(async () => expect(await on.partner.isActive(value)).to.equal(true));
      expect(commands).to.deep.equal([]);
    });
  });
});

describeOn([postgresServer], 'tokens in PostgreSQL', () => {
  const on = startSeeded({ on: 'postgres' });

  it('an exchange, a refresh and a revocation each write in one transaction, so that none is ever half done', async () => {
    const { confidential } = on.clients;
    const { database } = on.service;
    const code = await on.partner.code(confidential);
    await database.query('CREATE TABLE writes (target text, in_transaction xid8 DEFAULT pg_current_xact_id())');
    await database.query(
      `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO writes VALUES (TG_OP || ' ' || TG_TABLE_NAME); RETURN NULL; END $$`,
    );
    for (const table of ['authorizations', 'ended_authorizations']) {
      await database.query(
        `CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON ${table} FOR EACH ROW EXECUTE FUNCTION note()`,
      );
    }
    async function written(answer: { readonly status: number }): Promise<unknown> {
      expect(answer.status).to.equal(200);
      const rows = await database.query<{ target: string; transaction: string }>(
        'DELETE FROM writes RETURNING target, in_transaction::text AS transaction',
      );
      return [rows.map(({ target }) => target).sort(), new Set(rows.map(({ transaction }) => transaction)).size];
    }
    const exchanged = await exchangeCode(on.issuer, confidential, code);
    expect(await written(exchanged)).to.deep.equal([['UPDATE authorizations'], 1]);
    const { refreshToken: token } = tokensOf(exchanged);
    const refreshed = await refresh(on.issuer, confidential, token);
    expect(await written(refreshed)).to.deep.equal([['UPDATE authorizations'], 1]);
    const revoked = await postForm(on.issuer, '/oauth/revoke', { token }, { client: confidential });
    const end = ['DELETE authorizations', 'INSERT ended_authorizations'];
    expect(await written(revoked)).to.deep.equal([end, 1]);
  });
});
