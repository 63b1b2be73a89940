/** Client authentication, with the same rules at every endpoint that requires it. */
import { expect } from 'chai';
import { withChecksum } from '../../src/base/random-id.ts';
import { type Answer, ask, basic, type TestClient } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { expectRefusal } from './refusals.ts';

const FAILURES = 5;

let senders = 0;
/** Returns an address that has sent no request yet. */
function freshAddress(): string {
  senders += 1;
  return `192.0.2.${senders}`;
}

describe('client authentication', () => {
  const on = startSeeded({
    clock: true,
    // Configure one proxy, so that a test can send from any address.
    settings: { server: { proxyHops: 1 }, limits: { clientFailures: FAILURES } },
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

  /** Replaces the secret of the client with a wrong one of the right format. */
  const wrong = (client: TestClient): TestClient => ({
    ...client,
    secret: withChecksum(`gate_cs_${'w'.repeat(43)}`),
  });
  const unknown = (client: TestClient): TestClient => ({
    ...client,
    id: `gate_ci_${'u'.repeat(22)}`,
  });

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
          answers.push(await send(endpoint, way(unknown(client))));
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
});
