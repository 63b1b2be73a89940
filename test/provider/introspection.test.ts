/** `POST /oauth/introspect` (RFC 7662), and `POST /oauth/token/revoke`, with which the bearer of a token ends it. */
import { expect } from 'chai';
import * as library from 'openid-client';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  ask,
  authorizationUrl,
  basic,
  introspect,
  pkce,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { granted, type Tokens } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

describe('introspection says whether a token is active, and what its owner can access', () => {
  const on = startSeeded({ clock: true });

  const seconds = (): number => Math.floor(on.clock.clock() / 1000);
  const see = (token: string, client: TestClient = on.clients.resourceServer): Promise<Answer> =>
    introspect(on.issuer, client, token);

  async function expectInactive(token: string, client?: TestClient): Promise<void> {
    const { status, text } = await see(token, client);
    expect(status, token).to.equal(200);
    expect(text, token).to.equal('{"active":false}');
  }

  const accessToken = async (client = on.clients.confidential): Promise<string> =>
    (await on.partner.tokens(client)).accessToken;

  /** The expected organizations of a member with these rights in the seeded warehouse. */
  function reach(role: string, rights: readonly string[]) {
    const { organization, warehouse } = on.seeded;
    const warehouses = [{ id: warehouse.id, name: warehouse.name, rights }];
    return [
      {
        id: organization.id,
        name: organization.name,
        role,
        warehouses: rights.length === 0 ? [] : warehouses,
      },
    ];
  }

  it('a resource server receives the owner of a token and the owner’s current access', async () => {
    const issuedAt = seconds();
    const token = await accessToken();
    on.clock.advance(10);
    const answer = await see(token);
    expect(answer.status).to.equal(200);
    expect(answer.headers.get('content-type')).to.match(/^application\/json\b/);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    const { iat, exp, ...rest } = answer.body;
    // Allow some seconds: the store's clock sets this time, and runs while the test clock stands still.
    expect(iat).to.be.within(issuedAt, issuedAt + 20);
    expect(Number(exp) - Number(iat)).to.equal(3_600);
    expect(rest).to.deep.equal({
      active: true,
      token_type: 'Bearer',
      client_id: on.clients.confidential.id,
      sub: on.seeded.person.accountId,
      authorization: token.slice('gate_at_'.length).slice(0, 22),
      username: on.seeded.person.email,
      iss: on.issuer,
      organizations: reach('member', ['read', 'write']),
    });
  });

  it('openid-client connects with PKCE alone, with a Basic secret, or as a machine client, and introspects tokens', async () => {
    const { confidential, public: publicClient, machine, resourceServer } = on.clients;
    const discover = ({ id }: TestClient, authentication: library.ClientAuth) =>
      library.discovery(new URL(on.issuer), id, {}, authentication, {
        algorithm: 'oauth2',
        execute: [library.allowInsecureRequests],
      });
    const api = await discover(resourceServer, library.ClientSecretBasic(resourceServer.secret));
    for (const [client, authentication] of [
      [publicClient, library.None()],
      [confidential, library.ClientSecretBasic(confidential.secret)],
    ] as const) {
      const config = await discover(client, authentication);
      const { verifier: pkceCodeVerifier, parameters } = pkce();
      const url = authorizationUrl(on.issuer, client, { ...parameters, state: 'chosen' });
      const callback = await on.partner.browser.authorize(url, on.seeded.person);
      const checks = { pkceCodeVerifier, expectedState: 'chosen' };
      const first = await library.authorizationCodeGrant(config, callback, checks);
      const next = await library.refreshTokenGrant(config, first.refresh_token ?? '');
      const answer = await library.tokenIntrospection(api, next.access_token);
      expect(answer).to.include({ active: true, client_id: client.id, sub: on.seeded.person.accountId });
      await library.tokenRevocation(config, next.access_token);
      expect(await library.tokenIntrospection(api, next.access_token)).to.deep.equal({ active: false });
    }
    const config = await discover(machine, library.ClientSecretPost(machine.secret));
    const { access_token } = await library.clientCredentialsGrant(config);
    expect(await library.tokenIntrospection(api, access_token)).to.include({ active: true, sub: machine.id });
  });

  it('a client that is not a resource server learns only whether its own tokens are active', async () => {
    const token = await accessToken();
    const { body } = await see(token, on.clients.confidential);
    expect(body).to.include({ active: true, client_id: on.clients.confidential.id });
    expect(body).to.not.have.any.keys('username', 'organizations', 'authorization');
    await expectInactive(token, on.clients.otherConfidential);
    await expectInactive(token, on.clients.machine);
    const { value } = await apiKeyOf(on.service, on.seeded.person);
    for (const client of [on.clients.confidential, on.clients.machine]) await expectInactive(value, client);
  });

  it('introspection reports a refresh token, code or client secret as inactive, even to the client that owns it', async () => {
    const { confidential, resourceServer } = on.clients;
    const { refreshToken } = await on.partner.tokens(confidential);
    for (const value of [refreshToken, await on.partner.code(confidential), confidential.secret ?? '']) {
      for (const client of [resourceServer, confidential]) await expectInactive(value, client);
    }
  });

  it('an access token is active until the second in which it expires', async () => {
    const token = await accessToken();
    const { exp } = (await see(token)).body;
    on.clock.advance(Number(exp) - seconds() - 1);
    expect((await see(token)).body.active).to.equal(true);
    on.clock.advance(1);
    await expectInactive(token);
  });

  it('introspection returns the user’s access at the moment of the call', async () => {
    const { memberships } = on.service;
    const { organization, warehouse } = on.seeded;
    const who = { accountId: on.seeded.person.accountId };
    const token = await accessToken();
    const expectReach = (expected: unknown) =>
      eventually(async () => {
        expect((await see(token)).body.organizations).to.deep.equal(expected);
      });

    await memberships.setRights(who, warehouse.id, ['read']);
    await expectReach(reach('member', ['read']));
    await memberships.setRole(who, organization.id, 'admin');
    await expectReach(reach('admin', ['read', 'write', 'manage']));
    await memberships.setRole(who, organization.id, 'viewer');
    await expectReach(reach('viewer', ['read']));
    await memberships.remove(who, organization.id);
    await expectReach([]);
    expect((await see(token)).body.active).to.equal(true);
  });

  describe('`POST /oauth/token/revoke`: the bearer of an access token ends its authorization', () => {
    interface Request {
      readonly bearer?: string;
      readonly authorization?: string;
      readonly query?: string;
      readonly form?: Record<string, string>;
    }

    function revoke({ bearer, authorization, query = '', form }: Request): Promise<Answer> {
      const header = bearer === undefined ? authorization : `Bearer ${bearer}`;
      return ask(new URL(`/oauth/token/revoke${query}`, on.issuer), {
        method: 'POST',
        headers: header === undefined ? {} : { authorization: header },
        body: form === undefined ? null : new URLSearchParams(form),
      });
    }

    /** Asserts that the access token and the refresh token of an authorization are active. */
    async function expectActive(tokens: Tokens): Promise<void> {
      expect(await on.partner.isActive(tokens.accessToken)).to.equal(true);
      await granted(refresh(on.issuer, on.clients.confidential, tokens.refreshToken));
    }

    const expectUnauthorized = (answer: Answer): void => {
      expectRefusal(answer, 401, 'invalid_token');
      expect(answer.headers.get('www-authenticate')).to.match(/^Bearer error="invalid_token"/);
    };
    const expectDone = ({ status, text }: Answer): void => {
      expect(status, text).to.equal(204);
      expect(text).to.equal('');
    };

    it('the scheme Bearer may be written in upper or lower case (RFC 9110 §11.1)', async () => {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      expectDone(await revoke({ authorization: `bearer ${accessToken}` }));
    });

    it('a revocation with a revoked, unknown or expired token is answered with 401 invalid_token', async () => {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const expired = await on.partner.tokens(on.clients.confidential);
      await revoke({ bearer: accessToken });
      expectUnauthorized(await revoke({ bearer: accessToken }));
      expectUnauthorized(await revoke({ bearer: `gate_at_${'x'.repeat(65)}` }));
      expectUnauthorized(await revoke({ bearer: `${expired.accessToken}x` }));
      // Refuse a no-break space, which is neither white space of HTTP (RFC 9110 §5.6.3) nor part of any token.
      expectUnauthorized(await revoke({ bearer: `${expired.accessToken}\xa0` }));
      expectUnauthorized(await revoke({ bearer: 'eyJhbGciOiJub25lIn0.e30.' }));

      on.clock.advance(3_620);
      expectUnauthorized(await revoke({ bearer: expired.accessToken }));
      // The authorization was not revoked.
      await granted(refresh(on.issuer, on.clients.confidential, expired.refreshToken));
    });

    it('a revocation without a token gets 401, and its challenge contains no error code', async () => {
      const { accessToken } = await on.partner.tokens(on.clients.confidential);
      const requests: Request[] = [
        {},
        { form: {} },
        // RFC 6750 §3.1: an unsupported authentication method counts as no credentials.
        { authorization: basic(on.clients.confidential) },
        { authorization: `Basic ${accessToken}` },
        { authorization: accessToken },
        { authorization: 'Bearer' },
        { authorization: 'Bearer ' },
      ];
      for (const request of requests) {
        const { status, headers } = await revoke(request);
        expect(status, JSON.stringify(request)).to.equal(401);
        expect(headers.get('www-authenticate'), JSON.stringify(request)).to.equal('Bearer');
      }
      expect(await on.partner.isActive(accessToken)).to.equal(true);
    });

    it('a revocation with a token parameter is refused with 400, and nothing is revoked', async () => {
      const tokens = await on.partner.tokens(on.clients.confidential);
      const { accessToken: bearer, refreshToken } = tokens;
      const requests: Request[] = [
        { bearer, form: { token: bearer } },
        { bearer, form: { token: refreshToken, token_type_hint: 'refresh_token' } },
        { bearer, form: { token: '' } },
        { bearer, query: `?token=${bearer}` },
        { bearer, query: '?token' },
        { form: { token: bearer } },
        { authorization: basic(on.clients.confidential), form: { token: bearer } },
      ];
      for (const request of requests) {
        const answer = await revoke(request);
        expectRefusal(answer, 400, 'invalid_request');
        // The challenge of RFC 6750 §3, with an error (§3.1).
        const challenge = /^Bearer error="invalid_request", error_description="[^"]+"$/;
        expect(answer.headers.get('www-authenticate')).to.match(challenge);
      }
      await expectActive(tokens);
    });

    it('a caller can revoke only the access token in the Authorization header, and no other kind of token', async () => {
      const tokens = await on.partner.tokens(on.clients.confidential);
      const { accessToken, refreshToken } = tokens;
      const key = await apiKeyOf(on.service, on.seeded.person);
      const refused: [Request, number][] = [
        [{ query: `?access_token=${accessToken}` }, 401],
        [{ form: { access_token: accessToken } }, 401],
        [{ bearer: accessToken, query: `?access_token=${accessToken}` }, 400],
        [{ bearer: accessToken, form: { access_token: accessToken } }, 400],
        [{ bearer: refreshToken }, 401],
        [{ bearer: on.clients.confidential.secret ?? '' }, 401],
        [{ bearer: key.value }, 401],
      ];
      for (const [request, status] of refused) {
        expect((await revoke(request)).status, JSON.stringify(request)).to.equal(status);
      }
      await expectActive(tokens);
      expect(await on.partner.isActive(key.value)).to.equal(true);
      expect((await revoke({ bearer: key.value })).body.error_description).to.include('profile page');
    });
  });
});
