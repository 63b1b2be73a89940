/** Authorization codes: single use, ten minutes, bound to client, redirect URI and challenge. */
import { expect } from 'chai';
import { type Answer, exchangeCode, type Parameters, pkce, refresh, type TestClient } from '../support/oauth.ts';
import { REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const OTHER_REDIRECT_URI = 'https://partner.example/other';

describe('authorization codes', () => {
  const on = startSeeded({ clock: true, redirectUris: [REDIRECT_URI, OTHER_REDIRECT_URI] });

  const exchange = (code: string, parameters = {}, client = on.clients.confidential) =>
    exchangeCode(on.issuer, client, code, parameters);
  const codeOf = (client = on.clients.confidential, parameters: Parameters = {}) => on.partner.code(client, parameters);
  const refused = (answer: Answer) => expectRefusal(answer, 400, 'invalid_grant');
  const accepted = (answer: Answer) => expect(answer.status, answer.text).to.equal(200);

  for (const [when, seconds] of [
    ['at once', 0],
    ['after it has expired', 1_800],
  ] as const) {
    it(`a second exchange of one code, ${when}, is refused and ends only the tokens of that code`, async () => {
      const code = await codeOf();
      const { accessToken, refreshToken } = tokensOf(await exchange(code));
      const others = await on.partner.tokens(on.clients.confidential);
      on.clock.advance(seconds);
      expect(await on.partner.isActive(accessToken)).to.equal(true);
      refused(await exchange(code));
      expect(await on.partner.isActive(accessToken)).to.equal(false);
      refused(await refresh(on.issuer, on.clients.confidential, refreshToken));
      expect(await on.partner.isActive(others.accessToken)).to.equal(true);
    });
  }

  it('a code that was refused for another client or redirect URI can still be exchanged', async () => {
    const code = await codeOf();
    refused(await exchange(code, {}, on.clients.otherConfidential));
    const others = [`${REDIRECT_URI}/`, `${REDIRECT_URI}?`, 'https://evil.test'];
    for (const redirect_uri of [OTHER_REDIRECT_URI, ...others]) {
      refused(await exchange(code, { redirect_uri }));
    }
    for (const redirect_uri of [undefined, '']) {
      expectRefusal(await exchange(code, { redirect_uri }), 400, 'invalid_request');
    }
    expectRefusal(await exchange(''), 400, 'invalid_request');
    accepted(await exchange(code));
  });

  it('a replayed code ends no tokens if the request would be refused even with an unused code', async () => {
    const { verifier, parameters } = pkce();
    const code = await codeOf(on.clients.confidential, parameters);
    const proof = { code_verifier: verifier };
    const { accessToken } = tokensOf(await exchange(code, proof));
    for (const [changed, client] of [
      [{ code_verifier: pkce().verifier }],
      [{}],
      [proof, on.clients.otherConfidential],
      [{ ...proof, redirect_uri: OTHER_REDIRECT_URI }],
    ] as [Parameters, TestClient?][]) {
      refused(await exchange(code, changed, client));
    }
    expect(await on.partner.isActive(accessToken)).to.equal(true);
  });
});
