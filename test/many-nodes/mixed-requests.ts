/** One typical request each of a client, a resource server and a user. */
import { expect } from 'chai';
import { clientCredentials, introspect } from '../support/oauth.ts';
import type { Person } from '../support/person.ts';
import type { Seed } from '../support/seed.ts';

/** @param session the browser of a user who is signed in at the issuer */
export function mixedRequests(
  issuer: string,
  { clients }: Seed,
  { accessToken, session }: { readonly accessToken: string; readonly session: Person },
): (() => Promise<void>)[] {
  return [
    async () => {
      const { status, text } = await clientCredentials(issuer, clients.machine);
      expect(status, text).to.equal(200);
    },
    async () => {
      const { status, body, text } = await introspect(issuer, clients.resourceServer, accessToken);
      expect({ status, active: body.active }, text).to.deep.equal({ status: 200, active: true });
    },
    async () => {
      const { status, html } = await session.get('/profile');
      expect(status, html).to.equal(200);
    },
  ];
}
