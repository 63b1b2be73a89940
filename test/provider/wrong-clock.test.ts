/** A clock that jumps: no failure in either direction, and tokens as old as the clock says. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import {
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  postForm,
  refresh,
} from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';

const HOUR = 3_600;

forEachDeployment('a clock that jumps', (start) => {
  let service: TestService;
  let seeded: Seed;
  let partner: PartnerTokens;
  let time: TestClock;

  before(async () => {
    service = await start();
    seeded = await seed(service);
  });
  beforeEach(() => {
    time = createTestClock();
    partner = partnerTokens(service.issuer, seeded);
  });
  afterEach(() => time.restore());

  const state = async (token: string) => {
    const { body } = await introspect(service.issuer, seeded.clients.resourceServer, token);
    return { active: body.active, exp: body.exp };
  };

  it('back by an hour lets an access token live as much longer, one that had expired too', async () => {
    const { accessToken } = await partner.tokens(seeded.clients.confidential);
    const exp = time.clock() / 1000 + HOUR;
    time.advance(HOUR);
    expect((await state(accessToken)).active).to.equal(false);
    time.advance(-2 * HOUR);
    expect(await state(accessToken)).to.deep.equal({ active: true, exp });
    time.advance(2 * HOUR - 1);
    expect(await state(accessToken)).to.deep.equal({ active: true, exp });
    time.advance(1);
    expect((await state(accessToken)).active).to.equal(false);
  });

  it('back by an hour leaves the predecessor good for as much longer, and only it', async () => {
    const { confidential } = seeded.clients;
    const { refreshToken: first } = await partner.tokens(confidential);
    const second = tokensOf(await refresh(service.issuer, confidential, first)).refreshToken;
    time.advance(-HOUR);
    const retried = await refresh(service.issuer, confidential, first);
    expect(retried.status, retried.text).to.equal(200);
    expect(tokensOf(retried).refreshToken).to.equal(second);
    const third = await refresh(service.issuer, confidential, second);
    expect(third.status, third.text).to.equal(200);
    const reused = await refresh(service.issuer, confidential, first);
    expect(reused.body).to.include({ error: 'invalid_grant' });
    const { accessToken } = tokensOf(third);
    expect((await state(accessToken)).active).to.equal(false);
  });

  for (const [direction, seconds] of [
    ['ahead', HOUR],
    ['back', -HOUR],
  ] as const) {
    it(`${direction} by an hour, no request fails`, async () => {
      const { issuer } = service;
      const { confidential, machine, resourceServer } = seeded.clients;
      const { accessToken, refreshToken } = await partner.tokens(confidential);
      const machineToken = tokensOf(await clientCredentials(issuer, machine)).accessToken;
      const code = await partner.code(confidential);
      const consent = await partner.browser.follow(
        await partner.browser.get(authorizationUrl(issuer, confidential, { prompt: 'consent' })),
      );
      time.advance(seconds);

      const isAhead = seconds > 0;
      for (const token of [accessToken, machineToken]) {
        expect((await state(token)).active).to.equal(!isAhead);
      }
      const exchanged = await exchangeCode(issuer, confidential, code);
      expect(exchanged.status, exchanged.text).to.equal(isAhead ? 400 : 200);
      const refreshed = await refresh(issuer, confidential, refreshToken);
      expect(refreshed.status, refreshed.text).to.equal(200);
      expect((await state(tokensOf(refreshed).accessToken)).active).to.equal(true);
      expect(await clientCredentials(issuer, machine)).to.include({ status: 200 });
      const revoked = { token: tokensOf(refreshed).refreshToken };
      expect(await postForm(issuer, '/oauth/revoke', revoked, { client: confidential })).to.include(
        { status: 200 },
      );
      expect(await introspect(issuer, resourceServer, refreshToken)).to.include({ status: 200 });

      const { browser } = partner;
      const answered = await browser.submit(consent, { decision: 'approve' });
      expect(answered.status).to.equal(isAhead ? 410 : 303);
      for (const page of ['/profile', '/profile/connections', '/profile/api-keys', '/login']) {
        expect((await browser.follow(await browser.get(page))).status, page).to.equal(200);
      }
      expect(await partner.code(confidential)).to.match(/^gate_ac_/);
      for (const line of service.logLines) expect(line).to.not.include('"level":50');
    });
  }
});
