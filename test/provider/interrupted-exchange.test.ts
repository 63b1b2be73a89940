/** Requests whose answer from Redis is lost: what they end stays ended. That an exchange can be repeated, see `redis.test.ts`. */
import { expect } from 'chai';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { type Answer, basic, clientCredentials, exchangeCode, refresh, revokeCurrent } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { SHORT_TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const unavailable = (answer: Answer) => expectRefusal(answer, 503, 'temporarily_unavailable');

describeOn([postgresServer, redisServer], 'a lost answer of Redis', () => {
  let redis: RedisServer;
  let proxy: TcpProxy;
  const start = startsOn('postgres');
  const on = startSeeded({
    async on(options) {
      redis = await startRedisServer();
      proxy = await startTcpProxy(Number(new URL(redis.url).port));
      const storage = { redisUrl: `redis://127.0.0.1:${proxy.port}` };
      return start({ ...options, timeoutFactor: SHORT_TIMEOUT_FACTOR, settings: { storage } });
    },
  });
  after(async () => {
    await proxy?.close();
  });

  /**
   * Runs `work` while the answer of Redis to its next `command` is lost. @param isAwayThen true if Redis is
   * unreachable then, until `work` has ended
   */
  async function withLostAnswer<Result>(
    command: string,
    isAwayThen: boolean,
    work: () => Promise<Result>,
  ): Promise<Result> {
    const closed = await freePort();
    const lost = proxy.breakAnswerTo(command).then(() => isAwayThen && proxy.leadTo(closed));
    const result = await work();
    await lost;
    proxy.leadTo(Number(new URL(redis.url).port));
    await eventually(() => on.service.store.ping());
    return result;
  }

  async function revokeWithLostAnswer(accessToken: string, isAwayThen: boolean): Promise<void> {
    const { status } = await withLostAnswer('getdel', isAwayThen, () => revokeCurrent(on.issuer, accessToken));
    expect(status).to.equal(204);
  }

  it('a revocation takes effect and is recorded, even if the answer of Redis was lost', async () => {
    for (const isAwayThen of [false, true]) {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const [, id = ''] = /^gate_at_(.{22})/.exec(accessToken) ?? [];
      await revokeWithLostAnswer(accessToken, isAwayThen);
      expect(await on.service.revocations.find(id)).to.include({ cause: 'client_revoked' });
      expect(await on.partner.isActive(accessToken)).to.equal(false);
    }
  });

  it('the replay of a code ends the authorization and is recorded, even if the answer of Redis was lost', async () => {
    const { confidential: client } = on.clients;
    const idOf = (code: string): string => /^gate_ac_(.{22})/.exec(code)?.[1] ?? '';
    for (const [kind, isAwayThen] of [
      ['code', true],
      ['refresh_token', false],
    ] as const) {
      const code = await on.partner.code(client);
      const first = tokensOf(await exchangeCode(on.issuer, client, code));
      for (let { refreshToken } = first, turn = 0; turn < 2; turn += 1) {
        ({ refreshToken } = tokensOf(await refresh(on.issuer, client, refreshToken)));
      }
      const replay = () =>
        kind === 'code' ? exchangeCode(on.issuer, client, code) : refresh(on.issuer, client, first.refreshToken);
      const answer = await withLostAnswer('evalsha', isAwayThen, replay);
      expect(answer.status).to.equal(isAwayThen ? 503 : 400);
      if (isAwayThen) expect((await replay()).status).to.equal(400);
      const found = await on.service.revocations.find(idOf(code));
      expect(found?.cause, kind).to.equal(`${kind}_replayed`);
      expect(await on.partner.isActive(first.accessToken)).to.equal(false);
    }
    // An honest retry is not a replay, even if Redis's answer is lost.
    const code = await on.partner.code(client);
    const { refreshToken } = tokensOf(await exchangeCode(on.issuer, client, code));
    expect((await refresh(on.issuer, client, refreshToken)).status).to.equal(200);
    unavailable(await withLostAnswer('evalsha', true, () => refresh(on.issuer, client, refreshToken)));
    expect(await on.service.revocations.find(idOf(code))).to.equal(undefined);
    expect((await refresh(on.issuer, client, refreshToken)).status).to.equal(200);
  });

  it('a revoked machine token is announced to resource servers, even if the answer of Redis was lost', async () => {
    const { machine, resourceServer } = on.clients;
    const { body } = await clientCredentials(on.issuer, machine);
    const headers = { authorization: basic(resourceServer) };
    const stream = await fetch(new URL('/oauth/introspect/changes', on.issuer), { headers });
    await revokeWithLostAnswer(String(body.access_token), true);
    let received = '';
    for await (const chunk of stream.body ?? []) {
      received += Buffer.from(chunk).toString();
      // Stop after 20 events, because heartbeats arrive, too.
      if (received.includes(machine.id) || received.split('\n\n').length > 20) break;
    }
    expect(received).to.include(`data: ${machine.id}\n`);
  });
});
