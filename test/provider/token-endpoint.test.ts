/** `POST /oauth/token` as an HTTP endpoint: accepted requests, the form of its answers, and what is recorded of refusals. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { LIST, REDIRECT_URI, signInOwner } from '../pages/client-owner.ts';
import { eventually } from '../support/eventually.ts';
import {
  type Answer,
  ask,
  authorizationUrl,
  basic,
  exchangeCode,
  introspect,
  pkce,
  postForm,
  refresh,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type ClientProblem, recordedProblems } from '../support/recorded-problems.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { granted, tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const FORM = 'application/x-www-form-urlencoded';

const NO_CODE = `gate_ac_${'x'.repeat(43)}`;
const WRONG_SECRET = withChecksum(`gate_cs_${'x'.repeat(43)}`);

describe('the token endpoint', () => {
  const on = startSeeded();

  const send = (method: string, body: string, headers: Record<string, string> = {}) =>
    ask(new URL('/oauth/token', on.issuer), {
      method,
      body,
      headers: { 'content-type': FORM, ...headers },
    });

  /** Returns the form of a code exchange that would succeed. */
  const exchangeForm = (code: string): URLSearchParams =>
    new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: REDIRECT_URI,
      client_id: on.clients.confidential.id,
      client_secret: on.clients.confidential.secret ?? '',
    });

  const expectStillValid = (code: string) => granted(exchangeCode(on.issuer, on.clients.confidential, code));

  it('a compressed body is refused because of its Content-Encoding, and the code stays valid', async () => {
    const code = await on.partner.code(on.clients.confidential);
    const body = `${exchangeForm(code)}`;
    const answer = await send('POST', body, { 'content-encoding': 'gzip' });
    expectRefusal(answer, 400, 'invalid_request', 'the body must not have a Content-Encoding');
    expect((await send('POST', body, { 'content-encoding': 'identity' })).status).to.equal(200);
  });

  describe('the answers of the token endpoint are JSON with fixed members', () => {
    const ACCESS_TOKEN = /^gate_at_[A-Za-z0-9_-]{95}$/;
    const REFRESH_TOKEN = /^gate_rt_[A-Za-z0-9_-]{66,}$/;

    const expectTokenPair = ({ status, body }: Answer): void => {
      expect(status).to.equal(200);
      const members = ['access_token', 'expires_in', 'refresh_token', 'token_type'];
      expect(Object.keys(body).sort()).to.deep.equal(members);
      expect(body).to.include({ token_type: 'Bearer', expires_in: 3600 });
      expect(body.access_token).to.match(ACCESS_TOKEN);
      expect(body.refresh_token).to.match(REFRESH_TOKEN);
    };

    it('the answers to a code exchange and to a refresh have the same four members', async () => {
      const { verifier: code_verifier, parameters } = pkce();
      for (const client of [on.clients.confidential, on.clients.public]) {
        const code = await on.partner.code(client, parameters);
        const exchanged = await exchangeCode(on.issuer, client, code, { code_verifier });
        expectTokenPair(exchanged);
        expectTokenPair(await refresh(on.issuer, client, tokensOf(exchanged).refreshToken));
      }
    });

    it('tokens and errors are JSON that must not be stored, whatever the Accept header says', async () => {
      const code = await on.partner.code(on.clients.confidential);
      const form = exchangeForm(code).toString();
      const answers = [
        await send('POST', form, { accept: 'text/html' }),
        await send('POST', form, { accept: 'text/html' }),
        await send('POST', 'grant_type=nonsense', { accept: 'text/html,*/*;q=0.1' }),
      ];
      const errors = answers.map(({ body }) => body.error);
      expect(errors).to.deep.equal([undefined, 'invalid_grant', 'invalid_client']);
      for (const { headers } of answers) {
        expect(headers.get('content-type')).to.match(/^application\/json\b/);
        expect([headers.get('cache-control'), headers.get('pragma')]).to.deep.equal(['no-store', 'no-cache']);
      }
    });
  });

  describe('malformed token requests are refused without using up a code or refresh token', () => {
    it('a token request that is not a form is refused, and the error names the right content type', async () => {
      const code = await on.partner.code(on.clients.confidential);
      const form = exchangeForm(code);
      const types = ['application/json', 'text/plain', 'multipart/form-data; boundary=x'];
      for (const type of types) {
        const json = JSON.stringify(Object.fromEntries(form));
        const { status, body } = await send('POST', json, { 'content-type': type });
        expect(status, type).to.equal(400);
        expect(body.error, type).to.equal('invalid_request');
        expect(body.error_description, type).to.contain(FORM);
      }
      await expectStillValid(code);
    });

    it('the form of a token request may name its charset', async () => {
      const form = exchangeForm(await on.partner.code(on.clients.confidential)).toString();
      const { status } = await send('POST', form, { 'content-type': `${FORM}; charset=utf-8` });
      expect(status).to.equal(200);
    });

    it('a token request that is too large is refused with 400, whatever charset it names', async () => {
      const large = `${exchangeForm('gate_ac_x')}&more=${'x'.repeat(60 * 1024)}`;
      for (const charset of ['utf-8', 'nonsense']) {
        const answer = await send('POST', large, { 'content-type': `${FORM}; charset=${charset}` });
        expectRefusal(answer, 400, 'invalid_request');
      }
    });

    it('a token request of more than 1,000 chunks is refused, and the connection is closed if more follow', async () => {
      const form = `${exchangeForm('gate_ac_x')}&more=`;
      const inChunks = (count: number): Promise<string> => {
        const { hostname, port, host } = new URL(on.issuer);
        const socket = connect(Number(port), hostname);
        const head = `POST /oauth/token HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${FORM}\r\n`;
        const first = `${form.length.toString(16)}\r\n${form}\r\n`;
        socket.write(`${head}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${first}`);
        // Send the end of the body only if the answer waits for it.
        socket.write(`${'1\r\nx\r\n'.repeat(count - 1)}${count > 2_000 ? '' : '0\r\n\r\n'}`);
        return text(socket).catch(() => 'cut');
      };
      expect(await inChunks(1_000))
        .to.include('HTTP/1.1 400')
        .and.to.include('invalid_grant');
      const refused = await inChunks(1_001);
      expect(refused).to.include('invalid_request').and.to.include('more than 1000 chunks');
      expect(await inChunks(2_001)).to.not.include('invalid_grant');
    });

    it('the parameters resource and audience may be repeated, and are ignored (RFC 8707 §2)', async () => {
      const form = exchangeForm(await on.partner.code(on.clients.confidential));
      for (const value of ['https://api.example/', 'https://other.example/']) {
        form.append('resource', value);
        form.append('audience', value);
      }
      const { status, text: answer } = await send('POST', `${form}`, { 'content-type': FORM });
      expect(status, answer).to.equal(200);
    });

    it('a token request without Content-Type gets an error about this header, however the client authenticates', async () => {
      const code = await on.partner.code(on.clients.confidential);
      const form = exchangeForm(code);
      const { confidential } = on.clients;
      for (const headers of [{}, { authorization: basic(confidential) }]) {
        const body = new TextEncoder().encode(`${form}`);
        const answer = await ask(new URL('/oauth/token', on.issuer), {
          method: 'POST',
          headers,
          body,
        });
        const cause = `the body must be ${FORM}, and Content-Type must say so`;
        expectRefusal(answer, 400, 'invalid_request', cause);
      }
      const [problem] = await recordedProblems(on.service, confidential.id);
      expect(problem?.cause).to.contain('Content-Type');
      await expectStillValid(code);
    });

    it('a token request without a client is answered with 401, and not limited (RFC 6749 §5.2)', async () => {
      // Send more requests than the limit of wrong secrets, which does not apply to them.
      for (const body of ['', ...Array<string>(60).fill('grant_type=refresh_token')]) {
        const answer = await send('POST', body);
        expectRefusal(answer, 401, 'invalid_client', 'the request names no client');
        expect(answer.headers.get('www-authenticate')).to.match(/^Basic realm="/);
      }
    });

    it('a token request with a repeated parameter is refused, and its code or refresh token stays valid', async () => {
      const { confidential } = on.clients;
      const code = await on.partner.code(confidential);
      const { refreshToken } = await on.partner.tokens(confidential);
      const refreshForm = new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
        client_id: confidential.id,
        client_secret: confidential.secret ?? '',
      });
      for (const form of [exchangeForm(code), refreshForm]) {
        for (const [name, value] of form) {
          expectRefusal(await send('POST', `${form}&${name}=${value}`), 400, 'invalid_request');
        }
      }
      await expectStillValid(code);
      await granted(refresh(on.issuer, confidential, refreshToken));
    });

    it('values with characters that no token contains are refused, and cause no internal error', async () => {
      const { confidential, resourceServer } = on.clients;
      const { issuer } = on;
      const NUL = '\0';
      const attempts: [Promise<Answer>, number, string | undefined][] = [
        [exchangeCode(issuer, confidential, `a${NUL}b`), 400, 'invalid_grant'],
        [exchangeCode(issuer, confidential, `gate_ac_${NUL.repeat(43)}`), 400, 'invalid_grant'],
        [refresh(issuer, confidential, NUL), 400, 'invalid_grant'],
        [refresh(issuer, confidential, `gate_rt_${'\u{1f511}'.repeat(40)}`), 400, 'invalid_grant'],
        [refresh(issuer, { ...confidential, id: NUL }, 'x'), 401, 'invalid_client'],
        [refresh(issuer, { ...confidential, secret: NUL }, 'x'), 401, 'invalid_client'],
        [introspect(issuer, resourceServer, NUL), 200, undefined],
        [introspect(issuer, { ...resourceServer, id: NUL }, 'x'), 401, 'invalid_client'],
        [postForm(issuer, '/oauth/revoke', { token: NUL }, { client: confidential }), 200, undefined],
      ];
      for (const [request, status, error] of attempts) {
        const answer = await request;
        expect(answer.status, answer.text).to.equal(status);
        expect(answer.body.error, answer.text).to.equal(error);
      }
    });
  });

  describe('the recent problems of a client show the cause of each refused request, but no secrets', () => {
    let client: TestClient;

    beforeEach(async () => {
      const { accountId: ownerAccountId } = on.seeded.person;
      client = await addTestClient(on.service, 'Stock Sync', { ownerAccountId });
    });

    const problems = () => recordedProblems(on.service, client.id);
    const shares = async (): Promise<string[]> => {
      const select = 'SELECT DISTINCT share FROM client_requests WHERE client_id = $1';
      const rows = await on.service.database.query<{ share: string }>(select, [client.id]);
      return rows.map(({ share }) => share);
    };
    const authorize = (parameters: Record<string, string | undefined>) =>
      ask(authorizationUrl(on.issuer, client, parameters), {});
    const token = (parameters: Record<string, string>, headers?: Record<string, string>) =>
      send('POST', `${new URLSearchParams(parameters)}`, headers);

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

    it('authorization errors are recorded as problems, except a denial by the user or an answer to prompt=none', async () => {
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
      const inBody = { client_id: client.id, client_secret: `${client.secret}` };
      const withoutSecret = { ...client, secret: '' };
      const [live, missing] = [/not one of the live secrets/, /must send its secret/];
      const attempts: readonly (readonly [error: string, cause: RegExp, authMethod: string, () => Promise<unknown>])[] =
        [
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
      for (const { requestId } of await problems()) expect(html).to.include(`<code>${requestId}</code>`);
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
});
