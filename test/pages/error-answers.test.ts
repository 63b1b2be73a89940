/** Each pair of an error and an endpoint in the error reference is an answer of the real service. */
import { expect } from 'chai';
import { documentedErrors, errorReference } from '../../src/pages/error-reference.ts';
import { inEnglish, textsFor } from '../../src/texts/texts.ts';
import {
  type Answer,
  ask,
  authorizationUrl,
  basic,
  clientCredentials,
  exchangeCode,
  introspect,
  type Parameters,
  postForm,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';

/** Errors of faults (test/storage/faults.test.ts), and one that no check of the service asks for. */
const NOT_CAUSED_HERE = ['temporarily_unavailable', 'server_error', 'interaction_required'];
const MAX_FAILURES = 30;

/** The error and how it was sent, in the words of the reference. */
type Sent = readonly [error: unknown, answer: unknown];
type Requests = Record<string, () => Promise<Sent>>;

const lifetimes = {
  authorizationCodeSeconds: 600,
  accessTokenSeconds: 3600,
  refreshTokenSeconds: 86_400,
  retryWindowSeconds: 60,
};

/** Returns the documented pairs of the errors with these endpoints, except those of faults. */
function documented(isAt: (endpoint: string) => boolean, ...except: string[]): string[] {
  return documentedErrors
    .filter((code) => ![...NOT_CAUSED_HERE, ...except].includes(code))
    .flatMap((code) =>
      (errorReference(code, lifetimes)?.answers ?? [])
        .map(({ endpoint, answer }) => [inEnglish(endpoint), typeof answer === 'number' ? answer : inEnglish(answer)])
        .filter(([endpoint]) => isAt(String(endpoint)))
        .map(([endpoint, answer]) => `${endpoint} ${code} ${answer}`),
    )
    .sort();
}

async function sentFor(endpoint: string, requests: Requests): Promise<string[]> {
  const sent: string[] = [];
  for (const [code, send] of Object.entries(requests)) {
    const [error, answer] = await send();
    expect(error, `${endpoint} for ${code}`).to.equal(code);
    sent.push(`${endpoint} ${code} ${answer}`);
  }
  return sent;
}

describeOn([postgresServer], 'the error reference', () => {
  const on = startSeeded({
    // Failures are counted within a minute by this clock, which a loaded machine may exceed; Redis has its own.
    on: 'postgres',
    clock: true,
    settings: {
      limits: {
        clientFailures: MAX_FAILURES,
        clientFailuresPerAddress: 150,
        changeStreamsPerClient: 1,
      },
    },
  });
  const wrong = (client: TestClient): TestClient => ({ ...client, secret: 'wrong' });
  const inJson = async (answer: Promise<Answer>): Promise<Sent> => {
    const { body, status } = await answer;
    return [body.error, status];
  };
  const get = (path: string, headers: Record<string, string>) => inJson(ask(new URL(path, on.issuer), { headers }));
  const post = (path: string, client: TestClient, parameters: Parameters) =>
    inJson(postForm(on.issuer, path, parameters, { client }));
  const changes = (client: TestClient) => get('/oauth/introspect/changes', { authorization: basic(client) });
  const verify = (client: TestClient) =>
    get('/oauth/verify', {
      authorization: 'Bearer gate_at_unknown',
      'x-gatehouse-authorization': basic(client),
    });

  it('the error reference documents every error answer of each API endpoint', async () => {
    const { confidential, machine, resourceServer } = on.clients;
    const { issuer } = on;
    const { refreshToken } = await on.partner.tokens(confidential);
    const requests: Record<string, Requests> = {
      '/oauth/token': {
        invalid_request: () => post('/oauth/token', confidential, {}),
        invalid_client: () => post('/oauth/token', wrong(confidential), {}),
        invalid_grant: () => inJson(exchangeCode(issuer, confidential, 'gate_ac_unknown')),
        unauthorized_client: () => inJson(clientCredentials(issuer, confidential)),
        unsupported_grant_type: () => post('/oauth/token', confidential, { grant_type: 'password' }),
        invalid_scope: () => inJson(clientCredentials(issuer, machine, { scope: 'read' })),
      },
      '/oauth/revoke': {
        invalid_request: () => post('/oauth/revoke', confidential, {}),
        invalid_client: () => post('/oauth/revoke', wrong(confidential), { token: 'x' }),
        invalid_grant: () => post('/oauth/revoke', machine, { token: refreshToken }),
      },
      '/oauth/token/revoke': {
        invalid_request: () => post('/oauth/token/revoke', confidential, { token: 'x' }),
        invalid_token: () => inJson(revokeCurrent(issuer, 'gate_at_unknown')),
      },
      '/oauth/introspect': {
        invalid_request: () => inJson(introspect(issuer, resourceServer, '')),
        invalid_client: () => inJson(introspect(issuer, wrong(resourceServer), 'x')),
      },
      '/oauth/introspect/changes': {
        invalid_request: () => get('/oauth/introspect/changes', { authorization: 'Basic !' }),
        invalid_client: () => changes(wrong(resourceServer)),
        unauthorized_client: () => changes(confidential),
        async too_many_streams() {
          const url = new URL('/oauth/introspect/changes', issuer);
          const headers = { authorization: basic(resourceServer) };
          const stop = new AbortController();
          await fetch(url, { headers, signal: stop.signal });
          const refused = await changes(resourceServer);
          stop.abort();
          return refused;
        },
      },
      '/oauth/verify': {
        invalid_request: () => get('/oauth/verify', {}),
        invalid_client: () => verify(wrong(resourceServer)),
        unauthorized_client: () => verify(confidential),
        invalid_token: () => verify(resourceServer),
      },
    };
    const sent: string[] = [];
    for (const [endpoint, each] of Object.entries(requests)) sent.push(...(await sentFor(endpoint, each)));
    // Afterwards: the failures of one endpoint count at the others, too.
    for (const [endpoint, { invalid_client, invalid_token }] of Object.entries(requests)) {
      const refused = invalid_client ?? invalid_token;
      let last: Sent = ['nothing', 0];
      for (let tries = 0; last[0] !== 'slow_down' && tries <= 1_000; tries += 1) last = (await refused?.()) ?? last;
      sent.push(`${endpoint} ${last.join(' ')}`);
    }
    const isHere = (endpoint: string): boolean => Object.hasOwn(requests, endpoint);
    expect(sent.sort()).to.deep.equal(documented(isHere));
  });

  it('the reference lists which authorization errors are sent to the client, and which are shown on a page', async () => {
    const { confidential, otherConfidential } = on.clients;
    const { issuer, service, seeded } = on;
    const person = createPerson(issuer);
    await person.signIn(seeded.person);
    const authorize = async (parameters: Parameters, client: TestClient = confidential, by = person): Promise<Sent> => {
      const page = await by.open(authorizationUrl(issuer, client, parameters));
      if (page.location) return [page.location.searchParams.get('error'), 'redirect'];
      expect(page.headers.get('content-type')).to.match(/^text\/html/);
      expect(page.status).to.be.within(400, 499);
      return [/<h1>(.*)<\/h1>/.exec(page.html)?.[1], 'a page'];
    };
    const requests: Requests = {
      invalid_request: () => authorize({ state: undefined }),
      invalid_scope: () => authorize({ scope: 'openid' }),
      async access_denied() {
        const url = authorizationUrl(issuer, otherConfidential);
        const answer = await createPerson(issuer).authorize(url, seeded.person, 'deny');
        return [answer.searchParams.get('error'), 'redirect'];
      },
      unsupported_response_type: () => authorize({ response_type: 'token' }),
      unsupported_response_mode: () => authorize({ response_mode: 'fragment' }),
      login_required: () => authorize({ prompt: 'none' }, confidential, createPerson(issuer)),
      consent_required: () => authorize({ prompt: 'none' }, otherConfidential),
      request_not_supported: () => authorize({ request: 'e30' }),
      request_uri_not_supported: () => authorize({ request_uri: 'https://x.example' }),
      registration_not_supported: () => authorize({ registration: '{}' }),
    };
    const sent = await sentFor('/oauth/authorize', requests);
    // Anyone can name an unregistered host: the page must not call it the address of the app.
    const foreign = await person.open(authorizationUrl(issuer, confidential, { redirect_uri: 'https://x.example' }));
    expect(foreign.html).to.include('<bdi>').and.not.include('<bdi>x.example</bdi>');
    const pages = {
      invalid_client: await authorize({}, { ...confidential, id: 'gate_ci_unknown' }),
      invalid_redirect_uri: await authorize({ redirect_uri: 'https://x.example' }),
    };
    const t = textsFor('en');
    expect(Object.values(pages)).to.deep.equal([
      [t('errors.unknown-app-heading'), 'a page'],
      [t('errors.return-address-heading'), 'a page'],
    ]);
    sent.push(...Object.keys(pages).map((code) => `/oauth/authorize ${code} a page`));
    await service.accounts.suspend(seeded.other.accountId);
    const [heading, shown] = await authorize({});
    const [error, answer] = await authorize({ prompt: 'none' });
    expect(heading).to.equal(t('errors.owner_suspended-heading'));
    sent.push(`/oauth/authorize ${error} ${shown}, or a ${answer} if the request has prompt=none`);
    expect(sent.sort()).to.deep.equal(documented((at) => at === '/oauth/authorize'));
  });

  it('a user who sends too many authorization requests at once gets a page that does not blame the app', async () => {
    const person = createPerson(on.issuer);
    const url = authorizationUrl(on.issuer, on.clients.otherConfidential);
    await person.authorize(url, on.seeded.person);
    // None of the requests is answered while the table is locked, and at most 11 of one person wait for it.
    const { refused, all } = await on.service.database.transaction(async (tx) => {
      await tx.query('LOCK TABLE connections IN EXCLUSIVE MODE');
      const all = Array.from({ length: 20 }, () => person.open(url));
      return { refused: await Promise.race(all), all };
    });
    await Promise.all(all);
    expect(refused.status).to.equal(429);
    expect(refused.headers.get('retry-after')).to.equal('2');
    expect(refused.html).to.include(textsFor('en')('errors.app-busy-heading'));
  });
});
