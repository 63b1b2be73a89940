/** The endpoints of a provider's discovery document to which the service connects. */
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import type { SignInProvider } from '../../src/config/sign-in-providers.ts';
import { unknownHosts } from '../../src/upstream/discovery.ts';
import { createProviderFetch } from '../../src/upstream/fetching.ts';
import { createUpstreamProvider, newFlow } from '../../src/upstream/upstream-provider.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { describeOn, openssl } from '../support/requirements.ts';
import { writeCertificate } from '../support/reverse-proxies.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { providerSettings, startUpstream, type Upstream } from '../support/upstream.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './service.ts';

const DISCOVERY = '/.well-known/openid-configuration';
/** Seconds after which a cached discovery document has expired. */
const DISCOVERY_SECONDS = 3_601;

describe("an answer of a provider's endpoints", () => {
  const on = startWithUpstream();

  beforeEach(() => {
    on.upstream.changes.clear();
    on.clock.advance(DISCOVERY_SECONDS);
  });

  it('redirects of a provider are not followed, neither at discovery nor at the token endpoint', async () => {
    const elsewhere = (): boolean => on.upstream.requests.includes('/elsewhere');
    const redirect = (ctx: { redirect(url: string): void }) => ctx.redirect('/elsewhere');
    on.upstream.changes.set(DISCOVERY, redirect);
    expect((await on.signIn(GRACE)).status).to.equal(503);
    on.upstream.changes.clear();
    on.clock.advance(DISCOVERY_SECONDS);
    on.upstream.changes.set('/token', redirect);
    expect((await on.signIn(GRACE)).status).to.equal(403);
    expect(elsewhere()).to.equal(false);
  });

  it('an answer of a provider may have at most 256 KiB', async () => {
    const padded = (bytes: number) => (ctx: { body: unknown }) => {
      ctx.body = { ...(ctx.body as object), padding: 'x'.repeat(bytes) };
    };
    on.upstream.changes.set('/token', padded(250 * 1024));
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    on.upstream.changes.set('/token', padded(257 * 1024));
    expect((await on.signIn(GRACE)).status).to.equal(403);
    expect(on.service.logLines.join()).to.include('an answer of more than 262144 bytes');
  });

  /** Answers discovery with other endpoints of this provider. */
  const discover = (endpoints: Readonly<Record<string, string>>) =>
    on.upstream.changes.set(DISCOVERY, (ctx) => {
      ctx.body = { ...(ctx.body as object), ...endpoints };
    });
  const there = (path: string) => `${on.upstream.issuer.replace('127.0.0.1', 'localhost')}${path}`;

  it('endpoints of a provider on another host are refused, and the log names the setting that allows them', () =>
    // No earlier discovery document is left.
    on.service.withSettings({}, async () => {
      for (const [name, path] of [
        ['token_endpoint', '/token'],
        ['jwks_uri', '/jwks'],
      ] as const) {
        discover({ [name]: there(path) });
        on.clock.advance(DISCOVERY_SECONDS);
        const person = on.traveller();
        const page = await person.submit(await person.get('/login'), WITH_PLATFORM);
        expect(page.status, name).to.equal(503);
        expect(page.html).to.include('Nothing is wrong with your account');
        expect(on.service.logLines.slice(-5).join()).to.include('endpoint_hosts: [localhost]');
      }
    }));

  it('endpoints of a provider on a listed host are allowed if the issuer is in the same network', () =>
    on.service.withSettings(on.providing({ endpointHosts: ['localhost'] }), async () => {
      discover({ token_endpoint: there('/token') });
      expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    }));
});

describe('endpoints of Google and Microsoft are allowed without configuration', () => {
  const GOOGLE = ['accounts.google.com', 'oauth2.googleapis.com', 'openidconnect.googleapis.com', 'www.googleapis.com'];
  const MICROSOFT = ['login.microsoftonline.com', 'graph.microsoft.com'];
  const unknown = (issuer: string, hosts: readonly string[]) => unknownHosts(hosts, { issuer, endpointHosts: [] });

  it('known endpoint hosts of Google and Microsoft are allowed, so that an upgrade does not break sign-ins', () => {
    expect(unknown('https://accounts.google.com', GOOGLE)).to.deep.equal([]);
    expect(unknown('https://login.microsoftonline.com/tenant/v2.0', MICROSOFT)).to.deep.equal([]);
    const other = unknown('https://id.example.com', GOOGLE.concat(MICROSOFT));
    expect(other).to.have.lengthOf(6);
  });
});

describe('a provider outside of an internal network cannot have endpoints in it', () => {
  const HOSTS: Readonly<Record<string, string>> = {
    '10.0.0.1': 'private',
    '100.64.1.1': 'private',
    '172.31.255.255': 'private',
    '192.168.1.1': 'private',
    '[fd00::1]': 'private',
    '169.254.169.254': 'link-local',
    '[fe80::1]': 'link-local',
    // IPv4 addresses in IPv6: mapped, and as NAT64 forwards them.
    '[::ffff:a00:1]': 'private',
    '[64:ff9b::a00:1]': 'private',
  };
  let upstream: Upstream;
  before('a provider on loopback', async () => {
    upstream = await startUpstream('http://localhost:3000');
  });

  for (const [host, network] of Object.entries(HOSTS)) {
    it(`provider endpoints at ${host} are refused, even if the settings list this host`, async () => {
      upstream.changes.set(DISCOVERY, (ctx) => {
        ctx.body = { ...(ctx.body as object), jwks_uri: `https://${host}/jwks` };
      });
      expect(await outcomeOf(upstream.settings({ endpointHosts: [host] }))).to.include(
        `${host} is a ${network} address`,
      );
    });
  }

  it('a provider on the internet cannot name an internal endpoint, however the host is written', async () => {
    let connections = 0;
    const server = createHttpServer((_, response) => response.end('{}'));
    server.on('connection', () => {
      connections += 1;
    });
    const port = await listen(server, '::');
    // A documentation address (RFC 5737), which counts as an address of the internet.
    const fromElsewhere = createProviderFetch('https://192.0.2.1');
    const fromThere = createProviderFetch(`http://127.0.0.1:${port}`);
    const ask = (from: typeof fromThere, host: string): Promise<string> =>
      from(`http://${host}:${port}/`, { method: 'GET', headers: {} }).then(
        ({ status }) => `${status}`,
        (error: Error) => (error.cause as Error).message,
      );
    expect(await ask(fromThere, '127.0.0.1')).to.equal('200');
    // The last host is a name that is resolved when connecting.
    for (const host of ['127.0.0.1', '0.0.0.0', '127.1', '[::1]', '[::]', 'localhost', hostname()]) {
      expect(await ask(fromElsewhere, host), host).to.match(/is a .* address|ENOTFOUND|EAI_AGAIN/);
    }
    expect(connections).to.equal(1);
  });
});

describeOn([openssl], 'a provider with https', () => {
  const folder = temporaryDirectory('https-provider');
  const authorities = getCACertificates('default');
  let issuer = '';
  let plain = '';
  let asked = 0;
  let document: Record<string, unknown> = {};

  before('a self-signed certificate that this process trusts', async () => {
    const [key, cert] = writeCertificate(folder, 'IP:127.0.0.1')
      .toReversed()
      .map((file) => readFileSync(file));
    setDefaultCACertificates(authorities.concat(`${cert}`));
    const server = createHttpsServer({ key, cert }, (_, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(document));
    });
    issuer = `https://127.0.0.1:${await listen(server, '127.0.0.1')}`;
    const unprotected = createHttpServer((_, response) => {
      asked += 1;
      response.end('{}');
    });
    plain = `http://127.0.0.1:${await listen(unprotected, '127.0.0.1')}`;
  });
  after('restore the trusted certificates', () => setDefaultCACertificates(authorities));

  const begin = (changes: Record<string, string>): Promise<string> => {
    document = {
      issuer,
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      userinfo_endpoint: `${issuer}/me`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      ...changes,
    };
    return outcomeOf(providerSettings({ issuer }));
  };

  it('if an https issuer names an http endpoint, even for keys, no sign-in starts and no endpoint is called', async () => {
    expect(await begin({})).to.equal(issuer);
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint']) {
      expect(await begin({ [name]: plain })).to.equal(`the ${name} in the discovery document is missing or not https`);
    }
    expect(asked).to.equal(0);
  });
});

/** Begins a sign-in with this provider. @returns the origin where it leads, or why it is refused */
const outcomeOf = (settings: SignInProvider): Promise<string> =>
  createUpstreamProvider({ issuer: 'http://localhost:3000', settings, clock: Date.now })
    .begin({ state: 'x', flow: newFlow(Date.now, { isFresh: false }) })
    .then(
      ({ origin }) => origin,
      (error: Error) => error.message,
    );

async function listen(server: Server, address: string): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  atEndOfFile(async () => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
