import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { LIST, REDIRECT_URI, signInOwner } from '../pages/client-owner.ts';
import { eventually } from '../support/eventually.ts';
import { ask, authorizationUrl, basic, exchangeCode, pkce, refresh, type TestClient } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type ClientProblem, recordedProblems } from '../support/recorded-problems.ts';
import { startSeeded } from '../support/seeded.ts';

const NO_CODE = `gate_ac_${'x'.repeat(43)}`;
const WRONG_SECRET = withChecksum(`gate_cs_${'x'.repeat(43)}`);

describe('recent problems of a client', () => {
  const on = startSeeded();
  let client: Required<TestClient>;

  beforeEach(async () => {
    const added = await on.service.clients.add({
      kind: 'confidential',
      name: 'Stock Sync',
      isNative: false,
      redirectUris: [REDIRECT_URI],
      ownerAccountId: on.seeded.person.accountId,
    });
    client = { id: added.client.id, secret: added.secret ?? '', redirectUri: REDIRECT_URI };
  });

  const problems = () => recordedProblems(on.service, client.id);
  const shares = async (): Promise<string[]> => {
    const select = 'SELECT DISTINCT share FROM client_requests WHERE client_id = $1';
    const rows = await on.service.database.query<{ share: string }>(select, [client.id]);
    return rows.map(({ share }) => share);
  };
  const authorize = (parameters: Record<string, string | undefined>) =>
    ask(authorizationUrl(on.issuer, client, parameters), {});
  const token = (parameters: Record<string, string>, headers: Record<string, string> = {}) =>
    ask(new URL('/oauth/token', on.issuer), {
      method: 'POST',
      headers,
      body: new URLSearchParams(parameters),
    });

  async function codeFor(parameters: Record<string, string> = {}): Promise<string> {
    const url = authorizationUrl(on.issuer, client, parameters);
    const redirect = await createPerson(on.issuer).authorize(url, on.seeded.person);
    return redirect.searchParams.get('code') ?? '';
  }
  /** Asserts that one problem is recorded, with this request id. @returns the problem */
  async function only(requestId: string | null): Promise<ClientProblem> {
    const [problem, ...others] = await problems();
    expect(others).to.deep.equal([]);
    expect(problem).to.include({ requestId });
    return problem as ClientProblem;
  }

  it('a request with an unknown redirect URI is recorded as a problem, although it does not redirect', async () => {
    const { status, headers } = await authorize({ redirect_uri: `${REDIRECT_URI}/` });
    expect(status).to.equal(400);
    expect(headers.get('location')).to.equal(null);
    expect(await only(headers.get('x-request-id'))).to.include({
      step: 'authorize',
      error: 'invalid_redirect_uri',
      redirectUri: `${REDIRECT_URI}/`,
    });
    expect(await only(headers.get('x-request-id'))).not.to.have.property('authMethod');
    expect(await shares()).to.deep.equal(['stranger']);
  });

  it('the page for an unknown redirect URI names no registered host', async () => {
    // Any caller who has the ID of the client gets this page.
    const { status, text } = await authorize({ redirect_uri: 'https://elsewhere.example/callback' });
    expect(status).to.equal(400);
    expect(text).to.include('return address is not registered').and.not.include(new URL(REDIRECT_URI).host);
  });

  it('errors of authorization requests are recorded as problems, but neither a Deny nor an answer to prompt=none', async () => {
    const causes: readonly (readonly [Record<string, string | undefined>, string, RegExp])[] = [
      [{ scope: 'openid' }, 'invalid_scope', /leave scope out/],
      [{ state: undefined }, 'invalid_request', /state or code_challenge/],
      [{ response_type: 'token' }, 'unsupported_response_type', /./],
      [{ redirect_uri: undefined }, 'invalid_request', /redirect_uri/],
    ];
    for (const [parameters, error, cause] of causes) {
      await authorize(parameters);
      const [problem] = await problems();
      expect(problem, error).to.include({ step: 'authorize', error });
      expect(problem?.cause, error).to.match(cause);
    }
    const url = authorizationUrl(on.issuer, client);
    const person = createPerson(on.issuer);
    const silently = async () => (await person.get(authorizationUrl(on.issuer, client, { prompt: 'none' }))).location;
    expect((await silently())?.searchParams.get('error')).to.equal('login_required');
    await person.authorize(url, on.seeded.person, 'deny');
    expect((await silently())?.searchParams.get('error')).to.equal('consent_required');
    expect(await problems()).to.have.length(causes.length);
    // Nothing that a stranger sends displaces these.
    expect(await shares()).to.include('owner');
  });

  it('a failed client authentication is recorded with its cause and method', async () => {
    const wrong = { ...client, secret: WRONG_SECRET };
    const grant = { grant_type: 'authorization_code', code: NO_CODE };
    const inBody = { client_id: client.id, client_secret: client.secret };
    const withoutSecret = { ...client, secret: '' };
    const [live, missing] = [/not one of the live secrets/, /must send its secret/];
    const attempts: readonly (readonly [error: string, cause: RegExp, authMethod: string, () => Promise<unknown>])[] = [
      ['invalid_client', live, 'body', () => exchangeCode(on.issuer, wrong, NO_CODE)],
      ['invalid_client', live, 'basic', () => token(grant, { authorization: basic(wrong) })],
      [
        'invalid_request',
        /one mechanism/,
        'both',
        () => token({ ...grant, ...inBody }, { authorization: basic(client) }),
      ],
      ['invalid_client', missing, 'none', () => token({ ...grant, client_id: client.id })],
      ['invalid_client', missing, 'basic', () => token(grant, { authorization: basic(withoutSecret) })],
    ];
    for (const [error, cause, authMethod, attempt] of attempts) {
      await attempt();
      // If the client was forgotten meanwhile, the problem is recorded a query later.
      await eventually(async () => {
        const [problem] = await problems();
        expect(problem).to.include({ step: 'token', error, authMethod });
        expect(problem?.cause).to.match(cause);
      });
    }
    expect(await problems()).to.have.length(attempts.length);
  });

  it('the suspension of a client is recorded as the cause of refused requests, for its owner to read', async () => {
    await on.service.clients.suspend(client.id);
    await exchangeCode(on.issuer, client, NO_CODE);
    await authorize({});
    const causes = (await problems()).map(({ cause }) => cause);
    expect(causes).to.deep.equal(['the client is suspended', 'the client is suspended']);
  });

  it('the exact cause of a refused code exchange is recorded, but never code, verifier or token', async () => {
    const { verifier, parameters } = pkce();
    const code = await codeFor(parameters);
    const other = pkce().verifier;
    await exchangeCode(on.issuer, client, code, { code_verifier: other });
    const elsewhere = `${REDIRECT_URI}?code=${code}`;
    const moved = { code_verifier: verifier, redirect_uri: elsewhere };
    await exchangeCode(on.issuer, client, code, moved);
    const { body } = await exchangeCode(on.issuer, client, code, { code_verifier: verifier });
    await exchangeCode(on.issuer, client, code, { code_verifier: verifier });
    await refresh(on.issuer, client, String(body.refresh_token));
    const found = await problems();
    expect(found.map(({ cause }) => cause)).to.deep.equal([
      'refresh token is not known here, or its authorization was revoked',
      'authorization code was already used',
      'redirect_uri is not the one of the authorization request',
      'code_verifier does not match',
    ]);
    expect(found[2]?.redirectUri).to.equal(`${REDIRECT_URI}?code=…`);
    const stored = JSON.stringify(await on.service.database.query('SELECT * FROM client_requests'));
    const values = [code, verifier, other, client.secret, WRONG_SECRET, body.refresh_token];
    for (const value of values.map(String)) {
      expect(stored).not.to.include(value).and.not.include(value.slice(8));
    }
  });

  it('the owner of a client sees a refused redirect URI next to the registered ones', async () => {
    await authorize({ redirect_uri: 'http://partner.example/callback?tenant=7' });
    await exchangeCode(on.issuer, client, NO_CODE);
    const owner = await signInOwner(on.service, on.seeded.person);
    const { html } = await owner.get(`${LIST}/${client.id}/problems`);
    expect(html).to.include('<code>http://partner.example/callback?tenant=…</code>');
    expect(html).to.include('<code>https://partner.example/callback</code>');
    expect(html).not.to.include('tenant=7');
  });

  it('the scope of a refused request is recorded; a secret in the scope is shortened', async () => {
    await authorize({ scope: 'openid profile email' });
    await authorize({ scope: `undefined ${WRONG_SECRET}` });
    await exchangeCode(on.issuer, client, NO_CODE, { scope: 'offline_access' });
    await exchangeCode(on.issuer, client, NO_CODE);
    const scopes = (await problems()).map(({ scope }) => scope);
    expect(scopes).to.deep.equal([undefined, 'offline_access', 'undefined gate_cs_…', 'openid profile email']);
  });
});
