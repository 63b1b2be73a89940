/** An acknowledged revocation is a fact in PostgreSQL: nothing that happens to Redis undoes it. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { createEndings, type Endings } from '../../src/authorizations/endings.ts';
import type { End } from '../../src/authorizations/revocations.ts';
import { readValue } from '../../src/authorizations/token-formats.ts';
import { operatorFor, refusalFrom, valueFrom } from '../operator/run-operator.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import {
  basic,
  clientCredentials,
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';

describeOn([postgresServer, redisServer], 'an acknowledged revocation', () => {
  let redis: RedisServer;
  let admin: Redis;
  let other: TestService;
  let endings: Endings;
  const start = startsOn('postgres');
  const on = startSeeded({
    async on(options) {
      redis = await startRedisServer({ appendfsync: 'always' });
      return start({ ...options, settings: { storage: { redisUrl: redis.url } } });
    },
  });

  before(async () => {
    other = await start({ sharing: on.service });
    admin = new Redis(redis.url);
    admin.on('error', () => {});
    const { store, revocations, changes } = on.service;
    endings = createEndings({ store, revocations, changes });
  });
  beforeEach(expectReady);
  after(() => admin.disconnect());

  const nodes = (): readonly TestService[] => [on.service, other];

  /** Asks the stores themselves, because /readyz may send an answer that is a second old. */
  function expectReady(): Promise<void> {
    return eventually(async () => {
      for (const { store } of nodes()) await store.ping();
      await admin.ping();
    });
  }

  const idOf = (value: string): string => readValue(value)?.authorizationId ?? '';
  const issueTokens = () => on.partner.tokens(on.clients.confidential);
  const issueMachineToken = async () => tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;

  async function endOf(value: string): Promise<End> {
    const authorization = await on.service.store.readAuthorization(idOf(value));
    if (!authorization) throw new Error('the authorization was not found');
    return { authorization: { id: idOf(value), ...authorization }, cause: 'leaked', actor: 'service' };
  }

  /** Copies the records of all tokens. @returns a function that restores them */
  async function copyRecords(): Promise<() => Promise<void>> {
    const keys = [...(await admin.keys('gh:z:*')), ...(await admin.keys('gh:m:*'))];
    const copied = await Promise.all(
      keys.map(async (key) => [key, await admin.pttl(key), await admin.dumpBuffer(key)] as const),
    );
    return async () => {
      for (const [key, ttl, value] of copied) await admin.restore(key, ttl, value, 'REPLACE');
    };
  }

  /** Returns what introspection and forward authentication of this node say about the token. */
  async function decisionsOn(issuer: string, token: string): Promise<readonly unknown[]> {
    const { resourceServer } = on.clients;
    const { body } = await introspect(issuer, resourceServer, token);
    const headers = { authorization: `Bearer ${token}`, 'x-gatehouse-authorization': basic(resourceServer) };
    return [body.active, (await fetch(`${issuer}/oauth/verify`, { headers })).status];
  }

  async function expectDecisions(token: string, isActive: boolean): Promise<void> {
    const expected = isActive ? [true, 200] : [false, 401];
    expect(await decisionsOn(on.issuer, token), 'at the node that was asked').to.deep.equal(expected);
    await eventually(async () => {
      expect(await decisionsOn(other.issuer, token), 'at the other node').to.deep.equal(expected);
    });
  }

  it('a revoked authorization stays refused when its record returns to Redis, and other authorizations stay active', async () => {
    const { confidential } = on.clients;
    const [ended, active] = [await issueTokens(), await issueTokens()];
    const code = await on.partner.code(confidential);
    const [machineToken, activeMachineToken] = [await issueMachineToken(), await issueMachineToken()];
    const putBack = await copyRecords();
    for (const token of [ended.accessToken, machineToken]) {
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    }
    await endings.end(await endOf(code));

    await putBack();
    for (const value of [ended.accessToken, code]) {
      expect(await on.service.store.readAuthorization(idOf(value)), 'the record is back').to.be.ok;
    }
    for (const token of [ended.accessToken, machineToken]) await expectDecisions(token, false);
    for (const token of [active.accessToken, activeMachineToken]) await expectDecisions(token, true);
    for (const answer of [
      await refresh(on.issuer, confidential, ended.refreshToken),
      await exchangeCode(on.issuer, confidential, code),
    ]) {
      expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_grant']);
    }
    expect((await refresh(on.issuer, confidential, active.refreshToken)).status).to.equal(200);
  });

  it('`revoke --token` refuses a revoked token, even if its record has returned to Redis', async () => {
    const run = operatorFor(on.service);
    const tokens = [(await issueTokens()).accessToken, await issueMachineToken()];
    const putBack = await copyRecords();
    for (const token of tokens) await valueFrom(run, `revoke --token ${token}`);
    await putBack();
    for (const token of tokens) {
      expect((await refusalFrom(run, `revoke --token ${token}`)).code).to.equal('token_not_alive');
    }
  });

  it('a client can revoke a machine token that Redis has lost, and the token stays revoked if Redis is restored', async () => {
    const { machine } = on.clients;
    const thief = await addTestClient(on.service, 'Thief', { kind: 'machine' });
    const [lost, active] = [await issueMachineToken(), await issueMachineToken()];
    const putBack = await copyRecords();
    for (const key of await admin.keys('gh:m:*')) await admin.del(key);
    const revokeBy = async (client: TestClient, token: string) =>
      expect((await postForm(on.issuer, '/oauth/revoke', { token }, { client })).status).to.equal(200);
    for (const token of [lost, active]) await revokeBy(thief, token);
    await revokeBy(machine, lost);
    await putBack();
    await expectDecisions(lost, false);
    await expectDecisions(active, true);
    // What another client said of a lost token does not keep its own client from ending it.
    await revokeBy(machine, active);
    await putBack();
    await expectDecisions(active, false);
  });

  it('a token revoked during a Redis outage stays revoked when Redis restarts with the record of the token', async () => {
    const [{ accessToken }, active] = [await issueTokens(), await issueTokens()];
    const [end, machineToken] = [await endOf(accessToken), await issueMachineToken()];
    const expiresAt = Math.floor(Date.now() / 1_000) + 3_600;
    const deleted = await addTestClient(on.service, 'Deleted Meanwhile');
    const ofDeleted = await on.partner.tokens(deleted);
    await redis.kill();
    await on.service.clients.remove(deleted.id);
    await endings.end(end);
    await endings.end({ machineToken, clientId: on.clients.machine.id, expiresAt });
    await redis.restart();
    await expectReady();
    expect(await on.service.store.readAuthorization(idOf(accessToken)), 'the record is back').to.be.ok;
    for (const token of [accessToken, machineToken, ofDeleted.accessToken]) await expectDecisions(token, false);
    await expectDecisions(active.accessToken, true);
  });

  it('after Redis has lost everything, tokens are refused like unknown ones, and new ones are issued', async () => {
    const { confidential, resourceServer } = on.clients;
    const code = await on.partner.code(confidential);
    const [{ accessToken, refreshToken }, machineToken] = [await issueTokens(), await issueMachineToken()];
    await admin.flushall();
    for (const answer of [
      await exchangeCode(on.issuer, confidential, code),
      await refresh(on.issuer, confidential, refreshToken),
    ]) {
      expect([answer.status, answer.body.error]).to.deep.equal([400, 'invalid_grant']);
    }
    for (const token of [accessToken, machineToken]) {
      await expectDecisions(token, false);
      expect((await introspect(on.issuer, resourceServer, token)).status).to.equal(200);
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(401);
    }
    const form = { token: refreshToken };
    expect((await postForm(on.issuer, '/oauth/revoke', form, { client: confidential })).status).to.equal(200);
    const page = await on.partner.browser.get('/profile');
    expect([page.status, page.location?.pathname]).to.deep.equal([303, '/login']);
    await expectDecisions((await issueTokens()).accessToken, true);
  });

  it('a node whose clock is a year ahead deletes no recorded revocation that is still needed', async () => {
    const [accessToken, machineToken] = [(await issueTokens()).accessToken, await issueMachineToken()];
    const putBack = await copyRecords();
    for (const token of [accessToken, machineToken]) {
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
    }
    const ahead = await start({ sharing: on.service, ahead: 365 * 86_400 });
    await ahead.clean();
    await putBack();
    for (const token of [accessToken, machineToken]) await expectDecisions(token, false);
  });
});
