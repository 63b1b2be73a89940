/** An unmodified openid-client connects and revokes, and checks every answer against the RFCs. */
import { expect } from 'chai';
import * as oauth from 'openid-client';
import type { TestClient } from '../support/oauth.ts';
import { REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

// Use the embedded database, which needs no configuration.
describe('openid-client, on the embedded database', () => {
  const on = startSeeded({ on: 'embedded' });

  /** Discovers the service as a developer would: with only the issuer, client id and secret. */
  const discover = (client: TestClient, authentication: oauth.ClientAuth) =>
    oauth.discovery(new URL(on.issuer), client.id, {}, authentication, {
      algorithm: 'oauth2',
      execute: [oauth.allowInsecureRequests],
    });

  /** Authorizes with `state` and a code challenge, and exchanges the code. */
  async function connect(config: oauth.Configuration) {
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier();
    const expectedState = oauth.randomState();
    const url = oauth.buildAuthorizationUrl(config, {
      redirect_uri: REDIRECT_URI,
      state: expectedState,
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    });
    const callback = await on.partner.browser.authorize(url, on.seeded.person);
    return oauth.authorizationCodeGrant(config, callback, { pkceCodeVerifier, expectedState });
  }

  async function introspect(token: string) {
    const { resourceServer } = on.clients;
    const api = await discover(resourceServer, oauth.ClientSecretBasic(resourceServer.secret));
    return oauth.tokenIntrospection(api, token);
  }

  it('a client with its secret in the Basic header connects, refreshes twice and revokes its token', async () => {
    const { confidential } = on.clients;
    const config = await discover(confidential, oauth.ClientSecretBasic(confidential.secret));
    const first = await connect(config);
    expect(Object.keys(first).sort()).to.deep.equal(TOKEN_RESPONSE);
    expect(first).to.include({ token_type: 'bearer', expires_in: 3600 });

    const second = await oauth.refreshTokenGrant(config, first.refresh_token ?? '');
    expect(Object.keys(second).sort()).to.deep.equal(TOKEN_RESPONSE);
    const third = await oauth.refreshTokenGrant(config, second.refresh_token ?? '');
    const refreshTokens = [first, second, third].map(({ refresh_token }) => refresh_token);
    expect(new Set(refreshTokens).size).to.equal(3);

    const { organization, warehouse, person } = on.seeded;
    const answer = await introspect(third.access_token);
    expect(answer).to.include({
      active: true,
      token_type: 'Bearer',
      client_id: confidential.id,
      sub: person.accountId,
      username: person.email,
      iss: on.issuer,
    });
    expect(answer.organizations).to.deep.equal([
      {
        id: organization.id,
        name: organization.name,
        role: 'member',
        warehouses: [{ id: warehouse.id, name: warehouse.name, rights: ['read', 'write'] }],
      },
    ]);

    await oauth.tokenRevocation(config, third.refresh_token ?? '');
    expect(await introspect(third.access_token)).to.deep.equal({ active: false });
    const refused = oauth.refreshTokenGrant(config, third.refresh_token ?? '');
    expect(await refused.catch((error: unknown) => error)).to.include({
      status: 400,
      error: 'invalid_grant',
    });
  });

  it('a client without a secret connects, refreshes and revokes with PKCE alone', async () => {
    const config = await discover(on.clients.public, oauth.None());
    const first = await connect(config);
    expect(Object.keys(first).sort()).to.deep.equal(TOKEN_RESPONSE);
    const second = await oauth.refreshTokenGrant(config, first.refresh_token ?? '');
    const { id } = on.clients.public;
    expect(await introspect(second.access_token)).to.include({ client_id: id });
    await oauth.tokenRevocation(config, second.access_token);
    expect(await introspect(second.access_token)).to.deep.equal({ active: false });
  });

  it('a machine client gets its own access token, without a refresh token', async () => {
    const { machine } = on.clients;
    const config = await discover(machine, oauth.ClientSecretPost(machine.secret));
    const answer = await oauth.clientCredentialsGrant(config);
    expect(Object.keys(answer).sort()).to.deep.equal(['access_token', 'expires_in', 'token_type']);
    expect(await introspect(answer.access_token)).to.include({ active: true, sub: machine.id });
    await oauth.tokenRevocation(config, answer.access_token);
    expect(await introspect(answer.access_token)).to.deep.equal({ active: false });
  });
});

const TOKEN_RESPONSE = ['access_token', 'expires_in', 'refresh_token', 'token_type'];
