/** The authorization server metadata (RFC 8414), with no members beyond those listed here. */
import { expect } from 'chai';
import { ask, authorizationUrl } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';

const PATH = '/.well-known/oauth-authorization-server';

const expectedOf = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${issuer}/oauth/token`,
  // RFC 7009. Not POST /oauth/token/revoke, which takes no token parameter and so does not conform.
  revocation_endpoint: `${issuer}/oauth/revoke`,
  introspection_endpoint: `${issuer}/oauth/introspect`,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
  token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  revocation_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
  introspection_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
  service_documentation: `${issuer}/errors`,
});

/** Headers that proxies add, and that an attacker can forge if there is no proxy. */
const FORWARDED = {
  'x-forwarded-host': 'evil.example',
  'x-forwarded-proto': 'https',
  'x-forwarded-port': '444',
  'x-forwarded-prefix': '/evil',
  forwarded: 'host=evil.example;proto=https',
};

describe('the metadata document describes the service to every caller', () => {
  // Trust a proxy, because then such headers could do the most harm.
  const on = startSeeded({ settings: { server: { proxyHops: 1 } } });

  const get = (path: string, headers: Record<string, string> = {}) => ask(new URL(path, on.issuer), { headers });

  it('the metadata document lists exactly what the service supports', async () => {
    const { status, headers, body } = await get(PATH);
    expect(status).to.equal(200);
    expect(headers.get('content-type')).to.equal('application/json; charset=utf-8');
    expect(body).to.deep.equal(expectedOf(on.issuer));
  });

  it('the metadata may be read by pages of every origin, and cached for an hour', async () => {
    const { headers } = await get(PATH, { origin: 'https://app.example' });
    expect(headers.get('access-control-allow-origin')).to.equal('*');
    expect(headers.get('access-control-allow-credentials')).to.equal(null);
    expect(headers.get('cache-control')).to.equal('public, max-age=3600');
  });

  it('forwarding headers change neither the metadata nor a redirect', async () => {
    const { body } = await get(PATH, FORWARDED);
    expect(body).to.deep.equal(expectedOf(on.issuer));

    const { email, password } = on.seeded.person;
    const person = createPerson(on.issuer);
    const url = authorizationUrl(on.issuer, on.clients.confidential);
    const asked = await person.get(url, FORWARDED);
    expect(asked.location?.origin).to.equal(on.issuer);
    const signIn = await person.get(asked.location ?? url, FORWARDED);
    const resumed = await person.submit(signIn, { email, password }, FORWARDED);
    expect(resumed.location?.href.startsWith(`${on.issuer}/oauth/authorize?`)).to.equal(true);
    const consent = await person.follow(resumed);
    const approved = await person.submit(consent, { decision: 'approve' }, FORWARDED);
    const answered = await person.get(approved.location ?? url, FORWARDED);
    expect(answered.location?.searchParams.get('iss')).to.equal(on.issuer);
  });
});
