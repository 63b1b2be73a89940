/** What is no good token, whatever it looks like: nobody is let in by it, and nothing breaks. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { tokensOf } from '../provider/partner-tokens.ts';
import { clientCredentials, introspect } from '../support/oauth.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addTestClient } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { apiKeyOf, type CalledApi, startCalledApi } from './called-api.ts';

const PREFIXES = ['gate_at_', 'gate_mt_', 'gate_rt_', 'gate_ac_', 'gate_cs_', 'gate_key_'];

// Of the stores, PostgreSQL is the one that takes no NUL byte.
describeOn([postgresServer], 'a value that is no good token', () => {
  const on = startSeeded({ on: 'postgres' });
  let clients: typeof on.clients;
  let api: CalledApi;
  /** One good value of each kind that an API takes. */
  let good: Record<'access token' | 'machine token' | 'API key', string>;

  before(async () => {
    ({ clients } = on);
    api = await startCalledApi(on.service, clients.resourceServer);
    good = {
      'access token': (await on.partner.tokens(clients.confidential)).accessToken,
      'machine token': tokensOf(await clientCredentials(on.issuer, clients.machine)).accessToken,
      'API key': (await apiKeyOf(on.service, on.seeded.person)).value,
    };
  });
  afterEach('the good ones stay good', async () => {
    for (const value of Object.values(good)) await api.expectLetIn(value);
  });

  /** Asks as the API would; the answer may say that the value is not active, and nothing else. */
  async function expectInactive(value: string): Promise<void> {
    const answer = await introspect(on.issuer, clients.resourceServer, value);
    expect(answer, value).to.include({ status: 200, text: '{"active":false}' });
  }

  async function expectNoToken(value: string): Promise<void> {
    await expectInactive(value);
    await api.expectRefused(value);
  }

  it('cut off, lengthened or changed by one character, is no token', async () => {
    for (const value of Object.values(good)) {
      const [prefix = ''] = /^gate_[a-z]+_/.exec(value) ?? [];
      const random = value.slice(prefix.length);
      const last = random.endsWith('A') ? 'B' : 'A';
      for (const wrong of [
        value.slice(0, -1),
        value.slice(0, prefix.length + 20),
        prefix,
        `${value}A`,
        `${value}=`,
        value + value,
        value.slice(0, -1) + last,
        random,
        prefix.slice(0, -1) + random,
        prefix.toUpperCase() + random,
      ]) {
        await expectNoToken(wrong);
      }
    }
  });

  it('under the prefix of another kind is no token', async () => {
    for (const value of Object.values(good)) {
      const [own = ''] = /^gate_[a-z]+_/.exec(value) ?? [];
      for (const prefix of PREFIXES.filter((other) => other !== own)) {
        await expectNoToken(prefix + value.slice(own.length));
      }
    }
  });

  it('of another kind is no token for an API', async () => {
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
      await expectNoToken(value);
    }
  });

  it('with a NUL byte, or of what no header holds, is no token', async () => {
    for (const value of Object.values(good)) {
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

  it('with a NUL byte is a clean 4xx of an API', async () => {
    const { hostname, port } = api.url;
    for (const value of Object.values(good)) {
      for (const wrong of [`${value}\0`, `${value.slice(0, 20)}\0${value.slice(20)}`]) {
        const socket = connect(Number(port), hostname);
        socket.end(
          `GET /graphql?query={caller{subject}} HTTP/1.1\r\nHost: api\r\nConnection: close\r\n` +
            `Authorization: Bearer ${wrong}\r\n\r\n`,
        );
        const answer = await text(socket);
        expect(answer).to.match(/^HTTP\/1\.1 40[01] /);
        expect(answer).to.not.include('data');
      }
    }
  });

  it('in a request that is too large is a clean 4xx', async () => {
    const answer = await introspect(on.issuer, clients.resourceServer, 'x'.repeat(100_000));
    // RFC 6749 §5.2 knows no 413.
    expect(answer.status).to.equal(400);
    expect(answer.body.error).to.equal('invalid_request');
  });

  it('of a client that was deleted is no token, whatever else is still stored of it', async () => {
    const { issuer, service } = on;
    const client = await addTestClient(service, 'Short Lived');
    const machine = await addTestClient(service, 'Short Lived', { kind: 'machine' });
    const { accessToken, refreshToken } = await on.partner.tokens(client);
    const ofMachine = tokensOf(await clientCredentials(issuer, machine)).accessToken;
    for (const value of [accessToken, ofMachine]) await api.expectLetIn(value);

    // The tokens stay where they are: the registry alone decides.
    for (const { id } of [client, machine]) await service.clients.remove(id);
    for (const value of [accessToken, refreshToken, ofMachine]) await expectNoToken(value);
  });
});
