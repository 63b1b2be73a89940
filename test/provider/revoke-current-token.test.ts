/** `POST /oauth/token/revoke`: whoever holds an access token can end what it belongs to. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { type Answer, ask, basic, clientCredentials, refresh } from '../support/oauth.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { type PartnerTokens, partnerTokens, type Tokens, tokensOf } from './partner-tokens.ts';

forEachDeployment('revoking the current token', (start) => {
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

  interface Request {
    readonly bearer?: string;
    readonly authorization?: string;
    readonly query?: string;
    readonly form?: Record<string, string>;
  }

  function revoke({ bearer, authorization, query = '', form }: Request): Promise<Answer> {
    const header = bearer === undefined ? authorization : `Bearer ${bearer}`;
    return ask(new URL(`/oauth/token/revoke${query}`, service.issuer), {
      method: 'POST',
      headers: header === undefined ? {} : { authorization: header },
      body: form === undefined ? null : new URLSearchParams(form),
    });
  }

  async function next({ refreshToken }: Tokens): Promise<Tokens> {
    const answer = await refresh(service.issuer, clients.confidential, refreshToken);
    expect(answer.status, answer.text).to.equal(200);
    return tokensOf(answer);
  }

  async function expectDead(tokens: Tokens): Promise<void> {
    expect(await partner.isActive(tokens.accessToken)).to.equal(false);
    const refused = await refresh(service.issuer, clients.confidential, tokens.refreshToken);
    expect([refused.status, refused.body.error]).to.deep.equal([400, 'invalid_grant']);
  }

  /** That the grant goes on: its access token is good, and its refresh token still refreshes. */
  async function expectAlive(tokens: Tokens): Promise<void> {
    expect(await partner.isActive(tokens.accessToken)).to.equal(true);
    await next(tokens);
  }

  const expectUnauthorized = ({ status, headers, body }: Answer): void => {
    expect([status, body.error]).to.deep.equal([401, 'invalid_token']);
    expect(headers.get('www-authenticate')).to.match(/^Bearer error="invalid_token"/);
  };

  it('answers 204 without a body, and the token and its refresh tokens are dead at once', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const { status, text } = await revoke({ bearer: tokens.accessToken });
    expect([status, text]).to.deep.equal([204, '']);
    await expectDead(tokens);
  });

  it('any access token of the grant ends all of them, older and newer', async () => {
    const first = await partner.tokens(clients.confidential);
    const second = await next(first);
    const third = await next(second);
    expect((await revoke({ bearer: second.accessToken })).status).to.equal(204);
    for (const tokens of [first, second, third]) await expectDead(tokens);
  });

  it('leaves the other authorizations of the same person alone, and other clients', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const again = await partner.tokens(clients.confidential);
    const elsewhere = await partner.tokens(clients.public);
    expect((await revoke({ bearer: tokens.accessToken })).status).to.equal(204);
    await expectAlive(again);
    expect(await partner.isActive(elsewhere.accessToken)).to.equal(true);
  });

  it('a machine token ends alone', async () => {
    const one = tokensOf(await clientCredentials(service.issuer, clients.machine));
    const other = tokensOf(await clientCredentials(service.issuer, clients.machine));
    expect((await revoke({ bearer: one.accessToken })).status).to.equal(204);
    expect(await partner.isActive(one.accessToken)).to.equal(false);
    expect(await partner.isActive(other.accessToken)).to.equal(true);
  });

  it('the scheme may be written in any case (RFC 9110 §11.1)', async () => {
    const { accessToken } = await partner.tokens(clients.confidential);
    expect((await revoke({ authorization: `bearer ${accessToken}` })).status).to.equal(204);
  });

  it('a token that is revoked, unknown or expired is 401 invalid_token', async () => {
    const { accessToken } = await partner.tokens(clients.confidential);
    const expired = await partner.tokens(clients.confidential);
    await revoke({ bearer: accessToken });
    expectUnauthorized(await revoke({ bearer: accessToken }));
    expectUnauthorized(await revoke({ bearer: `gate_at_${'x'.repeat(65)}` }));
    expectUnauthorized(await revoke({ bearer: `${expired.accessToken}x` }));
    expectUnauthorized(await revoke({ bearer: 'eyJhbGciOiJub25lIn0.e30.' }));

    time.advance(3_600);
    expectUnauthorized(await revoke({ bearer: expired.accessToken }));
    // Nothing was revoked by it: the grant goes on.
    const { status } = await refresh(service.issuer, clients.confidential, expired.refreshToken);
    expect(status).to.equal(200);
  });

  it('without a token it is a challenge without an error, and not 204', async () => {
    for (const form of [undefined, {}]) {
      const { status, headers } = await revoke(form === undefined ? {} : { form });
      expect(status).to.equal(401);
      expect(headers.get('www-authenticate')).to.equal('Bearer');
    }
  });

  it('a token parameter is a misunderstanding: 400, and nothing is revoked', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const { accessToken: bearer, refreshToken } = tokens;
    const requests: Request[] = [
      { bearer, form: { token: bearer } },
      { bearer, form: { token: refreshToken, token_type_hint: 'refresh_token' } },
      { bearer, form: { token: '' } },
      { bearer, query: `?token=${bearer}` },
      { bearer, query: '?token' },
      { form: { token: bearer } },
      { authorization: basic(clients.confidential), form: { token: bearer } },
    ];
    for (const request of requests) {
      const { status, body } = await revoke(request);
      const shown = JSON.stringify(request);
      expect([status, body.error], shown).to.deep.equal([400, 'invalid_request']);
    }
    await expectAlive(tokens);
  });

  it('only an access token in the header is a credential; nothing else revokes', async () => {
    const tokens = await partner.tokens(clients.confidential);
    const { accessToken, refreshToken } = tokens;
    const refused: [Request, number][] = [
      [{ query: `?access_token=${accessToken}` }, 401],
      [{ form: { access_token: accessToken } }, 401],
      [{ bearer: accessToken, query: `?access_token=${accessToken}` }, 400],
      [{ bearer: accessToken, form: { access_token: accessToken } }, 400],
      [{ bearer: refreshToken }, 401],
      [{ bearer: clients.confidential.secret ?? '' }, 401],
      [{ authorization: basic(clients.confidential) }, 400],
      [{ authorization: `Basic ${accessToken}` }, 400],
      [{ authorization: accessToken }, 400],
      [{ authorization: 'Bearer' }, 400],
    ];
    for (const [request, status] of refused) {
      expect((await revoke(request)).status, JSON.stringify(request)).to.equal(status);
    }
    await expectAlive(tokens);
  });

  it('an API key is refused: keys are revoked on the profile page', async () => {
    const { accountId } = seeded.person;
    const draft = { accountId, name: 'Night export', expiresInDays: undefined };
    const { value } = await service.apiKeys.add(draft, { address: '192.0.2.1', browser: 'test' });
    expectUnauthorized(await revoke({ bearer: value }));
    expect(await partner.isActive(value)).to.equal(true);
  });

  it('every method but POST is refused with 405 and names POST', async () => {
    const tokens = await partner.tokens(clients.confidential);
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
      const { status, headers } = await ask(new URL('/oauth/token/revoke', service.issuer), {
        method,
        headers: { authorization: `Bearer ${tokens.accessToken}` },
      });
      expect([status, headers.get('allow')], method).to.deep.equal([405, 'POST']);
    }
    await expectAlive(tokens);
  });
});

describeOn([postgresServer, redisServer], 'revoking while the token store is away', () => {
  it('is 503, never 204, and succeeds when it is asked again', async () => {
    const redis = await startRedisServer();
    const service = await startTestService({
      deployment: 'postgres+redis',
      patience: 1,
      settings: { storage: { redisUrl: redis.url } },
    });
    try {
      const seeded = await seed(service);
      const partner = partnerTokens(service.issuer, seeded);
      const { accessToken } = await partner.tokens(seeded.clients.confidential);
      const revoke = (): Promise<Answer> =>
        ask(new URL('/oauth/token/revoke', service.issuer), {
          method: 'POST',
          headers: { authorization: `Bearer ${accessToken}` },
        });

      redis.pause();
      const refused = await revoke();
      expect([refused.status, refused.body.error]).to.deep.equal([503, 'temporarily_unavailable']);
      expect(Number(refused.headers.get('retry-after'))).to.be.above(0);
      redis.resume();
      expect(await partner.isActive(accessToken)).to.equal(true);
      expect((await revoke()).status).to.equal(204);
      expect(await partner.isActive(accessToken)).to.equal(false);
    } finally {
      redis.resume();
      await service.close();
      await redis.stop();
    }
  });
});
