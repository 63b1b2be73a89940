/** A node with a wrong clock, and one that loses answers of Redis: no failures, one chain of tokens, and ended stays ended. */
import { expect } from 'chai';
import { NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import { startTcpProxy, type TcpProxy } from '../storage/tcp-proxy.ts';
import { createTestClock, realNow, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  authorizationUrl,
  basic,
  clientCredentials,
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis, startsOn } from '../support/service.ts';
import { SHORT_TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { granted, partnerTokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

/** Seconds in a little more than an hour, because the store's clock runs while the test clock stands still. */
const HOUR = 3_700;

onPostgresAndRedis('a wrong clock of a node', (start) => {
  // Pass no clock option, so that moving the time leaves the clocks of the stores right.
  const on = startSeeded({ on: start });
  let began: number;
  before(() => {
    began = realNow();
  });

  /** Starts another node, whose clock alone is ahead by these seconds. */
  const startAhead = async (ahead: number) => {
    const node = await start({ sharing: on.service, ahead });
    return { node, partner: partnerTokens(node.issuer, on.seeded) };
  };

  for (const [direction, ahead] of [
    ['ahead', 120],
    ['behind', -120],
  ] as const) {
    it(`starts and ends of access, and their log entries, are dated by the clock of the database (node ${direction})`, async () => {
      const start = realNow();
      const { node, partner } = await startAhead(ahead);
      const { accountId } = on.seeded.person;
      const { confidential, machine } = on.clients;
      const { refreshToken } = await partner.tokens(confidential);
      const machineToken = tokensOf(await clientCredentials(node.issuer, machine)).accessToken;
      for (const [token, client] of [
        [refreshToken, confidential],
        [machineToken, machine],
      ] as const) {
        const revoked = await postForm(node.issuer, '/oauth/revoke', { token }, { client });
        expect(revoked.status).to.equal(200);
      }
      await node.connections.end({ accountId }, 'person_disconnected');
      const rows = await node.database.query<{ what: string; at: Date }>(
        `SELECT 'authorization' AS what, at FROM ended_authorizations
          UNION ALL SELECT 'machine token', at FROM ended_machine_tokens
          UNION ALL SELECT 'connection', connected_at FROM connections
          UNION ALL SELECT 'end', ended_at FROM connections
          UNION ALL SELECT action, at FROM activity`,
      );
      const kinds = ['authorization', 'machine token', 'connection', 'end', 'connected', 'tokens_revoked'];
      const added = rows.filter(({ at }) => at.getTime() >= start);
      expect(added.map(({ what }) => what)).to.include.members(kinds);
      // A test may take long, but no clock of this test is wrong by less than two minutes.
      for (const { what, at } of rows) expect(at.getTime(), what).to.be.within(began - 60_000, realNow() + 60_000);
    });
  }

  describe('a node works normally while its clock is wrong by an hour', () => {
    let time: TestClock;
    beforeEach(() => {
      time = createTestClock();
    });
    afterEach(() => time.restore());

    for (const [direction, seconds] of [
      ['ahead', HOUR],
      ['behind', -HOUR],
    ] as const) {
      it(`a node whose clock is an hour ${direction} fails no request, and refuses no valid retry`, async () => {
        const { issuer } = on;
        const { confidential, machine, resourceServer } = on.clients;
        const partner = partnerTokens(issuer, on.seeded);
        const { accessToken, refreshToken } = await partner.tokens(confidential);
        const code = await partner.code(confidential);
        const consent = await partner.browser.follow(
          await partner.browser.get(authorizationUrl(issuer, confidential, { prompt: 'consent' })),
        );
        time.advance(seconds);

        // If the clock is ahead, tokens that were issued before have expired.
        const isAhead = seconds > 0;
        expect(await partner.isActive(accessToken)).to.equal(!isAhead);
        const exchanged = await exchangeCode(issuer, confidential, code);
        expect(exchanged.status, exchanged.text).to.be.oneOf([200, 400]);
        const { refreshToken: successor } = await granted(refresh(issuer, confidential, refreshToken));
        time.advance(-2 * seconds);
        const retried = await granted(refresh(issuer, confidential, refreshToken));
        expect(retried.refreshToken).to.equal(successor);
        time.advance(2 * seconds);
        const machineToken = await granted(clientCredentials(issuer, machine));
        expect(await partner.isActive(machineToken.accessToken)).to.equal(true);
        const form = { token: successor };
        const revoked = await postForm(issuer, '/oauth/revoke', form, { client: confidential });
        expect(revoked.status).to.equal(200);
        expect(await introspect(issuer, resourceServer, refreshToken)).to.include({ status: 200 });

        const answered = await partner.browser.submit(consent, { decision: 'approve' });
        expect(answered.status).to.equal(isAhead ? 410 : 303);
        for (const page of ['/profile', '/profile/connections', '/profile/api-keys', '/login']) {
          const shown = await partner.browser.open(page);
          expect(shown.status, page).to.equal(200);
        }
        expect(await partner.code(confidential)).to.match(/^gate_ac_/);
        for (const line of on.service.logLines) expect(line).to.not.include('"level":50');
      });
    }
  });

  it('a token response never contains a lifetime that has passed: the refresh is refused instead', async () => {
    const { node, partner } = await startAhead(120);
    const { confidential } = on.clients;
    const { refreshToken } = await partner.tokens(confidential);
    const ids = { accountId: on.seeded.person.accountId, clientId: confidential.id };
    // For a node that is behind, the connection lasts another minute.
    const limit = { ...NO_LIMIT, until: new Date(Date.now() - 60_000) };
    const connection = { ...ids, limit: NO_LIMIT };
    expect(await node.connections.limit(connection, limit)).to.equal(true);
    const refused = await refresh(node.issuer, confidential, refreshToken);
    expect(refused.body, refused.text).to.include({ error: 'invalid_grant' });
    expect(refused.body.expires_in).to.equal(undefined);
  });

  it('a connection whose recorded start is in the future is never recorded as ended before this start', async () => {
    const { node, partner } = await startAhead(120);
    const { accountId } = on.seeded.person;
    await partner.tokens(on.clients.confidential);
    await node.database.query(`UPDATE connections SET connected_at = clock_timestamp() + interval '1 hour'`);
    await node.connections.end({ accountId }, 'person_disconnected');
    const early = 'SELECT FROM connections WHERE ended_at IS NULL OR ended_at < connected_at';
    expect(await node.database.query(early)).to.deep.equal([]);
  });
});

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
