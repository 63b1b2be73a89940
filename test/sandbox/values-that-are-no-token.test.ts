/** Values that are not valid tokens are refused, and cause no failure. */
import { expect } from 'chai';
import { tokensOf } from '../provider/partner-tokens.ts';
import { clientCredentials, introspect } from '../support/oauth.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { apiKeyOf, type CalledApi, startCalledApi } from './called-api.ts';

// Use PostgreSQL, because it is the store that does not accept NUL bytes.
describeOn([postgresServer], 'a value that is not a valid token', () => {
  const on = startSeeded({ on: 'postgres' });
  let clients: typeof on.clients;
  let api: CalledApi;
  /** One valid value of each kind that an API accepts. */
  let valid: Record<'access token' | 'machine token' | 'API key', string>;

  before(async () => {
    ({ clients } = on);
    api = await startCalledApi(on.service, clients.resourceServer);
    valid = {
      'access token': (await on.partner.tokens(clients.confidential)).accessToken,
      'machine token': tokensOf(await clientCredentials(on.issuer, clients.machine)).accessToken,
      'API key': (await apiKeyOf(on.service, on.seeded.person)).value,
    };
  });
  afterEach('the valid values stay valid', async () => {
    for (const value of Object.values(valid)) await api.expectLetIn(value);
  });

  /** Asserts that introspection answers that the value is not active, and nothing else. */
  async function expectInactive(value: string): Promise<void> {
    const answer = await introspect(on.issuer, clients.resourceServer, value);
    expect(answer, value).to.include({ status: 200, text: '{"active":false}' });
  }

  async function expectInvalid(value: string): Promise<void> {
    await expectInactive(value);
    await api.expectRefused(value);
  }

  it('a credential of another kind is refused by an API', async () => {
    const { refreshToken } = await on.partner.tokens(clients.confidential);
    for (const value of [
      refreshToken,
      await on.partner.code(clients.confidential),
      clients.confidential.secret ?? '',
      clients.resourceServer.secret ?? '',
      clients.confidential.id,
      on.seeded.person.accountId,
      'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhY2NfeCJ9.',
    ]) {
      await expectInvalid(value);
    }
  });

  it('introspection reports a value with a NUL byte, or characters not allowed in headers, as inactive', async () => {
    for (const value of Object.values(valid)) {
      for (const wrong of [
        `${value}\0`,
        `\0${value}`,
        `${value.slice(0, -1)}\0`,
        `${value.slice(0, 20)}\0${value.slice(20)}`,
        `${value}%00`,
        `${value} ${value}`,
        `${value}\r\n`,
        `${value.slice(0, -1)}é`,
        `${value.slice(0, -1)}\ud800`,
      ]) {
        await expectInactive(wrong);
      }
    }
    for (const value of ['\0', '☃', 'x'.repeat(50_000)]) await expectInactive(value);
  });

  it('introspection of a value that is too large is answered with 400', async () => {
    const answer = await introspect(on.issuer, clients.resourceServer, 'x'.repeat(100_000));
    // Expect 400, because RFC 6749 §5.2 does not define 413.
    expect(answer.status).to.equal(400);
    expect(answer.body.error).to.equal('invalid_request');
  });
});
