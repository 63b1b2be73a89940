/** Reports of leaked values: what is answered to invalid ones, and while a store is away. */
import { expect } from 'chai';
import { currentRequest } from '../../src/base/current-request.ts';
import { withChecksum } from '../../src/base/random-id.ts';
import type { Database } from '../../src/storage/queries.ts';
import { StorageUnavailable } from '../../src/storage/storage-unavailable.ts';
import { LEAK_SENDERS, reportLeaks } from '../authorizations/leak-reports.ts';
import { refuseChanges } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { counted, scrape } from '../support/metrics.ts';
import { clientCredentials } from '../support/oauth.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { redisCommands } from '../support/redis-commands.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addTestClient, apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';

const ABSENT = {
  access_token: withChecksum(`gate_at_${'x'.repeat(89)}`),
  code: withChecksum(`gate_ac_${'x'.repeat(65)}`),
  machine_token: withChecksum(`gate_mt_${'x'.repeat(43)}`),
  api_key: withChecksum(`gate_key_${'x'.repeat(43)}`),
  client_secret: withChecksum(`gate_cs_${'x'.repeat(43)}`),
};

describe('requests that report leaked values', () => {
  const on = startSeeded({ settings: { senders: LEAK_SENDERS } });
  const isMachineSecretValid = async () => (await clientCredentials(on.issuer, on.clients.machine)).status === 200;

  it('a report that is not a JSON list or has more than 1,000 values is refused as a whole', async () => {
    const { secret: token = '' } = on.clients.machine;
    for (const body of ['', 'no json', '{"token":"x"}', 'null', `[{"token":"${token}"}`]) {
      const { status, body: answer } = await reportLeaks(on.service, body);
      expect({ status, code: answer.code }, body).to.deep.equal({
        status: 400,
        code: 'report_invalid',
      });
    }
    const { status, body } = await reportLeaks(on.service, Array(1_001).fill({ token }));
    expect({ status, code: body.code }).to.deep.equal({ status: 413, code: 'too_many_values' });
    expect(await isMachineSecretValid()).to.equal(true);
    const most = await reportLeaks(on.service, Array(1_000).fill({ token: ABSENT.api_key }));
    expect(most.body).to.deep.equal({ received: 1_000, malformed: [] });
  });

  it('malformed entries are named by their index, and the others are used', async () => {
    const odd = [null, 7, 'x', [], {}, { token: 7 }, { token: 'ghp_0123' }, { token: `${ABSENT.code}x` }];
    const token = ABSENT.api_key;
    const places = [
      { token, url: 7 },
      { token, source: {} },
      { token, source: 'scan', url: 7 },
      { token, url: null, source: '' },
    ];
    const { status, body } = await reportLeaks(on.service, [...odd, ...places]);
    expect(status).to.equal(200);
    expect(body.received).to.equal(1);
    const malformed = body.malformed as { index: number; message: string }[];
    expect(malformed.map(({ index }) => index)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const { message } of malformed) expect(message).to.match(/^(token|url or source) /);
  });

  /** Reports the value while statements that begin like this fail, then again while none fails. */
  async function reportTwice(token: string, failing: RegExp): Promise<void> {
    const database = on.service.database as { -readonly [Key in keyof Database]: Database[Key] };
    const { query } = database;
    database.query = (sql, ...values) =>
      failing.test(sql)
        ? Promise.reject(new StorageUnavailable('postgresql', new Error('cut')))
        : query(sql, ...values);
    await reportLeaks(on.service, [{ token }]);
    Object.assign(database, { query });
    expect((await reportLeaks(on.service, [{ token }])).status).to.equal(200);
  }

  it('while some statements fail, the operator is notified of a leaked secret even if its client cannot be read again', async () => {
    await reportTwice(on.clients.confidential.secret ?? '', /^\s*SELECT.*FROM clients c/s);
    expect(counted(await scrape(on.service), 'gatehouse_leaked_values_total')).to.include({
      '{kind="client_secret"}': 1,
    });
  });

  it('one statement both revokes a leaked machine token and records this for the owner', async () => {
    const { accountId: ownerAccountId } = on.seeded.other;
    const options = { kind: 'machine', ownerAccountId } as const;
    const machine = await addTestClient(on.service, 'Owned machine', options);
    const { body } = await clientCredentials(on.issuer, machine);
    await reportTwice(String(body.access_token), /^\s*INSERT INTO activity/);
    const [entry] = await on.service.activity.of(ownerAccountId, { limit: 1 });
    expect(entry).to.deep.include({ action: 'tokens_revoked', actor: 'service' });
    expect(entry?.details).to.include({ cause: 'leaked', client_name: 'Owned machine' });
  });
});

describeOn([postgresServer, redisServer], 'reports of leaked values and the stores', () => {
  let postgres: PostgresServer;
  let redis: RedisServer;
  const start = startsOn('postgres+redis');
  const on = startSeeded({
    async on(options) {
      [postgres, redis] = await Promise.all([startPostgresServer(), startRedisServer()]);
      const storage = { databaseUrl: postgres.url, redisUrl: redis.url };
      return start({ ...options, settings: { senders: LEAK_SENDERS, storage } });
    },
  });

  /** Returns how many keys the service reads in Redis, and how often requests query the database, during the work. */
  async function storeReads(work: () => Promise<unknown>): Promise<number> {
    let count = 0;
    const database = on.service.database as { -readonly [Key in keyof Database]: Database[Key] };
    const { query, transaction } = database;
    // A node also asks outside of requests: its heartbeat, for example.
    const countOne = () => {
      if (currentRequest()) count += 1;
    };
    database.query = (...asked) => {
      countOne();
      return query(...asked);
    };
    database.transaction = (change) => {
      countOne();
      return transaction(change);
    };
    const commands = await redisCommands([redis.url], work);
    Object.assign(database, { query, transaction });
    const reads = commands.filter(({ name }) => /^m?get$/.test(name));
    return reads.reduce((sum, { values }) => sum + values.length, count);
  }

  it('each value in a leak report is read from the stores at most once, even if it is repeated or was revoked', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const machine = await clientCredentials(on.issuer, on.clients.machine);
    const tokens = [accessToken, String(machine.body.access_token)];
    const report = (list: readonly string[]) => () =>
      reportLeaks(
        on.service,
        list.map((token) => ({ token })),
      );
    const absent = [ABSENT.access_token, ABSENT.machine_token];
    const inDatabase = [ABSENT.api_key, ABSENT.client_secret];
    for (const token of [...absent, ...inDatabase]) {
      expect(await storeReads(report([token])), token).to.equal(1);
    }
    expect(await storeReads(report([...absent, ...inDatabase, ...absent]))).to.equal(4);
    await report(tokens)();
    expect(await storeReads(report(tokens)), 'ended').to.equal(2);
  });

  it('an error that a retry cannot fix is answered with 500, without the advice to retry', async () => {
    const { database } = on.service;
    const key = await apiKeyOf(on.service, on.seeded.person);
    const accept = await refuseChanges(database, 'UPDATE OR DELETE ON api_keys');
    const { status, text } = await reportLeaks(on.service, [{ token: key.value }]);
    await accept();
    expect(status).to.equal(500);
    expect(text).to.not.include('Send the same report again');
  });

  it('if a store fails during a report, the answer is 503, and the same report can be sent again', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const list = [accessToken, on.clients.machine.secret ?? ''].map((token) => ({ token }));
    await postgres.kill();
    const { status, headers, body, text } = await reportLeaks(on.service, list);
    expect({ status, code: body.code }).to.deep.equal({ status: 503, code: 'not_done' });
    expect(headers.get('retry-after')).to.equal('5');
    expect(text).to.include('Send the same report again').and.not.include(accessToken);
    expect(on.service.logLines.join()).not.to.include(accessToken);
    await postgres.restart();
    await eventually(async () => {
      expect((await reportLeaks(on.service, list)).status).to.equal(200);
    });
    expect(await on.partner.isActive(accessToken)).to.equal(false);
    expect((await clientCredentials(on.issuer, on.clients.machine)).status).to.equal(401);
  });

  it('a leaked client secret is recorded as leaked even if Redis is down and the report also contains tokens', async () => {
    const machine = await addTestClient(on.service, 'Beside tokens', { kind: 'machine' });
    const tokens = Array(20)
      .fill('')
      .map((_, index) => withChecksum(`gate_mt_${String(index).padStart(43, 'x')}`));
    await redis.kill();
    const { status } = await reportLeaks(
      on.service,
      [...tokens, machine.secret ?? ''].map((token) => ({ token })),
    );
    expect(status).to.equal(503);
    const [secret] = (await on.service.clients.find(machine.id))?.secrets ?? [];
    expect(secret?.leakedAt).to.be.instanceOf(Date);
  });
});
