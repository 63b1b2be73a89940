/** Requests codes and tokens for one signed-in user as a partner does. */
import { expect } from 'chai';
import {
  type Answer,
  authorizationUrl,
  exchangeCode,
  introspect,
  type Parameters,
  pkce,
  type TestClient,
} from '../support/oauth.ts';
import { type Credentials, createPerson, type Person } from '../support/person.ts';
import type { Seed } from '../support/seed.ts';

export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

export interface PartnerTokens {
  /** The browser of the user, who signs in for the first code. */
  readonly browser: Person;
  /** Returns the code of a new authorization. A confidential client needs consent only once. */
  code(client: TestClient, parameters?: Parameters): Promise<string>;
  /** Returns the tokens of a new authorization; a client without a secret uses PKCE. */
  tokens(client: TestClient, parameters?: Parameters): Promise<Tokens>;
  /** Opens the page that disconnects the client. @returns a function that sends its form */
  askToDisconnect(client: TestClient): Promise<() => Promise<void>>;
  /** Introspects the token as the resource server. */
  isActive(accessToken: string): Promise<boolean>;
}

export function partnerTokens(
  issuer: string,
  { person, clients }: { person: Credentials; clients: Pick<Seed['clients'], 'resourceServer'> },
  browser = createPerson(issuer),
): PartnerTokens {
  async function code(client: TestClient, parameters?: Parameters): Promise<string> {
    const url = authorizationUrl(issuer, client, parameters);
    const redirect = await browser.authorize(url, person);
    const value = redirect.searchParams.get('code');
    if (value === null) throw new Error(`no code in ${redirect.href}`);
    return value;
  }

  return {
    browser,
    code,

    async tokens(client, more = {}) {
      const { verifier, parameters } = pkce();
      const isPublic = client.secret === undefined;
      const value = await code(client, { ...more, ...(isPublic && parameters) });
      const proof = isPublic ? { code_verifier: verifier } : {};
      return granted(exchangeCode(issuer, client, value, proof));
    },

    async askToDisconnect(client) {
      const page = await browser.get(`/profile/connections/${client.id}/disconnect`);
      return async () => {
        const { location } = await browser.submit(page, {});
        expect(location?.pathname).to.equal('/profile/connections');
      };
    },

    async isActive(accessToken) {
      const { status, body } = await introspect(issuer, clients.resourceServer, accessToken);
      expect(status).to.equal(200);
      return body.active === true;
    },
  };
}

/** Returns the two tokens of a token response. */
export const tokensOf = ({ body }: { body: Readonly<Record<string, unknown>> }): Tokens => ({
  accessToken: String(body.access_token),
  refreshToken: String(body.refresh_token),
});

/** Returns the two tokens of a token response that must be successful. */
export async function granted(asked: Promise<Answer>): Promise<Tokens> {
  const answer = await asked;
  expect(answer.status, answer.text).to.equal(200);
  return tokensOf(answer);
}
