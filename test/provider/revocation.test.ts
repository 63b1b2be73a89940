/** `POST /oauth/revoke` (RFC 7009): how standard client libraries end an authorization. */
import { expect } from 'chai';
import * as oauth from 'oauth4webapi';
import {
  type Answer,
  ask,
  clientCredentials,
  postForm,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, type Tokens, tokensOf } from './partner-tokens.ts';

forEachDeployment('token revocation', (start) => {
  let service: TestService;
  let clients: Seed['clients'];
  let partner: PartnerTokens;

  before(async () => {
    service = await start();
    const seeded = await seed(service);
    ({ clients } = seeded);
    partner = partnerTokens(service.issuer, seeded);
  });

  const revoke = (
    token: string | undefined,
    client: TestClient | undefined = clients.confidential,
    more: Record<string, string> = {},
  ): Promise<Answer> => postForm(service.issuer, '/oauth/revoke', { token, ...more }, { client });

  const expectDone = ({ status, text }: Answer): void => {
    expect([status, text]).to.deep.equal([200, '']);
  };

  async function isAlive(tokens: Tokens, client = clients.confidential): Promise<boolean> {
    const isActive = await partner.isActive(tokens.accessToken);
    const { status } = await refresh(service.issuer, client, tokens.refreshToken);
    expect(status, 'access and refresh tokens live and die together').to.equal(
      isActive ? 200 : 400,
    );
    return isActive;
  }

  it('either token of an authorization ends all of it, whatever the hint says', async () => {
    for (const kind of ['accessToken', 'refreshToken'] as const) {
      for (const token_type_hint of ['access_token', 'refresh_token', 'nonsense']) {
        const tokens = await partner.tokens(clients.confidential);
        expectDone(await revoke(tokens[kind], clients.confidential, { token_type_hint }));
        expect(await isAlive(tokens), `${kind} ${token_type_hint}`).to.equal(false);
      }
    }
  });

  it('a refresh token that was replaced still ends the authorization', async () => {
    const first = await partner.tokens(clients.confidential);
    const { issuer } = service;
    const second = tokensOf(await refresh(issuer, clients.confidential, first.refreshToken));
    expectDone(await revoke(first.refreshToken));
    expect(await isAlive(second)).to.equal(false);
  });

  it('the other authorizations of the same person stay', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const again = await partner.tokens(clients.confidential);
    expectDone(await revoke(tokens.refreshToken));
    expect(await isAlive(again)).to.equal(true);
  });

  it('a public client names itself, and a machine client ends one token', async () => {
    const tokens = await partner.tokens(clients.public);
    expectDone(await revoke(tokens.refreshToken, clients.public));
    expect(await isAlive(tokens, clients.public)).to.equal(false);

    const one = tokensOf(await clientCredentials(service.issuer, clients.machine));
    const other = tokensOf(await clientCredentials(service.issuer, clients.machine));
    expectDone(await revoke(one.accessToken, clients.machine));
    expect(await partner.isActive(one.accessToken)).to.equal(false);
    expect(await partner.isActive(other.accessToken)).to.equal(true);
  });

  it('a token that is already dead, or never was, is answered as done (RFC 7009 §2.2)', async () => {
    const { accessToken } = await partner.tokens(clients.confidential);
    expectDone(await revoke(accessToken));
    for (const token of [accessToken, `gate_at_${'x'.repeat(65)}`, 'x', 'a.b.c', '☃']) {
      expectDone(await revoke(token));
    }
  });

  it('another client cannot revoke it', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const machine = tokensOf(await clientCredentials(service.issuer, clients.machine));
    const attempts: [string, TestClient][] = [
      [tokens.accessToken, clients.otherConfidential],
      [tokens.refreshToken, clients.public],
      [tokens.accessToken, clients.resourceServer],
      [machine.accessToken, clients.confidential],
    ];
    for (const [token, client] of attempts) {
      const { status, body } = await revoke(token, client);
      expect([status, body.error]).to.deep.equal([400, 'invalid_grant']);
    }
    expect(await isAlive(tokens)).to.equal(true);
    expect(await partner.isActive(machine.accessToken)).to.equal(true);
  });

  it('a request without a client, without a token or with two revokes nothing', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const { accessToken: token } = tokens;
    const url = new URL('/oauth/revoke', service.issuer);

    const nobody = await postForm(service.issuer, '/oauth/revoke', { token });
    expect([nobody.status, nobody.body.error]).to.deep.equal([401, 'invalid_client']);
    const bearer = await ask(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: new URLSearchParams({ token }),
    });
    expect([bearer.status, bearer.body.error]).to.deep.equal([400, 'invalid_request']);
    for (const nothing of [undefined, '']) {
      const { status, body } = await revoke(nothing);
      expect([status, body.error]).to.deep.equal([400, 'invalid_request']);
    }
    const { id, secret = '' } = clients.confidential;
    const form = new URLSearchParams({ client_id: id, client_secret: secret, token });
    const twice = await ask(url, { method: 'POST', body: new URLSearchParams(`${form}&token=x`) });
    expect([twice.status, twice.body.error]).to.deep.equal([400, 'invalid_request']);
    const { status, headers } = await ask(new URL(`${url}?${form}`), {});
    expect([status, headers.get('allow')]).to.deep.equal([405, 'POST']);

    expect(await isAlive(tokens)).to.equal(true);
  });

  it('a standard library finds the endpoint in the metadata and revokes', async () => {
    const issuer = new URL(service.issuer);
    const insecure = { [oauth.allowInsecureRequests]: true };
    const discovery = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure });
    const server = await oauth.processDiscoveryResponse(issuer, discovery);
    const client = { client_id: clients.confidential.id };
    const tokens = await partner.tokens(clients.confidential);

    const secret = oauth.ClientSecretBasic(clients.confidential.secret ?? '');
    const { refreshToken } = tokens;
    const answer = await oauth.revocationRequest(server, client, secret, refreshToken, insecure);
    expect(await oauth.processRevocationResponse(answer)).to.equal(undefined);
    expect(await isAlive(tokens)).to.equal(false);
  });
});
