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
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { answerIn } from './authorization-outcome.ts';
import { type PartnerTokens, partnerTokens } from './partner-tokens.ts';

const CHALLENGE = 'c'.repeat(43);
const S256 = { code_challenge_method: 'S256' };

/** Refused for every client, as an authorization request with these parameters. */
const BAD_CHALLENGES: readonly (readonly [title: string, Parameters])[] = [
  ['the method plain', { code_challenge: CHALLENGE, code_challenge_method: 'plain' }],
  ['no method, which would mean plain', { code_challenge: CHALLENGE }],
  ['an unknown method', { code_challenge: CHALLENGE, code_challenge_method: 's256' }],
  ['a method without a challenge', S256],
  ['a challenge of 42 characters', { ...S256, code_challenge: 'c'.repeat(42) }],
  ['a challenge of 129 characters', { ...S256, code_challenge: 'c'.repeat(129) }],
  ['a padded challenge', { ...S256, code_challenge: `${CHALLENGE}=` }],
];

forEachDeployment('PKCE', (start) => {
  let service: TestService;
  let clients: Seed['clients'];
  let partner: PartnerTokens;

  before(async () => {
    service = await start();
    const seeded = await seed(service);
    clients = seeded.clients;
    partner = partnerTokens(service.issuer, seeded);
  });

  async function refusalOf(
    client: TestClient,
    parameters: Parameters,
  ): Promise<string | undefined> {
    const url = authorizationUrl(service.issuer, client, parameters);
    const told = answerIn(await createPerson(service.issuer).get(url));
    expect(told).to.include({ state: 'state-of-the-partner', iss: service.issuer });
    return told.error;
  }

  const exchange = (client: TestClient, code: string, verifier?: string): Promise<Answer> =>
    exchangeCode(service.issuer, client, code, { code_verifier: verifier });

  function expectRefused({ status, body }: Answer, error: string, description: string): void {
    expect([status, body.error, body.error_description]).to.deep.equal([400, error, description]);
  }

  it('a public client without a challenge is refused', async () => {
    expect(await refusalOf(clients.public, {})).to.equal('invalid_request');
    expect(await refusalOf(clients.native, {})).to.equal('invalid_request');
  });

  for (const [title, parameters] of BAD_CHALLENGES) {
    it(`${title} is refused, for public and confidential clients`, async () => {
      expect(await refusalOf(clients.public, parameters)).to.equal('invalid_request');
      expect(await refusalOf(clients.confidential, parameters)).to.equal('invalid_request');
    });
  }

  it('verifiers of 43 and 128 characters of the whole alphabet are good', async () => {
    for (const verifier of ['abcdefghijklmnopqrstuvwxyz0123456789-._~ABC', '~'.repeat(128)]) {
      const code_challenge = createHash('sha256').update(verifier).digest('base64url');
      const code = await partner.code(clients.public, { ...S256, code_challenge });
      expect((await exchange(clients.public, code, verifier)).status).to.equal(200);
    }
  });

  it('a bad verifier is refused, and does not use up the code', async () => {
    const client = clients.confidential;
    const { verifier, parameters } = pkce();
    const code = await partner.code(client, parameters);
    const malformed = ['v'.repeat(42), 'v'.repeat(129), `${'v'.repeat(43)}!`, `${verifier}\0`];
    for (const bad of malformed) {
      expect((await exchange(client, code, bad)).body.error, bad).to.equal('invalid_request');
    }
    const wrong = 'code_verifier does not match';
    expectRefused(await exchange(client, code, pkce().verifier), 'invalid_grant', wrong);
    // The challenge itself, as if the method were plain.
    const { code_challenge: challenge } = parameters;
    expectRefused(await exchange(client, code, challenge), 'invalid_grant', wrong);
    const missing = 'code_verifier is missing';
    expectRefused(await exchange(client, code), 'invalid_grant', missing);
    expectRefused(await exchange(client, code, ''), 'invalid_grant', missing);
    expect((await exchange(client, code, verifier)).status).to.equal(200);
  });

  it('a public client is refused without its verifier, in words that tell nothing', async () => {
    const { verifier, parameters } = pkce();
    const code = await partner.code(clients.public, parameters);
    const generic = 'grant request is invalid';
    expectRefused(await exchange(clients.public, code), 'invalid_grant', generic);
    const another = pkce().verifier;
    expectRefused(await exchange(clients.public, code, another), 'invalid_grant', generic);
    expect((await exchange(clients.public, code, verifier)).status).to.equal(200);
  });

  it('a verifier for a code without a challenge is a downgrade (RFC 9700 §4.8.2)', async () => {
    const client = clients.confidential;
    const code = await partner.code(client);
    const refused = await exchange(client, code, pkce().verifier);
    const cause = 'code_verifier was sent, but the authorization request had no code_challenge';
    expectRefused(refused, 'invalid_grant', cause);
  });

  it('a confidential client may go without', async () => {
    const code = await partner.code(clients.confidential);
    expect((await exchange(clients.confidential, code)).status).to.equal(200);
  });
});
