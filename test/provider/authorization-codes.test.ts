/** Authorization codes: single use, ten minutes, bound to client, redirect URI and challenge. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import {
  type Answer,
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  pkce,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { REDIRECT_URI, type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';

const OTHER_REDIRECT_URI = 'https://partner.example/other';

forEachDeployment('authorization codes', (start) => {
  let service: TestService;
  let seeded: Seed;
  let clients: Seed['clients'];
  let partner: PartnerTokens;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    seeded = await seed(service, { redirectUris: [REDIRECT_URI, OTHER_REDIRECT_URI] });
    ({ clients } = seeded);
    partner = partnerTokens(service.issuer, seeded);
  });
  after(() => time.restore());

  const exchange = (code: string, parameters = {}, client = clients.confidential) =>
    exchangeCode(service.issuer, client, code, parameters);

  const expectRefused = (answer: Answer, status: number, error: string): void => {
    expect([answer.status, answer.body.error], answer.text).to.deep.equal([status, error]);
  };

  const expectGiven = (answer: Answer): void => {
    expect(answer.status, answer.text).to.equal(200);
  };

  it('a code is good for ten minutes', async () => {
    const inTime = await partner.code(clients.confidential);
    time.advance(599);
    expectGiven(await exchange(inTime));

    const late = await partner.code(clients.confidential);
    time.advance(601);
    const refused = await exchange(late);
    expectRefused(refused, 400, 'invalid_grant');
    expect(refused.body.error_description).to.equal('authorization code has expired');
  });

  it('a second exchange of one code is refused and ends its tokens', async () => {
    const code = await partner.code(clients.confidential);
    const tokens = tokensOf(await exchange(code));
    const others = await partner.tokens(clients.confidential);
    expect(await partner.isActive(tokens.accessToken)).to.equal(true);

    expectRefused(await exchange(code), 400, 'invalid_grant');
    expect(await partner.isActive(tokens.accessToken)).to.equal(false);
    const refused = await refresh(service.issuer, clients.confidential, tokens.refreshToken);
    expectRefused(refused, 400, 'invalid_grant');
    expect(await partner.isActive(others.accessToken)).to.equal(true);
  });

  it('a replay ends the tokens also after the code has expired', async () => {
    const code = await partner.code(clients.confidential);
    const { accessToken, refreshToken } = tokensOf(await exchange(code));
    time.advance(1_800);
    expectRefused(await exchange(code), 400, 'invalid_grant');
    const isActive = await partner.isActive(accessToken);
    const refreshed = await refresh(service.issuer, clients.confidential, refreshToken);
    expect({ isActive, refreshed: refreshed.status }).to.deep.equal({
      isActive: false,
      refreshed: 400,
    });
  });

  it('a code of one client is worth nothing to another, and stays good', async () => {
    const code = await partner.code(clients.confidential);
    expectRefused(await exchange(code, {}, clients.otherConfidential), 400, 'invalid_grant');
    expectGiven(await exchange(code));
  });

  it('the exchange names the redirect URI of the request, exactly', async () => {
    const code = await partner.code(clients.confidential);
    const others = [
      OTHER_REDIRECT_URI,
      `${REDIRECT_URI}/`,
      `${REDIRECT_URI}?`,
      'https://evil.test',
    ];
    for (const redirect_uri of others) {
      expectRefused(await exchange(code, { redirect_uri }), 400, 'invalid_grant');
    }
    for (const redirect_uri of [undefined, '']) {
      expectRefused(await exchange(code, { redirect_uri }), 400, 'invalid_request');
    }
    expectRefused(await exchange('', {}), 400, 'invalid_request');
    expectGiven(await exchange(code));
  });

  it('a wrong, missing or malformed verifier is refused and does not burn the code', async () => {
    const { verifier, parameters } = pkce();
    const code = await partner.code(clients.confidential, parameters);
    const attempts: [string | undefined, string][] = [
      [pkce().verifier, 'invalid_grant'],
      [undefined, 'invalid_grant'],
      [parameters.code_challenge, 'invalid_grant'],
      ['v'.repeat(42), 'invalid_request'],
      ['v'.repeat(129), 'invalid_request'],
      [`${'v'.repeat(43)}!`, 'invalid_request'],
    ];
    for (const [code_verifier, error] of attempts) {
      expectRefused(await exchange(code, { code_verifier }), 400, error);
    }
    expectGiven(await exchange(code, { code_verifier: verifier }));
  });

  it('a verifier for a code without a challenge is refused as a downgrade', async () => {
    const code = await partner.code(clients.confidential);
    const { verifier } = pkce();
    expectRefused(await exchange(code, { code_verifier: verifier }), 400, 'invalid_grant');
    expectGiven(await exchange(code));
  });

  it('a replay by somebody who could not have exchanged the code ends nothing', async () => {
    const { verifier, parameters } = pkce();
    const code = await partner.code(clients.confidential, parameters);
    const { accessToken } = tokensOf(await exchange(code, { code_verifier: verifier }));

    const proof = { code_verifier: verifier };
    expectRefused(await exchange(code, { code_verifier: pkce().verifier }), 400, 'invalid_grant');
    expectRefused(await exchange(code), 400, 'invalid_grant');
    expectRefused(await exchange(code, proof, clients.otherConfidential), 400, 'invalid_grant');
    const elsewhere = { ...proof, redirect_uri: OTHER_REDIRECT_URI };
    expectRefused(await exchange(code, elsewhere), 400, 'invalid_grant');
    expect(await partner.isActive(accessToken)).to.equal(true);
  });

  it('codes are long, random and never the same', async () => {
    const codes: string[] = [];
    for (let index = 0; index < 100; index += 1)
      codes.push(await partner.code(clients.confidential));
    for (const code of codes) expect(code).to.match(/^gate_ac_[A-Za-z0-9_-]{43}$/);
    expect(new Set(codes).size).to.equal(codes.length);
    // Each place of the value takes many characters: nothing in it is fixed or counts up.
    for (let place = 'gate_ac_'.length; place < 51; place += 1) {
      expect(new Set(codes.map((code) => code[place])).size, `place ${place}`).to.be.above(24);
    }
  });

  describe('what ends between the approval and the exchange', () => {
    it('a suspended account: no tokens, until it is resumed', async () => {
      const code = await partner.code(clients.confidential);
      await service.accounts.suspend(seeded.person.accountId);
      expectRefused(await exchange(code), 400, 'invalid_grant');
      await service.accounts.resume(seeded.person.accountId);
    });

    it('a suspended client: it is nobody', async () => {
      const code = await partner.code(clients.otherConfidential);
      await service.clients.suspend(clients.otherConfidential.id);
      const refused = await exchange(code, {}, clients.otherConfidential);
      expectRefused(refused, 401, 'invalid_client');
      await service.clients.resume(clients.otherConfidential.id);
      expectGiven(await exchange(code, {}, clients.otherConfidential));
    });

    it('an ended connection: no tokens', async () => {
      const code = await partner.code(clients.confidential);
      const disconnect = await partner.askToDisconnect(clients.confidential);
      await disconnect();
      expectRefused(await exchange(code), 400, 'invalid_grant');
    });

    it('a deleted client: it is nobody, for good', async () => {
      const code = await partner.code(clients.otherConfidential);
      await service.clients.remove(clients.otherConfidential.id, { revokeGrant: async () => {} });
      const refused = await exchange(code, {}, clients.otherConfidential);
      expectRefused(refused, 401, 'invalid_client');
    });
  });

  it('no code, token, secret, verifier, password or cookie value is in the log', async () => {
    const { issuer } = service;
    const { verifier, parameters } = pkce();
    const code = await partner.code(clients.confidential, parameters);
    const refused = await exchange(code, { code_verifier: pkce().verifier });
    const exchanged = tokensOf(await exchange(code, { code_verifier: verifier }));
    const { refreshToken } = exchanged;
    const refreshed = tokensOf(await refresh(issuer, clients.confidential, refreshToken));
    const machine = tokensOf(await clientCredentials(issuer, clients.machine));
    await revokeCurrent(issuer, refreshed.accessToken);
    await exchange(code, { code_verifier: verifier });
    await partner.browser.get(`/profile?code=${code}`);
    await partner.browser.get(authorizationUrl(issuer, clients.confidential, { state: verifier }));

    const cookies = partner.browser.cookieHeader('/').split('; ');
    const secrets: Record<string, string> = {
      code,
      verifier,
      challenge: parameters.code_challenge,
      accessToken: exchanged.accessToken,
      refreshToken,
      nextAccessToken: refreshed.accessToken,
      nextRefreshToken: refreshed.refreshToken,
      machineToken: machine.accessToken,
      clientSecret: clients.confidential.secret ?? '',
      password: seeded.person.password,
      ...Object.fromEntries(cookies.map((cookie) => cookie.split('=', 2))),
    };
    expect(Object.keys(secrets)).to.include('gate_session');

    const log = service.logLines.join('');
    expect(log).to.contain('"path":"/oauth/token"');
    expect(log).to.contain(String(refused.headers.get('x-request-id')));
    for (const [name, value] of Object.entries(secrets)) {
      expect(value, name).to.have.length.above(15);
      expect(log.includes(value), `the log holds the ${name}`).to.equal(false);
    }
  });
});
