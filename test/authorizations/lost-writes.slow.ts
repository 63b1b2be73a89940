/** Clients whose latest token response is unknown to Redis after a failover keep their connection. */
import { expect } from 'chai';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { type Tokens, tokensOf } from '../provider/partner-tokens.ts';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { exchangeCode, type Parameters, pkce, refresh, type TestClient } from '../support/oauth.ts';
import { ask, cutOff, portOf } from '../support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';

const ROUNDS = repeated(6);

describeOn([postgresServer, redisServer], 'a failover of Redis that loses the last writes', () => {
  let master: RedisServer;
  let replica: RedisServer;
  let proxy: TcpProxy;
  const start = startsOn('postgres');
  const on = startSeeded({
    async on(options) {
      const settings = { 'repl-diskless-sync-delay': '0' };
      master = await startRedisServer(settings);
      replica = await startRedisServer({ ...settings, replicaof: `127.0.0.1 ${portOf(master)}` });
      proxy = await startTcpProxy(Number(portOf(master)));
      return start({ ...options, settings: { storage: { redisUrl: `redis://127.0.0.1:${proxy.port}` } } });
    },
  });
  after(() => proxy?.close());

  /** Replication is ordered: a replica that has this value has everything written before. */
  async function untilReplicated(): Promise<void> {
    const marker = String(performance.now());
    await ask(master, 'SET', 'marker', marker);
    await eventually(async () => expect(await ask(replica, 'GET', 'marker')).to.equal(marker));
  }

  /** Kills the master after `work`, of whose writes the replica has received none, and uses the replica. */
  async function failOverWithout<Result>(work: () => Promise<Result>): Promise<Result> {
    await untilReplicated();
    await cutOff(replica, master);
    const result = await work();
    await master.kill();
    replica.resume();
    await ask(replica, 'REPLICAOF', 'NO', 'ONE');
    [master, replica] = [replica, master];
    proxy.leadTo(Number(portOf(master)));
    await replica.restart();
    await ask(replica, 'REPLICAOF', '127.0.0.1', portOf(master));
    await eventually(() => on.service.store.ping());
    return result;
  }

  const authorizationOf = (value: string): string => String(readValue(value)?.authorizationId);
  const rotationOf = async (value: string) =>
    (await on.service.store.readAuthorization(authorizationOf(value)))?.rotation;

  async function next(client: TestClient, { refreshToken }: Tokens): Promise<Tokens> {
    const answer = await refresh(on.issuer, client, refreshToken);
    expect(answer.status, answer.text).to.equal(200);
    return tokensOf(answer);
  }

  async function expectEnded({ accessToken }: Tokens, cause: string): Promise<void> {
    expect(await on.partner.isActive(accessToken)).to.equal(false);
    expect(await on.service.revocations.find(authorizationOf(accessToken))).to.include({ cause });
  }

  it(`after a lost refresh, clients refresh with either token, and a replay ends the authorization (${ROUNDS} rounds)`, async () => {
    const { confidential: client } = on.clients;
    for (let round = 0; round < ROUNDS; round += 1) {
      const [first, retried] = [await on.partner.tokens(client), await on.partner.tokens(client)];
      const { latest, lost } = await failOverWithout(async () => {
        let latest = first;
        for (let times = 0; times <= round % 3; times += 1) latest = await next(client, latest);
        return { latest, lost: await next(client, retried) };
      });
      expect(await rotationOf(first.accessToken), 'the lost rotation').to.equal(0);
      expect(await on.partner.isActive(latest.accessToken)).to.equal(true);
      const current = await next(client, latest);
      // Another process of the client, which has not received the new token, repeats the refresh.
      expect((await next(client, retried)).refreshToken).to.equal(lost.refreshToken);
      await next(client, lost);

      expect((await refresh(on.issuer, client, first.refreshToken)).status).to.equal(400);
      expect((await refresh(on.issuer, client, current.refreshToken)).status).to.equal(400);
      await expectEnded(current, 'refresh_token_replayed');
    }
  });

  it(`after a lost exchange, the client refreshes, or redeems the code again with the same proof (${ROUNDS} rounds)`, async () => {
    const { confidential: client, otherConfidential: other } = on.clients;
    const { verifier, parameters } = pkce();
    const redeem = (code: string, as: TestClient = client, more: Parameters = {}) =>
      exchangeCode(on.issuer, as, code, { redirect_uri: client.redirectUri, code_verifier: verifier, ...more });
    for (let round = 0; round < ROUNDS; round += 1) {
      const [code, repeated] = [await on.partner.code(client, parameters), await on.partner.code(client, parameters)];
      const [first, lost] = await failOverWithout(async () => [
        tokensOf(await redeem(code)),
        tokensOf(await redeem(repeated)),
      ]);
      expect(await rotationOf(code), 'the lost exchange').to.equal(-1);
      expect(await on.partner.isActive(first.accessToken)).to.equal(true);
      const current = await next(client, await next(client, first));
      expect((await redeem(code)).status).to.equal(400);
      await expectEnded(current, 'code_replayed');

      for (const { status, as, more } of [
        { status: 401, as: { ...client, secret: String(other.secret) } },
        { status: 400, as: other },
        { status: 400, more: { redirect_uri: `${client.redirectUri}/other` } },
        { status: 400, more: { code_verifier: undefined } },
        { status: 400, more: { code_verifier: pkce().verifier } },
      ]) {
        expect((await redeem(repeated, as, more)).status).to.equal(status);
      }
      const again = tokensOf(await redeem(repeated));
      expect(authorizationOf(again.accessToken)).to.equal(authorizationOf(lost.accessToken));
      expect(await on.partner.isActive(again.accessToken)).to.equal(true);
      expect((await redeem(repeated)).status).to.equal(400);
      await expectEnded(again, 'code_replayed');
    }
  });
});
