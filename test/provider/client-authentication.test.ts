/**
 * Client authentication, with the same rules at every endpoint that requires it, and the limits for refused requests,
 * counted over all nodes, which never refuse a valid one.
 */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { type Answer, ask, basic, type TestClient } from '../support/oauth.ts';
import { inRedis } from '../support/redis-server.ts';
import { startSeeded } from '../support/seeded.ts';
import type { TestService } from '../support/service.ts';
import { expectRefusal } from './refusals.ts';

const PER_BOTH = 4;
const PER_ADDRESS = 10;

let senders = 0;
/** Returns an address that has sent no request yet. */
function freshAddress(): string {
  senders += 1;
  return `198.51.${senders >> 8}.${senders & 255}`;
}

const unknownClient = (number: number): TestClient => ({
  id: `gate_ci_${String(number).padStart(22, '0')}`,
  secret: withChecksum(`gate_cs_${'w'.repeat(43)}`),
  redirectUri: '',
});
const wrong = (client: TestClient): TestClient => ({ ...unknownClient(0), id: client.id });

const post = (
  service: TestService,
  path: string,
  form: Record<string, string>,
  { from, authorization }: { from: string; authorization?: string },
): Promise<Answer> =>
  ask(new URL(path, service.issuer), {
    method: 'POST',
    headers: { 'x-forwarded-for': from, ...(authorization && { authorization }) },
    body: new URLSearchParams(form),
  });

const introspect = (service: TestService, client: TestClient, from: string): Promise<Answer> =>
  post(service, '/oauth/introspect', { token: 'x' }, { from, authorization: basic(client) });

const statuses = async (times: number, send: (index: number) => Promise<Answer>) => {
  const seen: number[] = [];
  for (let index = 0; index < times; index += 1) seen.push((await send(index)).status);
  return seen;
};

const times = (count: number, status: number): number[] => Array<number>(count).fill(status);

describe('client authentication', () => {
  const on = startSeeded({
    clock: true,
    // Configure one proxy, so that a test can send from any address.
    settings: {
      server: { proxyHops: 1 },
      limits: { clientFailures: PER_BOTH, clientFailuresPerAddress: PER_ADDRESS },
    },
  });

  interface Credentials {
    readonly form?: Record<string, string>;
    readonly header?: string;
    readonly query?: Record<string, string>;
    readonly from?: string;
  }

  interface Endpoint {
    readonly path: string;
    readonly parameters: Record<string, string>;
    client(): TestClient;
  }

  /** Requests that are answered with 200 once the client has authenticated. */
  const ENDPOINTS: readonly Endpoint[] = [
    {
      path: '/oauth/token',
      parameters: { grant_type: 'client_credentials' },
      client: () => on.clients.machine,
    },
    {
      path: '/oauth/introspect',
      parameters: { token: 'unknown' },
      client: () => on.clients.resourceServer,
    },
    {
      path: '/oauth/revoke',
      parameters: { token: 'unknown' },
      client: () => on.clients.otherConfidential,
    },
  ];

  function send(endpoint: Endpoint, credentials: Credentials): Promise<Answer> {
    const { form = {}, header, query = {}, from = freshAddress() } = credentials;
    const url = new URL(`${endpoint.path}?${new URLSearchParams(query)}`, on.issuer);
    const headers: Record<string, string> = { 'x-forwarded-for': from };
    if (header !== undefined) headers.authorization = header;
    const body = new URLSearchParams({ ...endpoint.parameters, ...form });
    return ask(url, { method: 'POST', headers, body });
  }

  const inForm = ({ id, secret = '' }: TestClient): Credentials => ({
    form: { client_id: id, client_secret: secret },
  });
  const inHeader = (client: TestClient): Credentials => ({ header: basic(client) });
  const basicOf = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
  const percentEncoded = (text: string): string => Buffer.from(text).toString('hex').replace(/../g, '%$&');

  for (const endpoint of ENDPOINTS) {
    describe(endpoint.path, () => {
      it('a client can authenticate by form or Basic header, with or without form-encoding', async () => {
        const client = endpoint.client();
        const { id, secret = '' } = client;
        const encoded = basicOf(`${percentEncoded(id)}:${percentEncoded(secret)}`);
        const accepted: Credentials[] = [
          inForm(client),
          inHeader(client),
          { header: basic(client).replace('Basic', 'basic') },
          { header: encoded },
          { header: basic(client), form: { client_id: id } },
          // RFC 6749 §3.2: a parameter without a value counts as omitted.
          { header: basic(client), form: { client_id: '', client_secret: '' } },
        ];
        for (const credentials of accepted) {
          const { status, text } = await send(endpoint, credentials);
          expect(status, `${JSON.stringify(credentials)} ${text}`).to.equal(200);
        }
      });

      it('a wrong client secret gets 401, with a challenge if it was sent in the header', async () => {
        const byHeader = await send(endpoint, inHeader(wrong(endpoint.client())));
        expectRefusal(byHeader, 401, 'invalid_client');
        expect(byHeader.headers.get('www-authenticate')).to.match(/^Basic realm="/);

        const byForm = await send(endpoint, inForm(wrong(endpoint.client())));
        expectRefusal(byForm, 401, 'invalid_client');
        expect(byForm.headers.get('www-authenticate')).to.equal(null);
      });

      it('any value that is not exactly the client secret is refused', async () => {
        const client = endpoint.client();
        const { secret = '' } = client;
        const nearly = [`${secret}\0`, `${secret} `, `${secret}\n`, secret.slice(0, -1), `${secret}A`];
        for (const attempt of [...nearly, `\0${secret}`, secret.toUpperCase()]) {
          const form = await send(endpoint, inForm({ ...client, secret: attempt }));
          expectRefusal(form, 401, 'invalid_client');
          const text = `${client.id}:${percentEncoded(attempt)}`;
          const header = await send(endpoint, { header: basicOf(text) });
          expect(header.status, attempt).to.be.oneOf([400, 401]);
        }
      });

      it('an unknown client, a suspended client and a wrong secret get the same answer', async () => {
        const client = endpoint.client();
        const answers: Answer[] = [];
        for (const way of [inForm, inHeader]) {
          answers.push(await send(endpoint, way(wrong(client))));
          answers.push(await send(endpoint, way({ ...unknownClient(1), redirectUri: client.redirectUri })));
          await on.service.clients.suspend(client.id);
          answers.push(await send(endpoint, way(client)));
          await on.service.clients.resume(client.id);
        }
        const seen = answers.map(({ status, text }) => ({ status, text }));
        expect(seen).to.deep.equal(seen.map(() => seen[0]));
        expect(seen[0]?.status).to.equal(401);
      });

      it('two authentication methods in one request, or a malformed header, are refused', async () => {
        const client = endpoint.client();
        const { id, secret = '' } = client;
        const invalid: Credentials[] = [
          { ...inForm(client), ...inHeader(client) },
          { header: basic(client), form: { client_id: on.clients.public.id } },
          { header: `Bearer ${secret}` },
          { header: 'Basic' },
          { header: 'Basic !!!' },
          { header: basicOf(`${id}${secret}`) },
          { header: basicOf(`${id}:%zz`) },
        ];
        for (const credentials of invalid) {
          expectRefusal(await send(endpoint, credentials), 400, 'invalid_request');
        }
      });

      it('client credentials in the URL are refused, because URLs are logged', async () => {
        const { id, secret = '' } = endpoint.client();
        const query = { client_id: id, client_secret: secret };
        for (const way of [{ query }, { query, form: { client_id: id } }]) {
          expect((await send(endpoint, way)).status).to.be.oneOf([400, 401]);
        }
      });

      it('a confidential client without its secret, or a public client with a secret, is refused', async () => {
        const attempts: Credentials[] = [
          { form: { client_id: endpoint.client().id } },
          { form: { client_id: endpoint.client().id, client_secret: '' } },
          inForm({ ...endpoint.client(), id: on.clients.public.id }),
          inHeader({ ...endpoint.client(), id: on.clients.public.id }),
        ];
        for (const attempt of attempts) {
          expectRefusal(await send(endpoint, attempt), 401, 'invalid_client');
        }
      });
    });
  }

  const warnings = (from: string): Record<string, unknown>[] =>
    on.service.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ level, address }) => level === 40 && address === from);

  /** The counters per client and address. */
  async function counters(): Promise<string[]> {
    const { redisUrl } = on.service.settings.storage;
    const inTable = "SELECT key FROM rate_limits WHERE key LIKE 'gh:l:client_address:%'";
    if (redisUrl === undefined)
      return (await on.service.database.query<{ key: string }>(inTable)).map(({ key }) => key);
    return inRedis(redisUrl, (redis) => redis.keys('gh:l:client_address:*'));
  }

  it('refused requests of all clients and endpoints are counted per address; made-up ids get no counters of their own', async () => {
    const before = await counters();
    const from = freshAddress();
    const requests = [
      (index: number) => introspect(on.service, unknownClient(index), from),
      (index: number) =>
        post(
          on.service,
          '/oauth/token',
          { grant_type: 'client_credentials' },
          { from, authorization: basic(unknownClient(index)) },
        ),
      () => post(on.service, '/oauth/token/revoke', {}, { from, authorization: `Bearer gate_at_${'x'.repeat(43)}` }),
    ];
    const seen = await statuses(PER_ADDRESS + 3, (index) => {
      const request = requests[index % requests.length] as (index: number) => Promise<Answer>;
      return request(index);
    });
    expect(seen).to.deep.equal([...times(PER_ADDRESS, 401), ...times(3, 429)]);
    // Those of earlier tests may expire meanwhile.
    expect(before).to.include.members(await counters());

    // A valid request from the same address is still accepted.
    expect((await introspect(on.service, on.clients.resourceServer, from)).status).to.equal(200);
    const { id = '', secret = '' } = on.clients.machine;
    const form = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    expect((await post(on.service, '/oauth/token', form, { from })).status).to.equal(200);
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const held = { from, authorization: `Bearer ${accessToken}` };
    expect((await post(on.service, '/oauth/token/revoke', {}, held)).status).to.equal(204);
    // Other addresses are not limited.
    expect((await introspect(on.service, unknownClient(0), freshAddress())).status).to.equal(401);

    expect(warnings(from)).to.have.length(1);
    expect(warnings(from)[0]).to.include({ limit: 'address' });
  });

  it('failed authentications are limited per client and address, and a secret sent as client_id is never logged', async () => {
    const client = wrong(on.clients.resourceServer);
    const from = freshAddress();
    // Only the last address counts, which our own proxy added; a caller can forge the first one.
    const seen = await statuses(PER_BOTH + 1, (n) => introspect(on.service, client, `203.0.113.${n}, ${from}`));
    expect(seen).to.deep.equal([...times(PER_BOTH, 401), 429]);
    const refused = await introspect(on.service, client, from);
    expect([refused.body.error, refused.headers.get('www-authenticate')]).to.deep.equal(['slow_down', null]);
    expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
    expect((await introspect(on.service, on.clients.resourceServer, from)).status, 'the right secret').to.equal(200);
    expect(warnings(from)).to.have.length(1);
    expect(warnings(from)[0]).to.include({ clientId: client.id, limit: 'client and address' });
    // Send a secret as the client id.
    const other = freshAddress();
    const mixedUp = { ...unknownClient(8), id: withChecksum(`gate_cs_${'s'.repeat(43)}`) };
    await statuses(PER_ADDRESS + 2, () => introspect(on.service, mixedUp, other));
    expect(warnings(other)[0]?.clientId).to.equal(undefined);
    expect(on.service.logLines.join()).not.to.include('sssss');
  });

  it('the refusal of a repeated parameter contains no token that was sent as parameter name, and shortens long names', async () => {
    for (const name of [`gate_rt_${'t'.repeat(70)}`, 'n'.repeat(5_000)]) {
      const { status, body } = await ask(new URL('/oauth/token', on.issuer), {
        method: 'POST',
        body: new URLSearchParams(`${name}&${name}`),
      });
      expect(status).to.equal(400);
      for (const text of [on.service.logLines.join(), JSON.stringify(body)]) {
        expect(text).to.not.include('ttttt');
        expect(text).to.not.include('n'.repeat(101));
      }
    }
  });

  it('refused requests are counted per /64 network of IPv6, and an IPv4-mapped address is treated as IPv4', async () => {
    const networks = [
      (index: number) => `2001:db8:0:1::${(index + 1).toString(16)}`,
      (index: number) => (index % 2 === 0 ? '203.0.113.77' : '::ffff:203.0.113.77'),
    ];
    for (const address of networks) {
      const seen = await statuses(PER_BOTH + 1, (index) =>
        introspect(on.service, wrong(on.clients.resourceServer), address(index)),
      );
      expect(seen).to.deep.equal([...times(PER_BOTH, 401), 429]);
    }
    const next = await introspect(on.service, wrong(on.clients.resourceServer), '2001:db8:0:2::1');
    expect(next.status).to.equal(401);
  });

  it('wrong codes count as failures of a public client, but not of a client with its right secret', async () => {
    const guess = (client: TestClient, from: string) => {
      const { id, secret, redirectUri } = client;
      const form = {
        grant_type: 'authorization_code',
        code: `gate_ac_${'x'.repeat(43)}`,
        client_id: id,
        redirect_uri: redirectUri,
        code_verifier: 'v'.repeat(43),
        ...(secret !== undefined && { client_secret: secret }),
      };
      return post(on.service, '/oauth/token', form, { from });
    };
    const more = PER_ADDRESS + 2;
    const [honestAddress, guessingAddress] = [freshAddress(), freshAddress()];
    const honest = await statuses(more, () => guess(on.clients.confidential, honestAddress));
    expect(honest).to.deep.equal(times(more, 400));
    const guessing = await statuses(PER_BOTH + 1, () => guess(on.clients.public, guessingAddress));
    expect(guessing).to.deep.equal([...times(PER_BOTH, 400), 429]);
  });
});
