/** A code exchange that breaks off: what the client finds when it tries again. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, exchangeCode, refresh } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';

interface Exchange {
  readonly service: TestService;
  readonly seeded: Seed;
  readonly partner: PartnerTokens;
}

async function exchangeOn(service: TestService): Promise<Exchange> {
  const seeded = await seed(service);
  return { service, seeded, partner: partnerTokens(service.issuer, seeded) };
}

function expectAway({ status, body }: Answer): void {
  expect([status, body.error]).to.deep.equal([503, 'temporarily_unavailable']);
}

function expectUsed({ status, body }: Answer): void {
  expect([status, body.error]).to.deep.equal([400, 'invalid_grant']);
  expect(body.error_description).to.equal('authorization code was already used');
}

/**
 * @param harm lets the store keep no token of this kind.
 * @param undo lets it keep them again.
 */
async function expectCodeUnused(
  { service, seeded, partner }: Exchange,
  harm: () => Promise<unknown>,
  undo: () => Promise<unknown>,
): Promise<void> {
  const { issuer } = service;
  const { confidential } = seeded.clients;
  const code = await partner.code(confidential);
  await harm();
  try {
    expectAway(await exchangeCode(issuer, confidential, code));
    expectAway(await exchangeCode(issuer, confidential, code));
  } finally {
    await undo();
  }
  const exchanged = await exchangeCode(issuer, confidential, code);
  expect(exchanged.status, exchanged.text).to.equal(200);
  const { accessToken, refreshToken } = tokensOf(exchanged);
  const refreshed = await refresh(issuer, confidential, refreshToken);
  expect(refreshed.status, refreshed.text).to.equal(200);

  // And that was its one use.
  expectUsed(await exchangeCode(issuer, confidential, code));
  for (const token of [accessToken, tokensOf(refreshed).accessToken]) {
    expect(await partner.isActive(token)).to.equal(false);
  }
}

for (const { deployment, title, needs } of [
  { deployment: 'embedded', title: 'embedded', needs: [] },
  { deployment: 'postgres', title: 'PostgreSQL', needs: [postgresServer] },
] as const) {
  describeOn(needs, `an exchange that breaks off, ${title}`, () => {
    let exchange: Exchange;
    before(async () => {
      exchange = await exchangeOn(await startTestService({ deployment }));
      await exchange.service.database.query(
        `CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$`,
      );
    });
    after(() => exchange.service.close());

    for (const [what, table, condition] of [
      ['the access token', 'token_records', `WHEN (NEW.kind = 'access_token')`],
      ['the refresh token', 'refresh_families', ''],
    ] as const) {
      it(`because ${what} cannot be kept leaves the code as good as it was`, () =>
        expectCodeUnused(
          exchange,
          () =>
            exchange.service.database.query(
              `CREATE TRIGGER full_disk BEFORE INSERT ON ${table}
                FOR EACH ROW ${condition} EXECUTE FUNCTION disk_full()`,
            ),
          () => exchange.service.database.query(`DROP TRIGGER full_disk ON ${table}`),
        ));
    }
  });
}

describeOn([postgresServer, redisServer], 'an exchange that breaks off, Redis', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  let exchange: Exchange;
  let operator: Redis;

  before(async () => {
    redis = await startRedisServer();
    operator = new Redis(redis.url);
    proxy = await startTcpProxy(Number(new URL(redis.url).port));
    const storage = { redisUrl: `redis://127.0.0.1:${proxy.port}` };
    const service = await startTestService({
      deployment: 'postgres',
      patience: 1,
      settings: { storage },
    });
    exchange = await exchangeOn(service);
  });
  after(async () => {
    await exchange?.service.close();
    await proxy?.close();
    operator?.disconnect();
    await redis?.stop();
  });

  for (const [what, letters] of [
    ['the access token', 'cgisu'],
    ['the refresh token', 'cgisua'],
  ] as const) {
    it(`because ${what} cannot be kept leaves the code as good as it was`, () => {
      const allowed = [...letters].map((letter) => `~gh:${letter}:*`);
      return expectCodeUnused(
        exchange,
        () => operator.call('ACL', 'SETUSER', 'default', 'resetkeys', ...allowed),
        () => operator.call('ACL', 'SETUSER', 'default', 'allkeys'),
      );
    });
  }

  it('because nobody can say whether the code was used tells the next try that it was', async () => {
    const { service, seeded, partner } = exchange;
    const { confidential } = seeded.clients;
    const code = await partner.code(confidential);
    const nobody = await freePort();
    // Redis uses the code up, its answer is lost, and then Redis is away.
    const lost = proxy.breakAnswerTo('\r\n1\r\n$27\r\ngh:c:').then(() => proxy.leadTo(nobody));
    expectAway(await exchangeCode(service.issuer, confidential, code));
    await lost;
    proxy.leadTo(Number(new URL(redis.url).port));
    await eventually(() => service.store.ping());
    // RFC 6749 §4.1.2: whoever holds the tokens of the first use, if any, must lose them.
    expectUsed(await exchangeCode(service.issuer, confidential, code));
  });
});
