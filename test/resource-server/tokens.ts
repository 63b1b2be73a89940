/** Tokens as clients have them after a whole flow. */
import {
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import type { SeededPerson } from '../support/seed.ts';

/** The access token of an authorization that this person just approved. */
export async function personToken(
  issuer: string,
  client: TestClient,
  person: SeededPerson,
): Promise<string> {
  const redirect = await createPerson(issuer).authorize(authorizationUrl(issuer, client), person);
  const code = redirect.searchParams.get('code') ?? '';
  return accessToken((await exchangeCode(issuer, client, code)).body);
}

export async function machineToken(issuer: string, client: TestClient): Promise<string> {
  return accessToken((await clientCredentials(issuer, client)).body);
}

function accessToken(body: Readonly<Record<string, unknown>>): string {
  if (typeof body.access_token === 'string') return body.access_token;
  throw new Error(`no access token: ${JSON.stringify(body)}`);
}
