/** What a partner developer reads when a request is refused: a true cause, once it is known who asks. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import {
  type Answer,
  ask,
  clientCredentials,
  exchangeCode,
  introspect,
  type Parameters,
  pkce,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, tokensOf } from './partner-tokens.ts';

forEachDeployment('errors for clients', (start) => {
  let service: TestService;
  let seeded: Seed;
  let clients: Seed['clients'];
  let partner: PartnerTokens;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    seeded = await seed(service);
    ({ clients } = seeded);
    partner = partnerTokens(service.issuer, seeded);
  });
  after(() => time.restore());

  const exchange = (code: string, parameters: Parameters = {}, client = clients.confidential) =>
    exchangeCode(service.issuer, client, code, parameters);
  const renew = (token: string, parameters: Parameters = {}, client = clients.confidential) =>
    refresh(service.issuer, client, token, parameters);

  interface Case {
    readonly title: string;
    readonly error: string;
    readonly cause: string;
    refused(): Promise<Answer>;
  }

  /** Refused requests of a client that authenticated with its secret. */
  const CASES: readonly Case[] = [
    {
      title: 'an unknown code',
      error: 'invalid_grant',
      cause: 'authorization code is not known here',
      refused: () => exchange(`gate_ac_${'x'.repeat(43)}`),
    },
    {
      title: 'a used code',
      error: 'invalid_grant',
      cause: 'authorization code was already used',
      async refused() {
        const code = await partner.code(clients.confidential);
        expect((await exchange(code)).status).to.equal(200);
        return exchange(code);
      },
    },
    {
      title: 'an expired code',
      error: 'invalid_grant',
      cause: 'authorization code has expired',
      async refused() {
        const code = await partner.code(clients.confidential);
        time.advance(600);
        return exchange(code);
      },
    },
    {
      title: 'another redirect URI',
      error: 'invalid_grant',
      cause: 'redirect_uri is not the one of the authorization request',
      refused: async () =>
        exchange(await partner.code(clients.confidential), { redirect_uri: 'https://evil.test/' }),
    },
    {
      title: 'no redirect URI',
      error: 'invalid_request',
      cause: "missing required parameter 'redirect_uri'",
      refused: async () =>
        exchange(await partner.code(clients.confidential), { redirect_uri: undefined }),
    },
    {
      title: 'a wrong verifier',
      error: 'invalid_grant',
      cause: 'code_verifier does not match',
      async refused() {
        const code = await partner.code(clients.confidential, pkce().parameters);
        return exchange(code, { code_verifier: pkce().verifier });
      },
    },
    {
      title: 'no verifier',
      error: 'invalid_grant',
      cause: 'code_verifier is missing',
      refused: async () => exchange(await partner.code(clients.confidential, pkce().parameters)),
    },
    {
      title: 'a verifier without a challenge',
      error: 'invalid_grant',
      cause: 'code_verifier was sent, but the authorization request had no code_challenge',
      refused: async () =>
        exchange(await partner.code(clients.confidential), { code_verifier: pkce().verifier }),
    },
    {
      title: 'the code of another client',
      error: 'invalid_grant',
      cause: 'it was issued to another client',
      refused: async () => exchange(await partner.code(clients.otherConfidential)),
    },
    {
      title: 'an unknown refresh token',
      error: 'invalid_grant',
      cause: 'refresh token is not known here, or its authorization was revoked',
      refused: () => renew('gate_rt_unknown'),
    },
    {
      title: 'a revoked authorization',
      error: 'invalid_grant',
      cause: 'refresh token is not known here, or its authorization was revoked',
      async refused() {
        const { accessToken, refreshToken } = await partner.tokens(clients.confidential);
        await revokeCurrent(service.issuer, accessToken);
        return renew(refreshToken);
      },
    },
    {
      title: 'a scope in a code exchange',
      error: 'invalid_scope',
      cause: 'no scopes exist here: leave scope out',
      refused: async () => exchange(await partner.code(clients.confidential), { scope: 'all' }),
    },
    {
      title: 'a scope in a refresh',
      error: 'invalid_scope',
      cause: 'no scopes exist here: leave scope out',
      refused: () => renew('gate_rt_unknown', { scope: 'all' }),
    },
    {
      title: 'a scope in client credentials',
      error: 'invalid_scope',
      cause: 'no scopes exist here: leave scope out',
      refused: () => clientCredentials(service.issuer, clients.machine, { scope: 'all' }),
    },
    {
      title: 'client credentials of a client that people registered themselves',
      error: 'unauthorized_client',
      cause: 'this client may not use grant_type client_credentials',
      refused: () => clientCredentials(service.issuer, clients.confidential),
    },
    {
      title: 'a code exchange of a machine client',
      error: 'unauthorized_client',
      cause: 'this client may not use grant_type authorization_code',
      refused: () => exchange('x', {}, clients.machine),
    },
    {
      title: 'any grant of a resource server',
      error: 'unauthorized_client',
      cause: 'this client may not use grant_type client_credentials',
      refused: () => clientCredentials(service.issuer, clients.resourceServer),
    },
    {
      title: 'no grant type',
      error: 'invalid_request',
      cause: "missing required parameter 'grant_type'",
      refused: () => clientCredentials(service.issuer, clients.machine, { grant_type: undefined }),
    },
  ];

  /** RFC 6749 §5.2, with a page about the error, and the reference that our log has. */
  async function expectWellFormed({ headers, body }: Answer): Promise<void> {
    expect(body).to.have.all.keys('error', 'error_description', 'error_uri');
    expect(body.error_description).to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
    expect(headers.get('x-request-id')).to.match(/^req_[A-Za-z0-9_-]{16}$/);
    expect(body.error_uri).to.equal(`${service.issuer}/errors/${body.error}`);
    const page = await createPerson(service.issuer).get(String(body.error_uri));
    expect(page.status).to.equal(200);
    expect(page.html).to.contain(String(body.error));
  }

  for (const { title, error, cause, refused } of CASES) {
    it(`${title}: ${error}, ${cause}`, async () => {
      const answer = await refused();
      expect(answer.status).to.equal(400);
      expect(answer.body).to.include({ error, error_description: cause });
      await expectWellFormed(answer);
    });
  }

  it('a client that proved nothing is told no cause', async () => {
    const { verifier, parameters } = pkce();
    const used = await partner.code(clients.public, parameters);
    const proof = { code_verifier: verifier };
    expect((await exchange(used, proof, clients.public)).status).to.equal(200);
    const open = await partner.code(clients.public, parameters);
    const answers = [
      await exchange(used, proof, clients.public),
      await exchange('gate_ac_unknown', proof, clients.public),
      await exchange(open, { code_verifier: pkce().verifier }, clients.public),
      await exchange(open, { ...proof, redirect_uri: 'https://evil.test/' }, clients.public),
      await renew('gate_rt_unknown', {}, clients.public),
    ];
    const [first] = answers;
    for (const answer of answers) {
      expect(answer.body).to.deep.equal({
        ...first?.body,
        error: 'invalid_grant',
        error_description: 'grant request is invalid',
      });
      await expectWellFormed(answer);
    }
  });

  it('a wrong secret is told no cause, and no code is looked at', async () => {
    const code = await partner.code(clients.confidential);
    const { accessToken } = tokensOf(await exchange(code));
    const wrong = { ...clients.confidential, secret: `gate_cs_${'w'.repeat(43)}` };
    const replayed = await exchange(code, {}, wrong);
    const unknown = await exchange('gate_ac_unknown', {}, wrong);
    expect(replayed.body).to.deep.equal(unknown.body);
    expect([replayed.status, replayed.body.error]).to.deep.equal([401, 'invalid_client']);
    await expectWellFormed(replayed);
    expect(await partner.isActive(accessToken)).to.equal(true);
  });

  it('every other endpoint refuses in the same form', async () => {
    const { issuer } = service;
    const wrong = { ...clients.confidential, secret: `gate_cs_${'w'.repeat(43)}` };
    const { accessToken } = await partner.tokens(clients.confidential);
    const answers: [number, string, Answer][] = [
      [401, 'invalid_token', await revokeCurrent(issuer, 'unknown')],
      [
        400,
        'invalid_request',
        await postForm(issuer, '/oauth/token/revoke', { token: accessToken }, { client: wrong }),
      ],
      [401, 'invalid_client', await introspect(issuer, wrong, accessToken)],
      [401, 'invalid_client', await introspect(issuer, clients.public, accessToken)],
      [400, 'invalid_request', await introspect(issuer, clients.resourceServer, '')],
      [401, 'invalid_client', await postForm(issuer, '/oauth/revoke', { token: accessToken })],
      [405, 'invalid_request', await ask(new URL('/oauth/token', issuer), {})],
      [400, 'invalid_request', await postForm(issuer, '/oauth/token', {})],
      [
        400,
        'invalid_grant',
        await postForm(
          issuer,
          '/oauth/revoke',
          { token: accessToken },
          { client: clients.otherConfidential },
        ),
      ],
    ];
    for (const [status, error, answer] of answers) {
      expect([answer.status, answer.body.error], answer.text).to.deep.equal([status, error]);
      await expectWellFormed(answer);
    }
  });

  it('what a request says never comes back unescaped, and success has a reference too', async () => {
    const client = clients.confidential;
    const grant_type = 'nonsense"\\\r\nSet-Cookie: x=<script>é';
    const answer = await postForm(service.issuer, '/oauth/token', { grant_type }, { client });
    expect([answer.status, answer.body.error]).to.deep.equal([400, 'unsupported_grant_type']);
    await expectWellFormed(answer);
    const scoped = await renew('gate_rt_x', { scope: 'sécret "scope"' });
    await expectWellFormed(scoped);
    expect(scoped.text).to.not.contain('cret');

    const { headers } = await clientCredentials(service.issuer, clients.machine);
    expect(headers.get('x-request-id')).to.match(/^req_[A-Za-z0-9_-]{16}$/);
  });
});
