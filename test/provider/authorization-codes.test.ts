/**
 * Authorization codes: single use, ten minutes, bound to client, redirect URI and challenge; Proof Key for Code Exchange
 * (RFC 7636), mandatory for public clients, optional for others.
 */
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import {
  type Answer,
  authorizationUrl,
  exchangeCode,
  type Parameters,
  pkce,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn } from './authorization-outcome.ts';
import { tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const OTHER_REDIRECT_URI = 'https://partner.example/other';

const CHALLENGE = 'c'.repeat(43);
const S256 = { code_challenge_method: 'S256' };

/** Parameters of authorization requests that are refused for every client. */
const BAD_CHALLENGES: readonly (readonly [title: string, Parameters])[] = [
  ['the method plain', { code_challenge: CHALLENGE, code_challenge_method: 'plain' }],
  ['no method, which would mean plain', { code_challenge: CHALLENGE }],
  ['an unknown method', { code_challenge: CHALLENGE, code_challenge_method: 's256' }],
  ['a method without a challenge', S256],
  ['a challenge of 42 characters', { ...S256, code_challenge: 'c'.repeat(42) }],
  ['a challenge of 129 characters', { ...S256, code_challenge: 'c'.repeat(129) }],
  ['a padded challenge', { ...S256, code_challenge: `${CHALLENGE}=` }],
];

describe('an authorization code can be exchanged once, with the right client and code verifier', () => {
  const on = startSeeded({ clock: true });

  before('register another redirect URI', () =>
    on.service.clients.edit(on.clients.confidential.id, {
      name: 'Route Planner',
      redirectUris: [REDIRECT_URI, OTHER_REDIRECT_URI],
    }),
  );

  const exchange = (code: string, parameters = {}, client = on.clients.confidential) =>
    exchangeCode(on.issuer, client, code, parameters);
  const codeOf = (client = on.clients.confidential, parameters: Parameters = {}) => on.partner.code(client, parameters);
  const refused = (answer: Answer, cause?: string) => expectRefusal(answer, 400, 'invalid_grant', cause);
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

  async function refusalOf(client: TestClient, parameters: Parameters): Promise<string | undefined> {
    const url = authorizationUrl(on.issuer, client, parameters);
    const answer = answerIn(await createPerson(on.issuer).get(url));
    expect(answer).to.include({ state: 'state-of-the-partner', iss: on.issuer });
    return answer.error;
  }

  const prove = (client: TestClient, code: string, verifier?: string): Promise<Answer> =>
    exchange(code, { code_verifier: verifier }, client);

  it('an authorization request of a public client without a code challenge is refused', async () => {
    expect(await refusalOf(on.clients.public, {})).to.equal('invalid_request');
    expect(await refusalOf(on.clients.native, {})).to.equal('invalid_request');
  });

  it('any other code challenge or method is refused, for public and confidential clients', async () => {
    for (const [title, parameters] of BAD_CHALLENGES) {
      expect(await refusalOf(on.clients.public, parameters), title).to.equal('invalid_request');
      expect(await refusalOf(on.clients.confidential, parameters), title).to.equal('invalid_request');
    }
  });

  it('code verifiers of 43 and of 128 characters, from the whole alphabet, are accepted', async () => {
    for (const verifier of ['abcdefghijklmnopqrstuvwxyz0123456789-._~ABC', '~'.repeat(128)]) {
      const code_challenge = createHash('sha256').update(verifier).digest('base64url');
      const code = await on.partner.code(on.clients.public, { ...S256, code_challenge });
      expect((await prove(on.clients.public, code, verifier)).status).to.equal(200);
    }
  });

  it('a malformed, wrong or missing code verifier is refused, and the code stays valid', async () => {
    const client = on.clients.confidential;
    const { verifier, parameters } = pkce();
    const code = await on.partner.code(client, parameters);
    const malformed = ['v'.repeat(42), 'v'.repeat(129), `${'v'.repeat(43)}!`, `${verifier}\0`];
    for (const value of malformed) {
      expect((await prove(client, code, value)).body.error, value).to.equal('invalid_request');
    }
    const wrong = 'code_verifier does not match';
    refused(await prove(client, code, pkce().verifier), wrong);
    // Send the challenge itself as the verifier, which the method plain would accept.
    const { code_challenge: challenge } = parameters;
    refused(await prove(client, code, challenge), wrong);
    const missing = 'code_verifier is missing';
    refused(await prove(client, code), missing);
    refused(await prove(client, code, ''), missing);
    expect((await prove(client, code, verifier)).status).to.equal(200);
  });
});
