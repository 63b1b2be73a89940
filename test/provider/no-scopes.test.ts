/** No scopes exist: `scope` left out or empty is right, anything else is `invalid_scope`. */
import { expect } from 'chai';
import {
  type Answer,
  authorizationUrl,
  clientCredentials,
  exchangeCode,
  introspect,
  pkce,
  postForm,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { answerIn } from './authorization-outcome.ts';
import { type PartnerTokens, partnerTokens } from './partner-tokens.ts';

const SOME_SCOPES = ['foo', 'openid', 'offline_access', 'openid foo', 'read write', ' ', 'a"b'];

forEachDeployment('no scopes', (start) => {
  let service: TestService;
  let seeded: Seed;
  let partner: PartnerTokens;
  let client: TestClient;

  before(async () => {
    service = await start();
    seeded = await seed(service);
    client = seeded.clients.confidential;
    partner = partnerTokens(service.issuer, seeded);
  });

  function expectInvalidScope({ status, body }: Answer, scope: string): void {
    expect([scope, status, body.error]).to.deep.equal([scope, 400, 'invalid_scope']);
  }

  /** RFC 6749 §5.1, and nothing beside it. */
  function expectTokens({ status, body, text }: Answer, ...more: string[]): void {
    expect(status, text).to.equal(200);
    expect(body).to.have.all.keys('access_token', 'expires_in', 'token_type', ...more);
  }

  it('a token response has its four members and no scope', async () => {
    const { issuer } = service;
    const { verifier: code_verifier, parameters } = pkce();
    for (const one of [client, seeded.clients.public]) {
      const code = await partner.code(one, parameters);
      const exchanged = await exchangeCode(issuer, one, code, { code_verifier });
      expectTokens(exchanged, 'refresh_token');
      const refreshed = await refresh(issuer, one, String(exchanged.body.refresh_token));
      expectTokens(refreshed, 'refresh_token');
    }
    expectTokens(await clientCredentials(issuer, seeded.clients.machine));
  });

  it('introspection tells no scope', async () => {
    const { accessToken } = await partner.tokens(client);
    const { body } = await introspect(service.issuer, seeded.clients.resourceServer, accessToken);
    expect(body.active).to.equal(true);
    expect(body).to.not.have.property('scope');
  });

  for (const scope of SOME_SCOPES) {
    it(`an authorization request for "${scope}" is refused before anybody is asked`, async () => {
      const url = authorizationUrl(service.issuer, client, { scope });
      const { error_description: description, ...told } = answerIn(
        await createPerson(service.issuer).get(url),
      );
      const { searchParams } = url;
      const state = searchParams.get('state');
      expect(told).to.deep.equal({ error: 'invalid_scope', state, iss: service.issuer });
      expect(description).to.be.oneOf([
        'no scopes exist here: leave scope out',
        'scope contains invalid characters',
      ]);
    });
  }

  it('an exchange with a scope is refused and does not use up the code', async () => {
    const code = await partner.code(client);
    for (const scope of SOME_SCOPES) {
      expectInvalidScope(await exchangeCode(service.issuer, client, code, { scope }), scope);
    }
    const exchanged = await exchangeCode(service.issuer, client, code, { scope: '' });
    expectTokens(exchanged, 'refresh_token');
  });

  it('a refresh with a scope is refused and does not use up the refresh token', async () => {
    const { accessToken, refreshToken } = await partner.tokens(client);
    for (const scope of SOME_SCOPES) {
      expectInvalidScope(await refresh(service.issuer, client, refreshToken, { scope }), scope);
    }
    const refreshed = await refresh(service.issuer, client, refreshToken, { scope: '' });
    expectTokens(refreshed, 'refresh_token');
    const { body } = await introspect(service.issuer, seeded.clients.resourceServer, accessToken);
    expect(body.active).to.equal(true);
  });

  it('client credentials with a scope are refused', async () => {
    const { machine } = seeded.clients;
    for (const scope of SOME_SCOPES) {
      expectInvalidScope(await clientCredentials(service.issuer, machine, { scope }), scope);
    }
    expectTokens(await clientCredentials(service.issuer, machine, { scope: '' }));
  });

  it('a refused scope does not stand in the answer', async () => {
    const scope = 'scope-with-a-secret';
    const url = authorizationUrl(service.issuer, client, { scope });
    const told = await createPerson(service.issuer).get(url);
    expect(told.location?.href).to.not.include(scope);
    const answer = await clientCredentials(service.issuer, seeded.clients.machine, { scope });
    expect(answer.text).to.not.include(scope);
  });

  it('an empty scope is none', async () => {
    const url = authorizationUrl(service.issuer, client, { scope: '' });
    expect(answerIn(await partner.browser.get(url))).to.have.property('code');
  });

  it('scope twice is refused as repeated, even if empty', async () => {
    const url = `${authorizationUrl(service.issuer, client)}&scope=&scope=`;
    expect(answerIn(await partner.browser.get(url)).error).to.equal('invalid_request');
  });

  it('scope[a] and scope[] are other names, which mean nothing', async () => {
    const odd = { 'scope[a]': 'b', 'scope[]': 'b', 'scope.a': 'b' };
    const code = await partner.code(client, odd);
    expectTokens(await exchangeCode(service.issuer, client, code, odd), 'refresh_token');
    const form = { grant_type: 'client_credentials', ...odd };
    const { machine } = seeded.clients;
    expectTokens(await postForm(service.issuer, '/oauth/token', form, { client: machine }));
  });
});
