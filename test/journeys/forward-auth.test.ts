/** `GET /oauth/verify`, by itself and behind nginx and Caddy as configured in docs/forward-auth.md. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import path from 'node:path';
import { expect } from 'chai';
import { NO_LIMIT } from '../../src/accounts/access/access-limit.ts';
import { basic, clientCredentials, introspect, type TestClient } from '../support/oauth.ts';
import { createOpened, type Opened } from '../support/opened.ts';
import { freePort, startProgram } from '../support/programs.ts';
import { rawRequest } from '../support/raw-request.ts';
import { describeOn, type Requirement, required } from '../support/requirements.ts';
import { caddy, nginx } from '../support/reverse-proxies.ts';
import { apiKeyOf } from '../support/seed.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { replaced } from './documented-proxies.ts';

const DOCS = readFileSync(path.join(import.meta.dirname, '../../docs/forward-auth.md'), 'utf8');
const organizationsIn = (value: string | undefined): unknown[] =>
  JSON.parse(Buffer.from(value ?? '', 'base64url').toString());

const ACCEPTED = ['person', 'machine', 'API key', 'limited API key'];

/** One value of each kind, of which only those of `ACCEPTED` are accepted from the caller of an API. */
async function tokensOf(on: Seeded): Promise<Record<string, string>> {
  const { confidential, machine } = on.clients;
  const { accountId } = on.seeded.person;
  const person = await on.partner.tokens(confidential);
  const key = await apiKeyOf(on.service, on.seeded.person);
  const limited = await apiKeyOf(on.service, on.seeded.person, 'Look', { limit: { ...NO_LIMIT, isReadOnly: true } });
  const ended = await apiKeyOf(on.service, on.seeded.person);
  await on.service.apiKeys.revoke(accountId, ended.id, { address: '::1', browser: '' });
  const { body } = await clientCredentials(on.issuer, machine);
  return {
    person: person.accessToken,
    machine: String(body.access_token),
    'API key': key.value,
    'limited API key': limited.value,
    'ended API key': ended.value,
    'refresh token': person.refreshToken,
    code: await on.partner.code(confidential),
    'client secret': confidential.secret ?? '',
    unknown: 'gate_at_unknown',
  };
}

describe('GET /oauth/verify identifies the caller of a request for a proxy', () => {
  const on = startSeeded();
  const verify = (token?: string, client: TestClient | undefined = on.clients.resourceServer, more = {}) =>
    fetch(`${on.issuer}/oauth/verify`, {
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(client && { 'x-gatehouse-authorization': basic(client) }),
        ...more,
      },
    });

  it('the endpoint accepts the same tokens as introspection, and returns the same data', async () => {
    for (const [kind, token] of Object.entries(await tokensOf(on))) {
      const { body } = await introspect(on.issuer, on.clients.resourceServer, token);
      const { status, headers } = await verify(token);
      expect([body.active, status], kind).to.deep.equal(ACCEPTED.includes(kind) ? [true, 200] : [false, 401]);
      expect(headers.get('cache-control'), kind).to.equal('no-store');
      expect(headers.get('x-gatehouse-sub'), kind).to.equal(body.sub ?? null);
      expect(headers.get('x-gatehouse-client'), kind).to.equal(body.active ? (body.client_id ?? '') : null);
      const organizations = headers.get('x-gatehouse-organizations');
      if (body.active) expect(organizationsIn(organizations ?? ''), kind).to.deep.equal(body.organizations);
      else expect(headers.get('www-authenticate'), kind).to.include('error="invalid_token"');
    }
  });

  it('a request without a token gets a Bearer challenge without an error code', async () => {
    for (const more of [{}, { authorization: 'Basic eDp5' }]) {
      const { status, headers } = await verify(undefined, on.clients.resourceServer, more);
      expect(status).to.equal(401);
      expect(headers.get('www-authenticate')).to.equal('Bearer');
    }
  });

  it('the origin of the page that calls the API has no effect', async () => {
    const { person: token } = await tokensOf(on);
    const more = { origin: 'https://app.example', 'sec-fetch-site': 'cross-site' };
    expect((await verify(token, on.clients.resourceServer, more)).status).to.equal(200);
  });

  it('a CORS preflight without a token is accepted and not cached; a preflight with an unknown token is refused', async () => {
    const more = { 'x-forwarded-method': 'OPTIONS', 'access-control-request-method': 'POST' };
    const { status, headers } = await verify(undefined, on.clients.resourceServer, more);
    expect([status, headers.get('x-gatehouse-sub')]).to.deep.equal([200, '']);
    expect(headers.get('cache-control')).to.equal('no-store');
    const refused = await verify('gate_at_unknown', on.clients.resourceServer, more);
    expect(refused.status).to.equal(401);
  });

  it('wrong credentials of the proxy get 400, unlike a refused caller or a failure of the service', async () => {
    const { person: token } = await tokensOf(on);
    const { resourceServer, confidential } = on.clients;
    const refusals = {
      invalid_client: await verify(token, { ...resourceServer, secret: 'wrong' }),
      unauthorized_client: await verify(token, confidential),
      invalid_request: await verify(token, undefined, { 'x-gatehouse-authorization': 'Basic !' }),
      'no header': await verify(token, undefined, { 'x-gatehouse-authorization': '' }),
    };
    for (const [name, { status, headers }] of Object.entries(refusals)) {
      expect(status, name).to.equal(400);
      expect(headers.get('www-authenticate'), name).to.equal(null);
    }
    for (const error of ['invalid_client', 'invalid_request'] as const)
      expect(await refusals[error].json()).to.include({ error });
    const other = { error: 'unauthorized_client', error_description: 'the client is no resource server' };
    expect(await refusals.unauthorized_client.json()).to.include(other);
    const encoded = `Basic ${Buffer.from('%:x').toString('base64')}`;
    const malformed = await verify(token, undefined, { 'x-gatehouse-authorization': encoded });
    expect(await malformed.json()).to.include({
      error_description: 'the X-Gatehouse-Authorization header is not form-encoded',
    });
  });

  it('a stranger who guesses the secret of the proxy gets 429, but the proxy itself is not limited', async () => {
    const { person: token } = await tokensOf(on);
    const { resourceServer } = on.clients;
    let refused: Response | undefined;
    for (let tries = 0; tries < 200 && refused?.status !== 429; tries += 1) {
      refused = await verify(token, { ...resourceServer, secret: 'wrong' });
      expect(refused.status).to.be.within(400, 499);
    }
    expect(await refused?.json()).to.include({ error: 'slow_down' });
    // The time until the window ends, and not only the pause after an outage.
    expect(Number(refused?.headers.get('retry-after'))).to.be.above(2);
    expect((await verify(token)).status).to.equal(200);
  });

  it('organizations that do not fit into 4 kB are left out, and the last element says that there are more', async () => {
    const { service, seeded } = on;
    const { accountId } = seeded.other;
    for (let number = 0; number < 40; number += 1) {
      const { id } = await service.organizations.add({ name: `Storm Logistics ${number}` });
      await service.memberships.setRole({ accountId }, id, 'viewer');
    }
    const { value } = await apiKeyOf(service, seeded.other);
    const { body } = await introspect(on.issuer, on.clients.resourceServer, value);
    const header = (await verify(value)).headers.get('x-gatehouse-organizations') ?? '';
    expect(header.length).to.be.within(3_500, 4_096);
    const kept = organizationsIn(header);
    expect(kept.pop()).to.deep.equal({ more: true });
    expect(kept).to.have.length.above(5);
    expect(body.organizations).to.deep.include.members(kept);
  });
});

interface Proxy extends Requirement {
  readonly name: string;
  /** A line of the configuration, and the line that the docs add after it so that a preflight gets 401. */
  readonly preflights: readonly [after: string, line: string];
  configure(place: { folder: string; port: number; values: Readonly<Record<string, string>> }): readonly string[];
}

const blockOf = (language: string, values: Readonly<Record<string, string>>): string => {
  const [, block = ''] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(DOCS) ?? [];
  return replaced(block, values);
};

const PROXIES: readonly Proxy[] = [
  {
    ...nginx,
    preflights: ['    internal;', 'proxy_set_header Access-Control-Request-Method "";'],
    configure({ folder, port, values }) {
      // Without TLS, which has no part in this.
      const block = blockOf('nginx', {
        ...values,
        'listen 443 ssl;': `listen 127.0.0.1:${port};`,
        'ssl_certificate ': '# ',
        'ssl_certificate_key ': '# ',
        'server_name api.example.com': 'server_name localhost',
      });
      return nginx.write(folder, block);
    },
  },
  {
    ...caddy,
    preflights: ['      uri /oauth/verify', 'header_up -Access-Control-Request-Method'],
    configure({ folder, port, values }) {
      const site = { 'api.example.com {': `http://localhost:${port} {` };
      const block = blockOf('caddy', { ...values, ...site });
      return caddy.write(folder, `{\n  admin off\n  auto_https off\n}\n${block}`);
    },
  },
];

/** An API that only keeps the headers that it receives. */
async function startApi(opened: Opened) {
  const received: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    received.push(request.headers);
    request.resume().on('end', () => response.end('{"data":{}}'));
  });
  server.listen(0, '127.0.0.1');
  await opened.add(once(server, 'listening'), async () => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return { received, port: typeof address === 'object' && address ? address.port : 0 };
}

for (const proxy of PROXIES) {
  describeOn([proxy], `an API behind ${proxy.name} with forward authentication`, () => {
    const on = startSeeded();
    const opened = createOpened();
    let api: Awaited<ReturnType<typeof startApi>>;
    let tokens: Record<string, string>;
    let port: number;

    after(opened.closeAll);

    /** Starts the documented proxy. @returns its port */
    async function startProxy(gatehouse: string, client: TestClient, more = {}): Promise<number> {
      const folder = temporaryDirectory('forward-auth');
      const listens = await freePort();
      const args = proxy.configure({
        folder,
        port: listens,
        values: {
          '10.0.0.5:4000': `127.0.0.1:${api.port}`,
          '10.0.0.1:3000': gatehouse,
          'auth.example.com': new URL(on.issuer).host,
          'Basic Z2F0ZV9jaV8…': basic(client),
          ...more,
        },
      });
      const environment = { PATH: process.env.PATH, HOME: folder };
      const running = await opened.add(
        Promise.resolve(startProgram(required(proxy), args, { cwd: folder, environment })),
        (started) => started.end('SIGTERM'),
      );
      await running.waitUntil(() => call(undefined, {}, listens));
      return listens;
    }

    /** Sends a GraphQL request. @returns the answer, and the headers that the API received */
    async function call(token?: string, headers: Record<string, string> = {}, at = port, method = 'POST') {
      api.received.length = 0;
      const answer = await rawRequest(at, '/graphql', {
        method,
        headers: {
          host: `localhost:${at}`,
          'content-type': 'application/json',
          ...(token && { authorization: `Bearer ${token}` }),
          ...headers,
        },
        ...(method === 'POST' && { form: { query: '{ warehouses { id } }' } }),
      });
      const [received] = api.received;
      return { status: answer.status, headers: answer.headers, received };
    }

    before(async () => {
      api = await startApi(opened);
      tokens = await tokensOf(on);
      port = await startProxy(`127.0.0.1:${on.service.settings.server.port}`, on.clients.resourceServer);
    });

    const FORGED = {
      'X-Gatehouse-Sub': 'acc_forged',
      'x-gatehouse-client': 'gate_ci_forged',
      'X-GATEHOUSE-Organizations': 'W10',
      X_Gatehouse_Sub: 'acc_forged',
      'X-Gatehouse-Authorization': 'Basic Zm9yZ2Vk',
    };

    const FROM_GATEHOUSE = ['x-gatehouse-sub', 'x-gatehouse-client', 'x-gatehouse-organizations'];

    it('the API receives who is calling and what the caller may access, and nothing that the caller forged', async () => {
      for (const kind of ['person', 'machine', 'API key']) {
        const { body } = await introspect(on.issuer, on.clients.resourceServer, tokens[kind] ?? '');
        const { status, received = {} } = await call(tokens[kind], FORGED);
        expect(status, kind).to.equal(200);
        expect(received['x-gatehouse-sub'], kind).to.equal(body.sub);
        expect(received['x-gatehouse-client'] || undefined, kind).to.equal(body.client_id);
        const organizations = String(received['x-gatehouse-organizations']);
        expect(organizationsIn(organizations), kind).to.deep.equal(body.organizations);
        expect(JSON.stringify(received), kind).to.not.match(/forged|Zm9yZ2Vk/);
        expect(received['x-gatehouse-authorization'], kind).to.equal(undefined);
      }
    });

    it('a request without a valid token does not reach the API, and gets the Bearer challenge', async () => {
      const none = await call(undefined, FORGED);
      expect([none.status, none.received]).to.deep.equal([401, undefined]);
      expect(none.headers.get('www-authenticate')).to.equal('Bearer');
      for (const kind of ['ended API key', 'refresh token', 'unknown']) {
        const refused = await call(tokens[kind], FORGED);
        expect([refused.status, refused.received], kind).to.deep.equal([401, undefined]);
        expect(refused.headers.get('www-authenticate')).to.include('error="invalid_token"');
      }
    });

    it('a caller cannot make the proxy remove the headers that the API must receive', async () => {
      for (const name of ['X-Gatehouse-Sub', 'x-gatehouse-client', 'X-GATEHOUSE-ORGANIZATIONS']) {
        const connection = `close, ${name}`;
        const { received, status } = await call(tokens.person, { connection });
        if (!received) expect(status, name).to.equal(400);
        else expect(received, name).to.include.keys(FROM_GATEHOUSE);
      }
    });

    it('a CORS preflight reaches the API without the headers of a caller; no other request can pose as a preflight', async () => {
      const asked = {
        ...FORGED,
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
      };
      const preflight = await call(undefined, asked, port, 'OPTIONS');
      expect(preflight.status).to.equal(200);
      expect(preflight.received?.['x-gatehouse-sub'] || undefined).to.equal(undefined);
      const pretended = await call(undefined, { ...asked, 'x-forwarded-method': 'OPTIONS' });
      expect([pretended.status, pretended.received]).to.deep.equal([401, undefined]);

      const [after, line] = proxy.preflights;
      expect(DOCS).to.include(`\`${line}\``);
      const address = `127.0.0.1:${on.service.settings.server.port}`;
      const strict = await startProxy(address, on.clients.resourceServer, { [after]: `${after}\n${line}` });
      const refused = await call(undefined, asked, strict, 'OPTIONS');
      expect([refused.status, refused.received]).to.deep.equal([401, undefined]);
      expect((await call(tokens.person, {}, strict)).status).to.equal(200);
    });

    it('no request passes if the secret of the proxy is wrong, or if the service is unavailable', async () => {
      const { resourceServer } = on.clients;
      const address = `127.0.0.1:${on.service.settings.server.port}`;
      const wrong = await startProxy(address, { ...resourceServer, secret: 'wrong' });
      const away = await startProxy(`127.0.0.1:${await freePort()}`, resourceServer);
      for (const at of [wrong, away]) {
        const { status, received } = await call(tokens.person, {}, at);
        expect(status).to.be.within(500, 599);
        expect(received).to.equal(undefined);
      }
    });
  });
}
