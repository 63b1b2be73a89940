/** Members of the seeded organization, and what their clients and API keys reach. */
import { expect } from 'chai';
import type { Organization, Role } from '../../src/accounts/access/reach.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { basic, introspect, type TestClient } from '../support/oauth.ts';
import type { Credentials, Person } from '../support/person.ts';
import { addPerson, type SeededPerson } from '../support/seed.ts';
import type { Seeded } from '../support/seeded.ts';
import type { TestService } from '../support/service.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

export type Member = SignedInPerson & SeededPerson;

/** Adds a person with this role. */
export async function addMember({ service, seeded }: Seeded, name: string, role: Role): Promise<SeededPerson> {
  const person = await addPerson(service, name);
  await service.memberships.setRole(person, seeded.organization.id, role);
  service.access.forget(person.accountId);
  return person;
}

/** Adds a person with this role, who has signed in. */
export const join = async (on: Seeded, name: string, role: Role): Promise<Member> =>
  signedIn(on.service, await addMember(on, name, role));

/** Returns an access token of a client that this user, who has signed in, connects. */
export async function connect(
  on: Seeded,
  who: Person & Credentials,
  client: TestClient = on.clients.confidential,
  parameters = {},
): Promise<string> {
  const partner = partnerTokens(on.issuer, { ...on.seeded, person: who }, who);
  return (await partner.tokens(client, parameters)).accessToken;
}

/** Returns what introspection answers at this node about the access of an active token or API key. */
export async function reachOf(on: Seeded, value: string, issuer = on.issuer): Promise<readonly Organization[]> {
  const { body } = await introspect(issuer, on.clients.resourceServer, value);
  expect(body.active, 'an active token or API key').to.equal(true);
  return body.organizations as readonly Organization[];
}

/** Returns the names of the organizations that a token or API key reaches. */
export const namesReached = async (on: Seeded, value: string, issuer?: string): Promise<readonly string[]> =>
  (await reachOf(on, value, issuer)).map(({ name }) => name);

/** Opens the event stream of resource servers at a node. */
export async function listen(on: Seeded, { issuer }: Pick<TestService, 'issuer'>): Promise<{ readonly text: string }> {
  const headers = { authorization: basic(on.clients.resourceServer) };
  const { body } = await fetch(new URL('/oauth/introspect/changes', issuer), { headers });
  const stream = { text: '' };
  const read = async (): Promise<void> => {
    for await (const chunk of body ?? []) stream.text += Buffer.from(chunk).toString();
  };
  read().catch(() => {});
  return stream;
}
