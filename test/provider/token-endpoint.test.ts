/** `POST /oauth/token` as an HTTP endpoint: accepted requests, and the form of its answers. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { type Answer, ask, basic, exchangeCode, introspect, pkce, postForm, refresh } from '../support/oauth.ts';
import { recordedProblems } from '../support/recorded-problems.ts';
import { REDIRECT_URI } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const FORM = 'application/x-www-form-urlencoded';

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

  const expectStillValid = async (code: string): Promise<void> => {
    const answer = await exchangeCode(on.issuer, on.clients.confidential, code);
    expect(answer.status, answer.text).to.equal(200);
  };

  it('a compressed body is refused by its Content-Encoding, and uses nothing up', async () => {
    const code = await on.partner.code(on.clients.confidential);
    const body = `${exchangeForm(code)}`;
    const answer = await send('POST', body, { 'content-encoding': 'gzip' });
    expectRefusal(answer, 400, 'invalid_request', 'the body must not have a Content-Encoding');
    expect((await send('POST', body, { 'content-encoding': 'identity' })).status).to.equal(200);
  });

  describe('answers', () => {
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

  describe('requests', () => {
    it('a token request that is not a form is refused with the name of the right content type', async () => {
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

    it('a token request without a content type is refused with this cause, however the client authenticates', async () => {
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
      const refreshed = await refresh(on.issuer, confidential, refreshToken);
      expect(refreshed.status).to.equal(200);
    });

    it('values with characters that no token contains are refused, and cause no failure', async () => {
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
});
