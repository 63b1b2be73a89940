/** A code exchange that breaks off: what the client finds when it tries again. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  basic,
  clientCredentials,
  exchangeCode,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const away = (answer: Answer) => expectRefusal(answer, 503, 'temporarily_unavailable');
const used = (answer: Answer) =>
  expectRefusal(answer, 400, 'invalid_grant', 'authorization code was already used');

/**
 * @param harm lets the store keep no authorization.
 * @param undo lets it keep them again.
 */
async function expectCodeUnused(
  on: Seeded,
  harm: () => Promise<unknown>,
  undo: () => Promise<unknown>,
): Promise<void> {
  const { confidential } = on.clients;
  const code = await on.partner.code(confidential);
  const exchange = () => exchangeCode(on.issuer, confidential, code);
  await harm();
  try {
    for (let times = 0; times < 2; times += 1) away(await exchange());
  } finally {
    await undo();
  }
  const exchanged = await exchange();
  expect(exchanged.status, exchanged.text).to.equal(200);
  // And that was its one use.
  used(await exchange());
  expect(await on.partner.isActive(tokensOf(exchanged).accessToken)).to.equal(false);
}

describe('an exchange that breaks off, PostgreSQL', () => {
  const on = startSeeded({ on: postgresServer.program === undefined ? 'embedded' : 'postgres' });

  it('because nothing can be kept leaves the code as good as it was', async () => {
    const { database } = on.service;
    await database.query(
      `CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$`,
    );
    const trigger = 'full_disk BEFORE INSERT OR UPDATE ON authorizations';
    await expectCodeUnused(
      on,
      () => database.query(`CREATE TRIGGER ${trigger} EXECUTE FUNCTION disk_full()`),
      () => database.query('DROP TRIGGER full_disk ON authorizations'),
    );
  });
});

describeOn([postgresServer, redisServer], 'an exchange that breaks off, Redis', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  let operator: Redis;
  const start = startsOn('postgres');
  const on = startSeeded({
    async on(options) {
      redis = await startRedisServer();
      operator = new Redis(redis.url);
      proxy = await startTcpProxy(Number(new URL(redis.url).port));
      const storage = { redisUrl: `redis://127.0.0.1:${proxy.port}` };
      return start({ ...options, patience: 1, settings: { storage } });
    },
  });
  after(async () => {
    operator?.disconnect();
    await proxy?.close();
  });

  it('because nothing can be kept leaves the code as good as it was', () => {
    const others = [...'misou'].map((letter) => `~gh:${letter}:*`);
    return expectCodeUnused(
      on,
      () => operator.call('ACL', 'SETUSER', 'default', 'resetkeys', ...others),
      () => operator.call('ACL', 'SETUSER', 'default', 'allkeys'),
    );
  });

  it('because nobody can say whether the code was used tells the next try that it was', async () => {
    const { confidential } = on.clients;
    // Redis knows the script then, and is asked once.
    await on.partner.tokens(confidential);
    const code = await on.partner.code(confidential);
    const nobody = await freePort();
    // Redis uses the code up, its answer is lost, and then Redis is away.
    const lost = proxy.breakAnswerTo('evalsha').then(() => proxy.leadTo(nobody));
    away(await exchangeCode(on.issuer, confidential, code));
    await lost;
    proxy.leadTo(Number(new URL(redis.url).port));
    await eventually(() => on.service.store.ping());
    // RFC 6749 §4.1.2: whoever holds the tokens of the first use, if any, must lose them.
    used(await exchangeCode(on.issuer, confidential, code));
  });

  /** Revokes; Redis does it, its answer is lost, and where `isAwayThen` it is away after that. */
  async function revokeUnheard(accessToken: string, isAwayThen: boolean): Promise<void> {
    const nobody = await freePort();
    const lost = proxy.breakAnswerTo('getdel').then(() => isAwayThen && proxy.leadTo(nobody));
    const { status } = await revokeCurrent(on.issuer, accessToken);
    await lost;
    proxy.leadTo(Number(new URL(redis.url).port));
    await eventually(() => on.service.store.ping());
    expect(status).to.equal(isAwayThen ? 503 : 204);
  }

  it('is the same with a revocation: it is done and recorded, whatever was answered', async () => {
    for (const isAwayThen of [false, true]) {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const [, id = ''] = /^gate_at_(.{22})/.exec(accessToken) ?? [];
      await revokeUnheard(accessToken, isAwayThen);
      await eventually(async () => {
        await on.service.revocations.close();
        expect(await on.service.revocations.find(id)).to.include({ cause: 'client_revoked' });
      });
      expect(await on.partner.isActive(accessToken)).to.equal(false);
    }
  });

  it('and a replay, answered as one, has ended it and is recorded', async () => {
    const { confidential: client } = on.clients;
    const restored = Number(new URL(redis.url).port);
    const idOf = (code: string): string => /^gate_ac_(.{22})/.exec(code)?.[1] ?? '';
    for (const kind of ['code', 'refresh_token'] as const) {
      for (const isAwayThen of [false, true]) {
        const code = await on.partner.code(client);
        const first = tokensOf(await exchangeCode(on.issuer, client, code));
        for (let { refreshToken } = first, turn = 0; turn < 2; turn += 1) {
          ({ refreshToken } = tokensOf(await refresh(on.issuer, client, refreshToken)));
        }
        const nobody = await freePort();
        const lost = proxy.breakAnswerTo('evalsha').then(() => isAwayThen && proxy.leadTo(nobody));
        const replay = () =>
          kind === 'code'
            ? exchangeCode(on.issuer, client, code)
            : refresh(on.issuer, client, first.refreshToken);
        const answer = await replay();
        await lost;
        proxy.leadTo(restored);
        await eventually(() => on.service.store.ping());
        expect(answer.status).to.equal(isAwayThen ? 503 : 400);
        if (isAwayThen) expect((await replay()).status).to.equal(400);
        const found = await on.service.revocations.find(idOf(code));
        expect(found?.cause, `${kind}, away: ${isAwayThen}`).to.equal(`${kind}_replayed`);
        expect(await on.partner.isActive(first.accessToken)).to.equal(false);
      }
    }
    // A retry is none, whoever hears of its answer.
    const code = await on.partner.code(client);
    const { refreshToken } = tokensOf(await exchangeCode(on.issuer, client, code));
    expect((await refresh(on.issuer, client, refreshToken)).status).to.equal(200);
    const nobody = await freePort();
    const lost = proxy.breakAnswerTo('evalsha').then(() => proxy.leadTo(nobody));
    away(await refresh(on.issuer, client, refreshToken));
    await lost;
    proxy.leadTo(restored);
    await eventually(() => on.service.store.ping());
    await on.service.revocations.close();
    expect(await on.service.revocations.find(idOf(code))).to.equal(undefined);
    expect((await refresh(on.issuer, client, refreshToken)).status).to.equal(200);
  });

  it('and who remembers answers about a machine is told, whatever was answered', async () => {
    const { machine, resourceServer } = on.clients;
    const { body } = await clientCredentials(on.issuer, machine);
    const headers = { authorization: basic(resourceServer) };
    const stream = await fetch(new URL('/oauth/introspect/changes', on.issuer), { headers });
    await revokeUnheard(String(body.access_token), true);
    let said = '';
    for await (const chunk of stream.body ?? []) {
      said += Buffer.from(chunk).toString();
      // One word a second comes by itself.
      if (said.includes(machine.id) || said.split('\n\n').length > 20) break;
    }
    expect(said).to.include(`data: ${machine.id}\n`);
  });
});
