/** What the log holds of everybody's requests: enough to find one, and nothing that opens a door. */
import { expect } from 'chai';
import {
  type Answer,
  ask,
  authorizationUrl,
  basic,
  clientCredentials,
  exchangeCode,
  introspect,
  pkce,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

describe('request log', () => {
  const on = startSeeded();

  const requestLines = () =>
    on.service.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request');

  it('holds none of the secrets of a whole run, its failures included', async () => {
    const { issuer } = on;
    const { person: account, clients } = on.seeded;
    const { confidential, otherConfidential, machine, resourceServer } = clients;
    const secrets = new Map<string, string | undefined>();
    const person = createPerson(issuer);
    const keepCookies = (path: string): void => {
      for (const cookie of person.cookieHeader(path).split('; ')) {
        const [name = '', value = ''] = cookie.split('=');
        // An interaction's cookie is the name in its path; what proves it is the signature.
        if (!path.includes(value)) secrets.set(`cookie ${name} of ${path}`, value);
      }
    };

    // The person: a wrong password, the right one, the pages, the approval.
    const wrongPassword = 'seven red forklifts';
    await person.submit(await person.get('/login'), {
      email: account.email,
      password: wrongPassword,
    });
    const { verifier, parameters } = pkce();
    const state = 'state-that-only-the-partner-knows';
    const url = authorizationUrl(issuer, confidential, { ...parameters, state });
    const waiting = await person.follow(await person.get(url));
    keepCookies(waiting.url.pathname);
    const [, formToken] = waiting.forms[0]?.values.find(([name]) => name === 'form_token') ?? [];
    const redirect = await person.authorize(url, account);
    const code = redirect.searchParams.get('code') ?? '';
    keepCookies('/profile');

    // The client: everything that can be refused, and everything that works.
    const proof = { code_verifier: verifier };
    const wrongSecret = { ...confidential, secret: `${confidential.secret}x` };
    const answers: Answer[] = [
      await exchangeCode(issuer, wrongSecret, code, proof),
      await exchangeCode(issuer, otherConfidential, code, proof),
      await exchangeCode(issuer, confidential, code, { code_verifier: pkce().verifier }),
      await exchangeCode(issuer, confidential, code, { ...proof, redirect_uri: 'https://a.b/' }),
      await exchangeCode(issuer, confidential, code, proof),
    ];
    const first = String(answers.at(-1)?.body.refresh_token);
    answers.push(await refresh(issuer, confidential, first));
    answers.push(await refresh(issuer, confidential, first, { scope: 'x' }));
    answers.push(await clientCredentials(issuer, machine));
    const tokens = answers.flatMap(({ body }) => [body.access_token, body.refresh_token]);
    const issued = tokens.filter((token) => typeof token === 'string');
    expect(issued).to.have.length(5);
    for (const [index, token] of issued.entries()) {
      secrets.set(`token ${index}`, token);
      answers.push(await introspect(issuer, resourceServer, token));
      answers.push(await introspect(issuer, wrongSecret, token));
      answers.push(await postForm(issuer, `/oauth/token/revoke?token=${token}`, { token }));
      answers.push(await postForm(issuer, '/oauth/token/refresh', { refresh_token: token }));
      const headers = { authorization: `Bearer ${token}` };
      answers.push(await ask(new URL(`/profile?access_token=${token}`, issuer), { headers }));
    }
    answers.push(await exchangeCode(issuer, confidential, code, proof));
    answers.push(await revokeCurrent(issuer, issued[0] ?? ''));
    await person.get(`${redirect.search}`);
    await person.submit(await person.get('/logout'), { form_token: formToken ?? '' });

    for (const { secret, id } of Object.values(clients)) {
      secrets.set(`secret of ${id}`, secret);
      secrets.set(`Basic credentials of ${id}`, secret && basic({ id, secret, redirectUri: '' }));
    }
    secrets.set('code', code).set('verifier', verifier).set('state', state);
    secrets.set('challenge', parameters.code_challenge).set('form token', formToken);
    secrets.set('password', account.password).set('wrong password', wrongPassword);
    secrets.set('a setting', on.service.settings.secrets.tokenKeys[0]);

    expect(answers.length).to.be.greaterThan(30);
    expect([...secrets.keys()]).to.include.members([
      'cookie gate_session of /profile',
      'cookie gate_session.sig of /profile',
      'cookie gate_form of /profile',
    ]);
    const log = on.service.logLines.join('');
    for (const [name, secret] of secrets) {
      if (secret === undefined) continue;
      expect(secret.length, name).to.be.greaterThan(10);
      for (const spelling of [secret, encodeURIComponent(secret), secret.slice(0, -4)]) {
        expect(log.includes(spelling), `${name} is in the log`).to.equal(false);
      }
    }
  });

  it('has exactly one line for each request, found by the X-Request-Id of its answer', async () => {
    const { issuer } = on;
    const requests: [string, RequestInit, number][] = [
      ['/login', {}, 200],
      ['/profile', { redirect: 'manual' }, 303],
      ['/nothing', {}, 404],
      ['/oauth/authorize?client_id=none', {}, 400],
      ['/oauth/token', { method: 'POST' }, 400],
      ['/oauth/token', { method: 'PUT' }, 405],
      ['/oauth/introspect', { method: 'POST' }, 401],
      ['/.well-known/oauth-authorization-server', {}, 200],
      ['/assets/none.css', {}, 404],
    ];
    for (const [path, init, status] of requests) {
      const answer = await fetch(issuer + path, init);
      await answer.text();
      expect(answer.status, path).to.equal(status);
      const id = answer.headers.get('x-request-id');
      const lines = requestLines().filter(({ requestId }) => requestId === id);
      expect(lines, path).to.have.length(1);
      expect(lines[0]).to.include({
        method: init.method ?? 'GET',
        path: path.split('?')[0],
        status,
        ip: '127.0.0.1',
      });
    }
  });

  it('a reference that the caller brings is not taken over', async () => {
    const headers = { 'x-request-id': 'req_of-the-caller' };
    const answer = await fetch(`${on.issuer}/login`, { headers });
    expect(answer.headers.get('x-request-id')).to.match(/^req_[A-Za-z0-9_-]{16}$/);
    expect(on.service.logLines.join('')).not.to.include('req_of-the-caller');
  });

  it('the cause of a refused token request stands under the same reference', async () => {
    const answer = await exchangeCode(on.issuer, on.clients.confidential, 'gate_ac_none');
    expect(answer.body.error).to.equal('invalid_grant');
    const refusals = on.service.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ requestId }) => requestId === answer.headers.get('x-request-id'))
      .filter(({ msg }) => msg === 'token refused');
    expect(refusals).to.have.length(1);
    expect(refusals[0]).to.include({
      clientId: on.clients.confidential.id,
      error: 'invalid_grant',
    });
    expect(refusals[0]?.cause).to.be.a('string').and.not.equal('');
  });
});
