/** Proof Key for Code Exchange (RFC 7636), mandatory for public clients, optional for others. */
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import {
  type Answer,
  authorizationUrl,
  exchangeCode,
  type Parameters,
  pkce,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn } from './authorization-outcome.ts';
import { expectRefusal } from './refusals.ts';

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

describe('PKCE', () => {
  const on = startSeeded();

  async function refusalOf(client: TestClient, parameters: Parameters): Promise<string | undefined> {
    const url = authorizationUrl(on.issuer, client, parameters);
    const answer = answerIn(await createPerson(on.issuer).get(url));
    expect(answer).to.include({ state: 'state-of-the-partner', iss: on.issuer });
    return answer.error;
  }

  const exchange = (client: TestClient, code: string, verifier?: string): Promise<Answer> =>
    exchangeCode(on.issuer, client, code, { code_verifier: verifier });

  const expectRefused = (answer: Answer, error: string, description: string): void =>
    expectRefusal(answer, 400, error, description);

  it('an authorization request of a public client without a code challenge is refused', async () => {
    expect(await refusalOf(on.clients.public, {})).to.equal('invalid_request');
    expect(await refusalOf(on.clients.native, {})).to.equal('invalid_request');
  });

  it('every other challenge or method is refused, for public and confidential clients', async () => {
    for (const [title, parameters] of BAD_CHALLENGES) {
      expect(await refusalOf(on.clients.public, parameters), title).to.equal('invalid_request');
      expect(await refusalOf(on.clients.confidential, parameters), title).to.equal('invalid_request');
    }
  });

  it('code verifiers of 43 and of 128 characters, from the whole alphabet, are accepted', async () => {
    for (const verifier of ['abcdefghijklmnopqrstuvwxyz0123456789-._~ABC', '~'.repeat(128)]) {
      const code_challenge = createHash('sha256').update(verifier).digest('base64url');
      const code = await on.partner.code(on.clients.public, { ...S256, code_challenge });
      expect((await exchange(on.clients.public, code, verifier)).status).to.equal(200);
    }
  });

  it('a malformed, wrong or missing code verifier is refused, and the code stays valid', async () => {
    const client = on.clients.confidential;
    const { verifier, parameters } = pkce();
    const code = await on.partner.code(client, parameters);
    const malformed = ['v'.repeat(42), 'v'.repeat(129), `${'v'.repeat(43)}!`, `${verifier}\0`];
    for (const value of malformed) {
      expect((await exchange(client, code, value)).body.error, value).to.equal('invalid_request');
    }
    const wrong = 'code_verifier does not match';
    expectRefused(await exchange(client, code, pkce().verifier), 'invalid_grant', wrong);
    // Send the challenge itself as the verifier, which the method plain would accept.
    const { code_challenge: challenge } = parameters;
    expectRefused(await exchange(client, code, challenge), 'invalid_grant', wrong);
    const missing = 'code_verifier is missing';
    expectRefused(await exchange(client, code), 'invalid_grant', missing);
    expectRefused(await exchange(client, code, ''), 'invalid_grant', missing);
    expect((await exchange(client, code, verifier)).status).to.equal(200);
  });
});
