/** Tokens, codes, consents, revocations and blocks that an upgrade must keep. */
import { expect } from 'chai';
import { granted } from '../../provider/partner-tokens.ts';
import {
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  pkce,
  refresh,
  revokeCurrent,
} from '../../support/oauth.ts';
import type { CarriedOver, World } from './carried-over.ts';
import { addClient } from './clients.ts';

/** Introspects as the resource server. @throws Error if the token is not active. */
export async function activeToken({ issuer, clients }: World, token: string) {
  const { status, body, text } = await introspect(issuer, clients.resourceServer, token);
  expect({ status, active: body.active }, text).to.deep.equal({ status: 200, active: true });
  return body;
}

async function expectInactive({ issuer, clients }: World, token: string): Promise<void> {
  const { status, body } = await introspect(issuer, clients.resourceServer, token);
  expect({ status, body }).to.deep.equal({ status: 200, body: { active: false } });
}

async function organizationsOf(world: World, token: string): Promise<string[]> {
  const { organizations } = await activeToken(world, token);
  return (organizations as { readonly name: string }[]).map(({ name }) => name);
}

export const VALUES: readonly CarriedOver[] = [
  {
    what: 'an authorization code',
    async start(world) {
      const { issuer, partner, clients } = world;
      const { verifier, parameters } = pkce();
      const code = await partner.code(clients.confidential, parameters);
      return async () => {
        const proof = { code_verifier: verifier };
        const { accessToken } = await granted(exchangeCode(issuer, clients.confidential, code, proof));
        await activeToken(world, accessToken);
        // The second exchange is a replay, and revokes the tokens of the first one.
        const again = await exchangeCode(issuer, clients.confidential, code, proof);
        expect(again.body.error).to.equal('invalid_grant');
        await expectInactive(world, accessToken);
      };
    },
  },
  {
    what: 'an access token',
    async start(world) {
      const { accessToken } = await world.partner.tokens(world.clients.confidential);
      const { sub, authorization } = await activeToken(world, accessToken);
      return async () => {
        const answer = await activeToken(world, accessToken);
        expect(answer).to.include({ sub, authorization, username: world.person.email });
        expect(await organizationsOf(world, accessToken)).to.deep.equal([world.organization.name]);
      };
    },
  },
  {
    what: 'a refresh token, and the retry of a refresh whose response was lost',
    async start(world) {
      const { issuer, partner } = world;
      const { confidential } = world.clients;
      const first = await partner.tokens(confidential);
      const second = await granted(refresh(issuer, confidential, first.refreshToken));
      return async () => {
        const retried = await granted(refresh(issuer, confidential, first.refreshToken));
        expect(retried.refreshToken).to.equal(second.refreshToken);
        const { accessToken } = await granted(refresh(issuer, confidential, second.refreshToken));
        await activeToken(world, accessToken);
        const replayed = await refresh(issuer, confidential, first.refreshToken);
        expect(replayed.body.error).to.equal('invalid_grant');
        await expectInactive(world, accessToken);
      };
    },
  },
  {
    what: 'a refresh token of a public client',
    async start(world) {
      const { issuer, partner, clients } = world;
      const { refreshToken } = await partner.tokens(clients.public);
      return async () => {
        const { accessToken } = await granted(refresh(issuer, clients.public, refreshToken));
        await activeToken(world, accessToken);
      };
    },
  },
  {
    what: 'a machine token',
    async start(world) {
      const { issuer, clients } = world;
      const token = String((await clientCredentials(issuer, clients.machine)).body.access_token);
      return async () => {
        expect(await activeToken(world, token)).to.include({ sub: clients.machine.id });
        expect(await organizationsOf(world, token)).to.deep.equal([world.organization.name]);
      };
    },
  },
  {
    what: 'a consent, which is not asked for again',
    async start({ issuer, partner, clients }) {
      await partner.code(clients.confidential);
      return async () => {
        const url = authorizationUrl(issuer, clients.confidential, { prompt: 'none' });
        const { location } = await partner.browser.follow(await partner.browser.get(url));
        expect(location?.searchParams.get('error')).to.equal(null);
        expect(location?.searchParams.get('code')).to.match(/^gate_ac_/);
      };
    },
  },
  {
    what: 'the revocation of a token and the end of a connection',
    async start(world) {
      const { issuer, partner } = world;
      const { confidential } = world.clients;
      const disconnected = await addClient(world.operator, 'confidential', 'Stock Reports');
      const revoked = await partner.tokens(confidential);
      expect((await revokeCurrent(issuer, revoked.accessToken)).status).to.equal(204);
      const ended = await partner.tokens(disconnected);
      await (await partner.askToDisconnect(disconnected))();
      return async () => {
        for (const [client, tokens] of [
          [confidential, revoked],
          [disconnected, ended],
        ] as const) {
          await expectInactive(world, tokens.accessToken);
          const answer = await refresh(issuer, client, tokens.refreshToken);
          expect(answer.body.error).to.equal('invalid_grant');
        }
      };
    },
  },
  {
    what: 'the block of a client by an organization',
    async start(world) {
      const { partner, organization } = world;
      const blocked = await addClient(world.operator, 'confidential', 'Label Printer');
      const { accessToken } = await partner.tokens(blocked);
      const page = `/profile/organizations/${organization.id}/clients/${blocked.id}`;
      const decide = async (act: 'end' | 'let-in'): Promise<void> => {
        const { browser } = partner;
        const answer = await browser.submit(await browser.get(`${page}/${act}`), {});
        expect(answer.status, answer.html).to.equal(303);
      };
      await decide('end');
      return async () => {
        expect(await organizationsOf(world, accessToken)).to.deep.equal([]);
        await decide('let-in');
        expect(await organizationsOf(world, accessToken)).to.deep.equal([organization.name]);
      };
    },
  },
];
