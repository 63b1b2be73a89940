/** The life of a client through oauth4webapi, which checks every answer against the RFCs. */
import { expect } from 'chai';
import * as oauth from 'oauth4webapi';
import type { TestClient } from '../support/oauth.ts';
import { REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

describe('oauth4webapi', () => {
  const on = startSeeded();
  let server: oauth.AuthorizationServer;

  before(async () => {
    const issuer = new URL(on.issuer);
    const discovery = { algorithm: 'oauth2', ...LOOPBACK } as const;
    const response = await oauth.discoveryRequest(issuer, discovery);
    server = await oauth.processDiscoveryResponse(issuer, response);
  });

  /** One person's consent, and the exchange of what came back. */
  async function connect({ id }: TestClient, authentication: oauth.ClientAuth) {
    const client = { client_id: id };
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(server.authorization_endpoint ?? '');
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: id,
      redirect_uri: REDIRECT_URI,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString();
    const callback = await on.partner.browser.authorize(url, on.seeded.person);

    const parameters = oauth.validateAuthResponse(server, client, callback, state);
    const exchange = (codeVerifier: string | typeof oauth.nopkce) =>
      oauth.authorizationCodeGrantRequest(
        server,
        client,
        authentication,
        parameters,
        REDIRECT_URI,
        codeVerifier,
        LOOPBACK,
      );
    return { client, authentication, verifier, exchange };
  }

  async function tokensOf(testClient: TestClient, authentication: oauth.ClientAuth) {
    const { client, verifier, exchange } = await connect(testClient, authentication);
    return oauth.processAuthorizationCodeResponse(server, client, await exchange(verifier));
  }

  async function refresh({ id }: TestClient, authentication: oauth.ClientAuth, token = '') {
    const client = { client_id: id };
    const args = [server, client, authentication, token, LOOPBACK] as const;
    const response = await oauth.refreshTokenGrantRequest(...args);
    return oauth.processRefreshTokenResponse(server, client, response);
  }

  async function revoke({ id }: TestClient, authentication: oauth.ClientAuth, token = '') {
    const args = [server, { client_id: id }, authentication, token, LOOPBACK] as const;
    await oauth.processRevocationResponse(await oauth.revocationRequest(...args));
  }

  async function introspect(token: string) {
    const { id, secret = '' } = on.clients.resourceServer;
    const client = { client_id: id };
    const authentication = oauth.ClientSecretBasic(secret);
    const args = [server, client, authentication, token, LOOPBACK] as const;
    const response = await oauth.introspectionRequest(...args);
    return oauth.processIntrospectionResponse(server, client, response);
  }

  const methods = {
    'the Basic header': oauth.ClientSecretBasic,
    'the form': oauth.ClientSecretPost,
  };
  for (const [place, method] of Object.entries(methods)) {
    it(`a client with its secret in ${place} connects, refreshes and revokes`, async () => {
      const { confidential } = on.clients;
      const authentication = method(confidential.secret ?? '');
      const first = await tokensOf(confidential, authentication);
      expect(first).to.include({ token_type: 'bearer', expires_in: 3600 });
      const second = await refresh(confidential, authentication, first.refresh_token);
      const third = await refresh(confidential, authentication, second.refresh_token);
      expect(third.refresh_token).to.be.a('string').and.not.equal(second.refresh_token);

      expect(await introspect(third.access_token)).to.include({
        active: true,
        client_id: confidential.id,
        sub: on.seeded.person.accountId,
      });
      await revoke(confidential, authentication, third.access_token);
      // RFC 7009 §2.2: a second time is no error.
      await revoke(confidential, authentication, third.access_token);
      for (const { access_token } of [first, second, third]) {
        expect(await introspect(access_token)).to.deep.equal({ active: false });
      }
      const refused = refresh(confidential, authentication, third.refresh_token);
      expect(await errorOf(refused)).to.include({ status: 400, error: 'invalid_grant' });
    });
  }

  it('a client without a secret connects, refreshes and revokes by PKCE alone', async () => {
    const client = on.clients.public;
    const first = await tokensOf(client, oauth.None());
    const second = await refresh(client, oauth.None(), first.refresh_token);
    expect(await introspect(second.access_token)).to.include({ client_id: client.id });
    await revoke(client, oauth.None(), second.refresh_token);
    expect(await introspect(second.access_token)).to.deep.equal({ active: false });
  });

  it('an exchange without the verifier of its challenge is refused, and can be repeated with it', async () => {
    const { confidential } = on.clients;
    const authentication = oauth.ClientSecretPost(confidential.secret ?? '');
    const { client, verifier, exchange } = await connect(confidential, authentication);
    const processed = async (response: Response) =>
      oauth.processAuthorizationCodeResponse(server, client, response);
    for (const wrong of [oauth.nopkce, oauth.generateRandomCodeVerifier()] as const) {
      const refused = processed(await exchange(wrong));
      expect(await errorOf(refused)).to.include({ status: 400, error: 'invalid_grant' });
    }
    expect(await processed(await exchange(verifier))).to.have.property('refresh_token');
  });

  it('a machine client gets a token of its own', async () => {
    const { id, secret = '' } = on.clients.machine;
    const client = { client_id: id };
    const response = await oauth.clientCredentialsGrantRequest(
      server,
      client,
      oauth.ClientSecretBasic(secret),
      {},
      LOOPBACK,
    );
    const answer = await oauth.processClientCredentialsResponse(server, client, response);
    expect(Object.keys(answer).sort()).to.deep.equal(['access_token', 'expires_in', 'token_type']);
    const { sub, organizations } = await introspect(answer.access_token);
    expect(sub).to.equal(id);
    const { id: organizationId, name } = on.seeded.organization;
    expect(organizations).to.deep.equal([
      { id: organizationId, name, role: 'member', warehouses: [] },
    ]);
  });

  it('a wrong secret is refused as RFC 6749 says, with a challenge for the Basic header', async () => {
    const { confidential } = on.clients;
    const wrong = 'gate_cs_wrong';
    const byHeader = refresh(confidential, oauth.ClientSecretBasic(wrong), 'gate_rt_any');
    const challenged = await errorOf(byHeader);
    expect(challenged).to.be.instanceOf(oauth.WWWAuthenticateChallengeError);
    expect(challenged).to.have.nested.property('cause[0].scheme', 'basic');
    const byForm = refresh(confidential, oauth.ClientSecretPost(wrong), 'gate_rt_any');
    expect(await errorOf(byForm)).to.include({ status: 401, error: 'invalid_client' });
  });
});

/** The library speaks plain http only where it is told to. */
const LOOPBACK = { [oauth.allowInsecureRequests]: true } as const;

/** What the library throws, as partners catch it. */
async function errorOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('nothing was refused');
}
