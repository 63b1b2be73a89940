/** Error descriptions for partner developers: exact, but only for authenticated clients. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import {
  type Answer,
  clientCredentials,
  exchangeCode,
  type Parameters,
  pkce,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { startSeeded } from '../support/seeded.ts';
import { tokensOf } from './partner-tokens.ts';
import { expectRefusal } from './refusals.ts';

const NO_CODE = withChecksum(`gate_ac_${'x'.repeat(65)}`);
type Refused = () => Promise<Answer>;

describe('errors for clients', () => {
  const on = startSeeded({ clock: true });

  const exchange = (code: string, parameters: Parameters = {}, client = on.clients.confidential) =>
    exchangeCode(on.issuer, client, code, parameters);
  const renew = (token: string, parameters: Parameters = {}, client = on.clients.confidential) =>
    refresh(on.issuer, client, token, parameters);

  const codeOf = (parameters?: Parameters) => on.partner.code(on.clients.confidential, parameters);
  const UNKNOWN = 'is not known here, or its authorization was revoked';

  /** The causes that an authenticated client receives, by error. */
  const CASES: Readonly<Record<string, readonly (readonly [string, string, Refused])[]>> = {
    invalid_grant: [
      ['an unknown code', `authorization code ${UNKNOWN}`, () => exchange(NO_CODE)],
      ['a used code', 'authorization code was already used', refuseUsed],
      ['an expired code', 'authorization code has expired', refuseExpired],
      [
        'another redirect URI',
        'redirect_uri is not the one of the authorization request',
        async () => exchange(await codeOf(), { redirect_uri: 'https://evil.test/' }),
      ],
      [
        'a verifier without a challenge',
        'code_verifier was sent, but the authorization request had no code_challenge',
        async () => exchange(await codeOf(), { code_verifier: pkce().verifier }),
      ],
      [
        'the code of another client',
        'it was issued to another client',
        async () => exchange(await on.partner.code(on.clients.otherConfidential)),
      ],
      [
        'a refresh token in the place of a code',
        `authorization code ${UNKNOWN}`,
        async () => exchange((await on.partner.tokens(on.clients.confidential)).refreshToken),
      ],
      ['an unknown refresh token', `refresh token ${UNKNOWN}`, () => renew('gate_rt_unknown')],
      ['a revoked authorization', `refresh token ${UNKNOWN}`, refuseRevoked],
      ['an ended connection', 'the authorization was revoked', refuseDisconnected],
    ],
    invalid_request: [
      [
        'no redirect URI',
        "missing required parameter(s) 'redirect_uri'",
        async () => exchange(await codeOf(), { redirect_uri: undefined }),
      ],
      [
        'no grant type',
        "missing required parameter 'grant_type'",
        () => clientCredentials(on.issuer, on.clients.machine, { grant_type: undefined }),
      ],
    ],
    unauthorized_client: [
      [
        'client credentials of a client that a user registered',
        'this client may not use grant_type client_credentials',
        () => clientCredentials(on.issuer, on.clients.confidential),
      ],
      [
        'a code exchange of a machine client',
        'this client may not use grant_type authorization_code',
        () => exchange('x', {}, on.clients.machine),
      ],
      [
        'any grant of a resource server',
        'this client may not use grant_type client_credentials',
        () => clientCredentials(on.issuer, on.clients.resourceServer),
      ],
    ],
  };

  async function refuseUsed(): Promise<Answer> {
    const code = await codeOf();
    expect((await exchange(code)).status).to.equal(200);
    return exchange(code);
  }

  async function refuseExpired(): Promise<Answer> {
    const code = await codeOf();
    on.clock.advance(620);
    return exchange(code);
  }

  async function refuseRevoked(): Promise<Answer> {
    const { accessToken, refreshToken } = await on.partner.tokens(on.clients.confidential);
    await revokeCurrent(on.issuer, accessToken);
    return renew(refreshToken);
  }

  async function refuseDisconnected(): Promise<Answer> {
    const { refreshToken } = await on.partner.tokens(on.clients.confidential);
    await (await on.partner.askToDisconnect(on.clients.confidential))();
    return renew(refreshToken);
  }

  /** Asserts the form of RFC 6749 §5.2, with a page about the error and a request id. */
  async function expectWellFormed({ headers, body }: Answer): Promise<void> {
    expect(body).to.have.all.keys('error', 'error_description', 'error_uri');
    expect(body.error_description).to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
    expect(headers.get('x-request-id')).to.match(/^req_[A-Za-z0-9_-]{16}$/);
    expect(body.error_uri).to.equal(`${on.issuer}/errors/${body.error}`);
    const page = await createPerson(on.issuer).get(String(body.error_uri));
    expect(page.status).to.equal(200);
    expect(page.html).to.contain(String(body.error));
  }

  for (const [error, cases] of Object.entries(CASES)) {
    for (const [title, cause, refused] of cases) {
      it(`a token request with ${title} gets ${error}: ${cause}`, async () => {
        const answer = await refused();
        expectRefusal(answer, 400, error, cause);
        await expectWellFormed(answer);
      });
    }
  }

  it('a public client learns which of its parameters was wrong, and that its code was used or has expired', async () => {
    const { verifier, parameters } = pkce();
    const proof = { code_verifier: verifier };
    const used = await on.partner.code(on.clients.public, parameters);
    expect((await exchange(used, proof, on.clients.public)).status).to.equal(200);
    const open = await on.partner.code(on.clients.public, parameters);
    const elsewhere = { ...proof, redirect_uri: 'https://evil.test/' };
    const expire = async () => {
      on.clock.advance(620);
      return exchange(open, proof, on.clients.public);
    };
    const answers: [string, Answer][] = [
      ['code_verifier is missing', await exchange(open, {}, on.clients.public)],
      ['code_verifier does not match', await exchange(open, { code_verifier: pkce().verifier }, on.clients.public)],
      ['redirect_uri is not the one of the authorization request', await exchange(open, elsewhere, on.clients.public)],
      ['authorization code was already used', await exchange(used, proof, on.clients.public)],
      ['authorization code has expired', await expire()],
    ];
    for (const [cause, answer] of answers) {
      expectRefusal(answer, 400, 'invalid_grant', cause);
      await expectWellFormed(answer);
    }
  });

  it('a public client learns nothing about codes and tokens of other clients, or about accounts', async () => {
    const { verifier, parameters } = pkce();
    const proof = { code_verifier: verifier };
    const foreign = await on.partner.code(on.clients.confidential, parameters);
    const answers = [
      await exchange('gate_ac_unknown', proof, on.clients.public),
      await exchange(foreign, proof, on.clients.public),
      await renew('gate_rt_unknown', {}, on.clients.public),
    ];
    for (const { body } of answers) {
      expect(body.error).to.equal('invalid_grant');
      expect(body.error_description).to.equal('grant request is invalid');
    }
  });

  it('a client with a wrong secret does not receive the cause of an error, and its code is not checked', async () => {
    const code = await on.partner.code(on.clients.confidential);
    const { accessToken } = tokensOf(await exchange(code));
    const wrong = { ...on.clients.confidential, secret: withChecksum(`gate_cs_${'w'.repeat(43)}`) };
    const replayed = await exchange(code, {}, wrong);
    const unknown = await exchange('gate_ac_unknown', {}, wrong);
    expect(replayed.body).to.deep.equal(unknown.body);
    expectRefusal(replayed, 401, 'invalid_client');
    await expectWellFormed(replayed);
    expect(await on.partner.isActive(accessToken)).to.equal(true);
  });

  it('errors contain no unescaped text of the request, and all answers have a request id', async () => {
    const client = on.clients.confidential;
    const grant_type = 'nonsense"\\\r\nSet-Cookie: x=<script>é';
    const answer = await postForm(on.issuer, '/oauth/token', { grant_type }, { client });
    expectRefusal(answer, 400, 'unsupported_grant_type');
    await expectWellFormed(answer);
    const scoped = await renew('gate_rt_x', { scope: 'sécret "scope"' });
    await expectWellFormed(scoped);
    expect(scoped.text).to.not.contain('cret');

    const { headers } = await clientCredentials(on.issuer, on.clients.machine);
    expect(headers.get('x-request-id')).to.match(/^req_[A-Za-z0-9_-]{16}$/);
  });

  it('a token request with a scope is refused and consumes nothing; an empty scope, or scope[a], is ignored', async () => {
    const code = await codeOf();
    const { refreshToken } = await on.partner.tokens(on.clients.confidential);
    const grants: readonly (readonly [(parameters: Parameters) => Promise<Answer>, ...more: string[]])[] = [
      [(parameters) => exchange(code, parameters), 'refresh_token'],
      [(parameters) => renew(refreshToken, parameters), 'refresh_token'],
      [(parameters) => clientCredentials(on.issuer, on.clients.machine, parameters)],
    ];
    for (const [send, ...more] of grants) {
      for (const scope of ['foo', 'openid', 'openid foo', ' ', 'a"b']) {
        const answer = await send({ scope });
        expectRefusal(answer, 400, 'invalid_scope');
        expect(answer.body.error_description).to.match(/^no scopes exist here: leave|^scope contains invalid/);
      }
      const { status, body, text } = await send({ scope: '', 'scope[a]': 'b', 'scope[]': 'b', 'scope.a': 'b' });
      expect(status, text).to.equal(200);
      expect(body).to.have.all.keys('access_token', 'expires_in', 'token_type', ...more);
    }
  });
});
