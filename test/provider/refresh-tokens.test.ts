/** The documented rules of refreshing: rotation, honest retries, reuse, lifetimes, record size. */
import { expect } from 'chai';
import { withChecksum, withoutChecksum } from '../../src/base/random-id.ts';
import { type Answer, refresh, type TestClient } from '../support/oauth.ts';
import { inRedis } from '../support/redis-server.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { onPostgresAndRedis, type TestService } from '../support/service.ts';
import { granted, type Tokens, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const DAY = 86_400;
const WINDOW = 60;
/** Seconds that a step may take: the store's clock runs while the test clock stands still. */
const SLACK = 20;
const REUSED = 'refresh token was already used, so the whole authorization was revoked';
const EARLIER =
  'an earlier refresh token was sent although its successor is in use, so the whole authorization was revoked: ' +
  'store the refresh token that each refresh returns';

onPostgresAndRedis('refresh tokens', (start) => {
  const on = startSeeded({ on: start, clock: true });

  const send = (token: string, client: TestClient = on.clients.confidential, parameters = {}) =>
    refresh(on.issuer, client, token, parameters);
  const next = (token: string, client?: TestClient) => granted(send(token, client));
  const refused = (answer: Answer, cause?: string) => expectRefusal(answer, 400, 'invalid_grant', cause);
  const authorize = () => on.partner.tokens(on.clients.confidential);

  async function expectEnded(cause: string, presented: string, ...all: Tokens[]): Promise<void> {
    refused(await send(presented), cause);
    for (const { accessToken, refreshToken } of all) {
      expect(await on.partner.isActive(accessToken)).to.equal(false);
      refused(await send(refreshToken), 'refresh token is not known here, or its authorization was revoked');
    }
  }

  for (const kind of ['confidential', 'public', 'native'] as const) {
    it(`a ${kind} client gets a new refresh token at every refresh`, async () => {
      const seen = new Set<string>();
      let { accessToken, refreshToken } = await on.partner.tokens(on.clients[kind]);
      for (let times = 0; times < 3; times += 1) {
        seen.add(accessToken).add(refreshToken);
        ({ accessToken, refreshToken } = await next(refreshToken, on.clients[kind]));
      }
      expect(seen.size).to.equal(6);
      expect(await on.partner.isActive(accessToken)).to.equal(true);
    });
  }

  it('an authorization that is refreshed many times stays one record of the same size', async () => {
    const before = await sizes(on.service);
    let { refreshToken } = await authorize();
    const first = await sizes(on.service);
    expect(first.length - before.length).to.equal(1);
    for (let times = 0; times < 20; times += 1) ({ refreshToken } = await next(refreshToken));
    const last = await sizes(on.service);
    expect(last).to.have.length(first.length);
    // Allow this difference: the rotation counter gains a digit, and other fields vary by a few characters.
    expect(sum(last) - sum(first)).to.be.within(-2, 16);
  });

  it('a refresh whose answer was lost can be repeated weeks later, and returns the same successor', async () => {
    const { refreshToken } = await authorize();
    const lost = await next(refreshToken);
    on.clock.advance(29 * DAY);
    const [repeated, again] = [await next(refreshToken), await next(refreshToken)];
    expect(repeated.refreshToken).to.equal(lost.refreshToken);
    expect(again.refreshToken).to.equal(lost.refreshToken);
    for (const { accessToken } of [repeated, again]) expect(await on.partner.isActive(accessToken)).to.equal(true);
    await next(again.refreshToken);
  });

  it('a refresh whose answer was lost can be repeated even if the previous access token is still used', async () => {
    const { refreshToken: original } = await authorize();
    // Rotation 0 is never confirmed, so lose the answer of a later refresh.
    const { accessToken, refreshToken } = await next(original);
    expect(await on.partner.isActive(accessToken)).to.equal(true);
    const lost = await next(refreshToken);
    // Confirmations are written in the background: the second introspection gives the first one time.
    for (let times = 0; times < 2; times += 1) expect(await on.partner.isActive(accessToken)).to.equal(true);
    on.clock.advance(WINDOW + SLACK);
    expect((await next(refreshToken)).refreshToken).to.equal(lost.refreshToken);
  });

  it('using a refresh token whose successor has already been used always ends the authorization', async () => {
    const first = await authorize();
    const second = await next(first.refreshToken);
    const third = await next(second.refreshToken);
    await expectEnded(EARLIER, first.refreshToken, first, second, third);
    const causes = (await on.service.clientRequests.groups(on.clients.confidential.id)).map(({ cause }) => cause);
    expect(causes, 'on the page of the owner').to.include(EARLIER);
  });

  it('a public client does not learn that its refresh token is an earlier one, because anyone can pose as the client', async () => {
    const client = on.clients.public;
    const first = await on.partner.tokens(client);
    await next((await next(first.refreshToken, client)).refreshToken, client);
    refused(await send(first.refreshToken, client), REUSED);
  });

  it('a replay whose earlier answer may have been lost gets the general error, not the one about an earlier token', async () => {
    const strict = await start({ sharing: on.service, settings: { tokens: { retryWindowSeconds: 0 } } });
    const { refreshToken } = await authorize();
    await next(refreshToken);
    const answer = await refresh(strict.settings.issuer, on.clients.confidential, refreshToken);
    await strict.close();
    refused(answer, REUSED);
  });

  it('a refresh token is valid for 30 days from when it was issued, also when its authorization is older than a year', async () => {
    let { refreshToken } = await authorize();
    for (let days = 30; days <= 390; days += 30) {
      on.clock.advance(30 * DAY - SLACK);
      const answer = await send(refreshToken);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body.expires_in, `after ${days} days`).to.equal(3_600);
      ({ refreshToken } = tokensOf(answer));
    }
    on.clock.advance(30 * DAY + SLACK);
    refused(await send(refreshToken), 'refresh token has expired');
  });

  it('a refresh by another client, or with a value that is no valid refresh token, is refused and revokes nothing', async () => {
    const { confidential, otherConfidential, public: publicClient } = on.clients;
    const { accessToken, refreshToken: used } = await authorize();
    const { refreshToken } = await next(used);
    on.clock.advance(WINDOW + SLACK);
    const bare = withoutChecksum(refreshToken);
    expect(bare).to.match(/1$/);
    const forged = refreshToken.replace(/(?<=^.{40})./, (letter) => (letter === 'A' ? 'B' : 'A'));
    const attempts: [string, TestClient][] = [
      [used, otherConfidential],
      [refreshToken, otherConfidential],
      [refreshToken, publicClient],
      [accessToken, confidential],
      [forged, confidential],
      [(await apiKeyOf(on.service, on.seeded.person)).value, confidential],
      // Claim the next rotation, and then an older one, with the MAC of the present token.
      [bare.replace(/1$/, '2'), confidential],
      [bare.replace(/1$/, '0'), confidential],
      [withChecksum(`gate_rt_${'x'.repeat(66)}`), confidential],
    ];
    for (const [token, client] of attempts) refused(await send(token, client));
    expect(await on.partner.isActive(accessToken)).to.equal(true);
    await next(refreshToken);
  });

  it('a refresh for a suspended account is refused with this cause, but the refresh token is not revoked', async () => {
    const { refreshToken } = await authorize();
    const { accounts } = on.service;
    await accounts.suspend(on.seeded.person.accountId);
    refused(await send(refreshToken), 'the account of this authorization is suspended or gone');
    await accounts.resume(on.seeded.person.accountId);
    await next(refreshToken);
  });
});

const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);

/** Returns the size in bytes of each stored authorization. */
const sizes = ({ settings }: TestService): Promise<readonly number[]> =>
  inRedis(String(settings.storage.redisUrl), async (redis) =>
    Promise.all((await redis.keys('gh:z:*')).map((key) => redis.strlen(key))),
  );
