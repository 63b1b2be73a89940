/** Refresh that partners can rely on: rotation with a retry window, reuse, lifetimes, memory. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { type Answer, introspect, refresh, type TestClient } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';
import { expectOneRecord } from './refresh-records.ts';

const DAY = 86_400;
const WINDOW = 60;

forEachDeployment('refresh tokens', (start) => {
  let service: TestService;
  let seeded: Seed;
  let clients: Seed['clients'];
  let partner: PartnerTokens;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    const settings = { tokens: { retryWindowSeconds: WINDOW, absoluteAgeSeconds: 365 * DAY } };
    service = await start({ clock: time.clock, settings });
    seeded = await seed(service);
    ({ clients } = seeded);
    partner = partnerTokens(service.issuer, seeded);
  });
  after(() => time.restore());

  const send = (token: string, client: TestClient = clients.confidential, parameters = {}) =>
    refresh(service.issuer, client, token, parameters);

  async function next(token: string, client?: TestClient) {
    const answer = await send(token, client);
    expect(answer.status, answer.text).to.equal(200);
    return tokensOf(answer);
  }

  const expectRefused = (answer: Answer, cause?: string): void => {
    expect([answer.status, answer.body.error], answer.text).to.deep.equal([400, 'invalid_grant']);
    if (cause !== undefined) expect(answer.body.error_description).to.equal(cause);
  };

  it('a grant that is refreshed again and again keeps one refresh record', () =>
    expectOneRecord(service, partner, clients.confidential, 20));

  for (const kind of ['confidential', 'public', 'native'] as const) {
    it(`a ${kind} client gets a new refresh token at every refresh`, async () => {
      const seen = new Set<string>();
      let { accessToken, refreshToken } = await partner.tokens(clients[kind]);
      for (let times = 0; times < 3; times += 1) {
        seen.add(accessToken).add(refreshToken);
        ({ accessToken, refreshToken } = await next(refreshToken, clients[kind]));
      }
      expect(seen.size).to.equal(6);
      expect(await partner.isActive(accessToken)).to.equal(true);
    });
  }

  it('a refresh whose answer was lost is repeated in the window, for the same successor', async () => {
    const { refreshToken } = await partner.tokens(clients.confidential);
    const lost = await next(refreshToken);
    time.advance(WINDOW - 1);
    const repeated = await next(refreshToken);
    expect(repeated.refreshToken).to.equal(lost.refreshToken);
    expect(repeated.accessToken).to.not.equal(lost.accessToken);
    expect(await partner.isActive(lost.accessToken)).to.equal(true);
    await next(repeated.refreshToken);
  });

  it('a used refresh token after the window ends the whole grant', async () => {
    const first = await partner.tokens(clients.confidential);
    const second = await next(first.refreshToken);
    time.advance(WINDOW);
    const cause = 'refresh token was already used, so the whole authorization was revoked';
    expectRefused(await send(first.refreshToken), cause);
    expectRefused(await send(second.refreshToken));
    expect(await partner.isActive(first.accessToken)).to.equal(false);
    expect(await partner.isActive(second.accessToken)).to.equal(false);
  });

  it('a token two generations old ends the grant, however young its children are', async () => {
    const first = await partner.tokens(clients.confidential);
    const second = await next(first.refreshToken);
    const third = await next(second.refreshToken);
    expectRefused(await send(first.refreshToken));
    expectRefused(await send(third.refreshToken));
    expect(await partner.isActive(third.accessToken)).to.equal(false);
  });

  it('repeating a refresh does not prolong the window', async () => {
    const first = await partner.tokens(clients.confidential);
    await next(first.refreshToken);
    time.advance(WINDOW - 10);
    await next(first.refreshToken);
    time.advance(10);
    expectRefused(await send(first.refreshToken));
  });

  it('a refresh token is good for 30 days from its own issue', async () => {
    let { refreshToken } = await partner.tokens(clients.confidential);
    for (let times = 0; times < 3; times += 1) {
      time.advance(30 * DAY - 1);
      ({ refreshToken } = await next(refreshToken));
    }
    time.advance(30 * DAY);
    expectRefused(await send(refreshToken), 'refresh token has expired');
  });

  it('a chain of refreshes ends at its greatest age, and promises nothing beyond it', async () => {
    for (const client of [clients.confidential, clients.public]) {
      let { refreshToken } = await partner.tokens(client);
      for (let days = 29; days < 365; days += 29) {
        time.advance(29 * DAY);
        ({ refreshToken } = await next(refreshToken, client));
      }
      time.advance(17 * DAY - 10);
      const answer = await send(refreshToken, client);
      expect([answer.status, answer.body.expires_in]).to.deep.equal([200, 10]);
      const last = tokensOf(answer);
      const { resourceServer } = clients;
      const { body } = await introspect(service.issuer, resourceServer, last.accessToken);
      expect(body).to.include({ active: true, exp: Math.floor(time.clock() / 1000) + 10 });

      time.advance(10);
      expect(await partner.isActive(last.accessToken)).to.equal(false);
      expectRefused(await send(last.refreshToken, client));
    }
  });

  it('another client, and any other value, refresh nothing and harm nothing', async () => {
    const { accessToken, refreshToken } = await partner.tokens(clients.confidential);
    const forged = refreshToken.replace(/(?<=^.{40})./, (letter) => (letter === 'A' ? 'B' : 'A'));
    const attempts: [string, TestClient][] = [
      [refreshToken, clients.otherConfidential],
      [refreshToken, clients.public],
      [accessToken, clients.confidential],
      [forged, clients.confidential],
      [`${refreshToken}0`, clients.confidential],
      [refreshToken.slice(0, -1), clients.confidential],
      [`${refreshToken.slice(0, -1)}1`, clients.confidential],
      [`gate_rt_${'x'.repeat(66)}`, clients.confidential],
    ];
    for (const [token, client] of attempts) expectRefused(await send(token, client));
    expect(await partner.isActive(accessToken)).to.equal(true);
    await next(refreshToken);
  });

  it('a used token in the hands of another client ends nothing', async () => {
    const first = await partner.tokens(clients.confidential);
    const second = await next(first.refreshToken);
    time.advance(WINDOW);
    expectRefused(await send(first.refreshToken, clients.otherConfidential));
    await next(second.refreshToken);
  });

  it('signing out does not disconnect partners', async () => {
    const { accessToken, refreshToken } = await partner.tokens(clients.confidential);
    await partner.browser.submit(await partner.browser.get('/logout'), {});
    expect((await partner.browser.get('/profile')).location?.pathname).to.equal('/login');
    expect(await partner.isActive(accessToken)).to.equal(true);
    await next(refreshToken);
  });

  it('a suspended account refreshes nothing until it is resumed', async () => {
    const { refreshToken } = await partner.tokens(clients.confidential);
    await service.accounts.suspend(seeded.person.accountId);
    const cause = 'the account of this authorization is suspended or gone';
    expectRefused(await send(refreshToken), cause);
    await service.accounts.resume(seeded.person.accountId);
    await next(refreshToken);
  });

  it('a restart forgets neither who may refresh nor who already did', async () => {
    const first = await startTestService({
      deployment: service.settings.storage.redisUrl === undefined ? 'embedded' : 'postgres+redis',
      clock: time.clock,
    });
    const people = await seed(first);
    const { confidential } = people.clients;
    const before = partnerTokens(first.issuer, people);
    const honest = await before.tokens(confidential);
    const stolen = await before.tokens(confidential);
    const rotated = tokensOf(await refresh(first.issuer, confidential, stolen.refreshToken));
    await first.close();

    const { storage, server } = first.settings;
    const second = await startTestService({ clock: time.clock, settings: { storage, server } });
    try {
      time.advance(WINDOW);
      expect((await refresh(second.issuer, confidential, honest.refreshToken)).status).to.equal(
        200,
      );
      expectRefused(await refresh(second.issuer, confidential, stolen.refreshToken));
      expectRefused(await refresh(second.issuer, confidential, rotated.refreshToken));
    } finally {
      await second.close();
    }
  });

  describe('with the window at 0', () => {
    let strict: TestService;

    before(async () => {
      strict = await start({ clock: time.clock, settings: { tokens: { retryWindowSeconds: 0 } } });
    });

    it('a repeated refresh is a reuse at once', async () => {
      const people = await seed(strict);
      const { confidential } = people.clients;
      const strictPartner = partnerTokens(strict.issuer, people);
      const { refreshToken } = await strictPartner.tokens(confidential);
      const answer = await refresh(strict.issuer, confidential, refreshToken);
      expect(answer.status).to.equal(200);
      const successor = tokensOf(answer);
      expectRefused(await refresh(strict.issuer, confidential, refreshToken));
      expectRefused(await refresh(strict.issuer, confidential, successor.refreshToken));
      expect(await strictPartner.isActive(successor.accessToken)).to.equal(false);
    });
  });
});
