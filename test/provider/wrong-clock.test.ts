/** A node whose clock is wrong causes no failures, and its refreshes stay one chain of tokens. */
import { expect } from 'chai';
import { NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import { createTestClock, realNow, type TestClock } from '../support/clock.ts';
import { authorizationUrl, clientCredentials, exchangeCode, introspect, postForm, refresh } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import { partnerTokens, tokensOf } from './partner-tokens.ts';

/** Seconds in a little more than an hour, because the store's clock runs while the test clock stands still. */
const HOUR = 3_700;

onPostgresAndRedis('a wrong clock of the service', (start) => {
  // Pass no clock option, so that moving the time leaves the clocks of the stores right.
  const on = startSeeded({ on: start });
  let time: TestClock;

  beforeEach(() => {
    time = createTestClock();
  });
  afterEach(() => time.restore());

  const isActive = async (token: string) => {
    const { body } = await introspect(on.issuer, on.clients.resourceServer, token);
    return body.active;
  };

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
      expect(await isActive(accessToken)).to.equal(!isAhead);
      const exchanged = await exchangeCode(issuer, confidential, code);
      expect(exchanged.status, exchanged.text).to.be.oneOf([200, 400]);
      const refreshed = await refresh(issuer, confidential, refreshToken);
      expect(refreshed.status, refreshed.text).to.equal(200);
      const successor = tokensOf(refreshed).refreshToken;
      time.advance(-2 * seconds);
      const retried = await refresh(issuer, confidential, refreshToken);
      expect(retried.status, retried.text).to.equal(200);
      expect(tokensOf(retried).refreshToken).to.equal(successor);
      time.advance(2 * seconds);
      const machineToken = await clientCredentials(issuer, machine);
      expect(machineToken.status).to.equal(200);
      expect(await isActive(tokensOf(machineToken).accessToken)).to.equal(true);
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

for (const [direction, ahead] of [
  ['ahead', 120],
  ['behind', -120],
] as const) {
  onPostgresAndRedis(`a node whose clock is two minutes ${direction}`, (start) => {
    const on = startSeeded({ on: (options) => start({ ...options, ahead }) });

    it('what begins and ends, and its log entries, are dated by the clock of the database', async () => {
      const { database } = on.service;
      const { accountId } = on.seeded.person;
      const { confidential, machine } = on.clients;
      const before = realNow();
      const { refreshToken } = await on.partner.tokens(confidential);
      const machineToken = tokensOf(await clientCredentials(on.issuer, machine)).accessToken;
      for (const [token, client] of [
        [refreshToken, confidential],
        [machineToken, machine],
      ] as const) {
        const revoked = await postForm(on.issuer, '/oauth/revoke', { token }, { client });
        expect(revoked.status).to.equal(200);
      }
      await on.service.connections.end({ accountId }, 'person_disconnected');
      const rows = await database.query<{ what: string; at: Date }>(
        `SELECT 'authorization' AS what, at FROM ended_authorizations
          UNION ALL SELECT 'machine token', at FROM ended_machine_tokens
          UNION ALL SELECT 'connection', connected_at FROM connections
          UNION ALL SELECT 'end', ended_at FROM connections
          UNION ALL SELECT action, at FROM activity`,
      );
      const kinds = rows.map(({ what }) => what);
      // Without Redis, the end of a machine token is the deletion of its row.
      const kept = on.service.settings.storage.redisUrl === undefined ? [] : ['machine token'];
      expect(kinds).to.include.members(['authorization', 'connection', 'end', 'connected', 'tokens_revoked', ...kept]);
      // A test may take long, but no clock of this test is wrong by less than two minutes.
      for (const { what, at } of rows) {
        expect(at.getTime(), what).to.be.within(before - 60_000, realNow() + 60_000);
      }
    });

    // The other direction cannot break these.
    if (ahead > 0) return;

    it('a connection that began by a wrong clock does not end before it began', async () => {
      const { database, connections } = on.service;
      const { accountId } = on.seeded.person;
      await on.partner.tokens(on.clients.confidential);
      await database.query(`UPDATE connections SET connected_at = clock_timestamp() + interval '1 hour'`);
      await connections.end({ accountId }, 'person_disconnected');
      const early = 'SELECT FROM connections WHERE ended_at IS NULL OR ended_at < connected_at';
      expect(await database.query(early)).to.deep.equal([]);
    });

    it('a token response never has a lifetime that has ended: the refresh is refused instead', async () => {
      const { confidential } = on.clients;
      const { refreshToken } = await on.partner.tokens(confidential);
      const ids = { accountId: on.seeded.person.accountId, clientId: confidential.id };
      // For a node that is behind, the connection lasts another minute.
      const limit = { ...NO_LIMIT, until: new Date(Date.now() - 60_000) };
      const connection = { ...ids, limit: NO_LIMIT };
      expect(await on.service.connections.limit(connection, limit)).to.equal(true);
      const refused = await refresh(on.issuer, confidential, refreshToken);
      expect(refused.body, refused.text).to.include({ error: 'invalid_grant' });
      expect(refused.body.expires_in).to.equal(undefined);
    });
  });
}
