import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { hopsVerdict } from '../../src/doctor/address.ts';
import { fileWith } from '../config/configuration.ts';
import { operatorWith } from '../operator/run-operator.ts';
import { createOpened } from '../support/opened.ts';
import { freshMigratedDatabaseUrl } from '../support/postgres-server.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, openssl, postgresServer, redisServer } from '../support/requirements.ts';
import type { TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { PATIENCE_MS } from '../support/timeout-factor.ts';
import { environmentOf, nodeBehind, trusting } from './behind-proxy.ts';
import { type Examination, examine, examineBy } from './doctor-findings.ts';
import { type ReverseProxy, startReverseProxy } from './reverse-proxy.ts';

const opened = createOpened();
const proxies = (tls?: { key: string; cert: string }): Promise<ReverseProxy> =>
  opened.add(startReverseProxy(tls), (proxy) => proxy.close());

describeOn([postgresServer, redisServer], 'operator doctor, with a reverse proxy', () => {
  let proxy: ReverseProxy;
  let issuer: string;
  let node: TestService;
  let environment: Record<string, string>;

  before(async () => {
    proxy = await proxies();
    issuer = `http://localhost:${proxy.port}`;
    node = await nodeBehind(opened, issuer);
    environment = environmentOf(node);
  });
  after(opened.closeAll);
  beforeEach(() => {
    Object.assign(proxy.conduct, { leadTo: node.settings.server.port, forwardedFor: 'set' });
    Object.assign(proxy.conduct, { dropped: [], repeats: undefined, caches: undefined, stream: undefined });
  });

  const expectOnly = (examination: Examination, check: string, status: string): void => {
    const { troubles, output, exitCode } = examination;
    const found = troubles.map((finding) => `${finding.check} ${finding.status}`);
    expect(found, output).to.deep.equal([`${check} ${status}`]);
    expect(exitCode).to.equal(status === 'problem' ? 1 : 0);
  };

  const CACHE = 'with a cache that ignores Cache-Control';
  for (const [wrong, conduct, check, message, remedy] of [
    ['that passes on the X-Forwarded-For of the client', { forwardedFor: 'pass' }, 'proxy_hops', '', ''],
    ['that repeats a POST', { repeats: '/oauth/token' }, 'exchange', 'already used', 'must never repeat one'],
    [CACHE, { caches: '/login' }, 'caching', 'the same answer (req_', 'turn the cache in front off'],
    ['that drops Authorization', { dropped: ['authorization'] }, 'exchange', '', 'removes the Authorization header'],
    ['that drops cookies', { dropped: ['set-cookie'] }, 'authorize', '', 'make the proxy pass cookies on unchanged'],
  ] as const) {
    it(`the doctor detects a proxy ${wrong}, and says what to do`, async () => {
      Object.assign(proxy.conduct, conduct);
      const examination = await examine(environment);
      expectOnly(examination, check, 'problem');
      expect(examination.of(check).message).to.contain(message);
      if (check === 'exchange') expect(examination.of(check).message).to.contain('request req_');
      expect(examination.of(check).remedy).to.contain(remedy);
      if (check === 'caching' || check === 'exchange') expect(examination.of(check).where).to.equal(issuer);
    });
  }

  for (const [stream, wrong, message] of [
    ['buffer', 'buffers', 'delivered nothing for 1 s'],
    ['collect', 'collects the heartbeats of', 'heartbeats at once'],
    ['cut', 'ends', /ended after \d+ heartbeat/],
  ] as const) {
    it(`the doctor detects a proxy that ${wrong} the stream of changes`, async () => {
      proxy.conduct.stream = stream;
      // A short limit is enough if the proxy buffers: nothing arrives at all.
      const limit = stream === 'buffer' ? 1_000 : PATIENCE_MS;
      const run = operatorWith(environment, undefined, { watched: 500, limit });
      const examination = await examineBy(run);
      expectOnly(examination, 'change_stream', 'problem');
      expect(examination.of('change_stream').message).to.match(new RegExp(message));
      expect(examination.of('change_stream').remedy).to.contain('at once');
    });
  }

  it('the doctor detects too many proxy_hops, and names the address that the service would trust', async () => {
    const other = await nodeBehind(opened, issuer, { proxyHops: 2 });
    Object.assign(proxy.conduct, { forwardedFor: 'append', leadTo: other.settings.server.port });
    const examination = await examine(environmentOf(other));
    expectOnly(examination, 'proxy_hops', 'problem');
    expect(examination.of('proxy_hops').message).to.contain('203.0.113.7');
  });

  it('`doctor --address` sends the requests for the issuer directly to a node', async () => {
    proxy.conduct.leadTo = await freePort();
    const address = `http://127.0.0.1:${node.settings.server.port}`;
    const { healthy, of } = await examine(environment, '--address', address);
    expect(healthy).to.equal(true);
    expect(of('proxy_hops').message).to.equal('not checked: --address bypasses the proxy');
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    const examination = await examine(environment, '--address', nowhere);
    expectOnly(examination, 'public_address', 'problem');
    expect(examination.of('public_address').where).to.contain(nowhere).and.contain(issuer);
  });

  it('the doctor detects that another deployment answers at the issuer', async () => {
    const other = await nodeBehind(opened, issuer);
    proxy.conduct.leadTo = other.settings.server.port;
    const examination = await examine(environment);
    expectOnly(examination, 'authorize', 'problem');
    expect(examination.of('authorize').remedy).to.contain('another deployment answers at this address');
    expect(examination.of('sign_out').status).to.equal('not_checked');
  });
});

describeOn([postgresServer, redisServer, openssl], 'operator doctor, over TLS', () => {
  const folder = temporaryDirectory('tls');
  const ca = path.join(folder, 'ca.pem');
  const run = (...args: string[]): void => {
    execFileSync(openssl.program ?? '', args, { cwd: folder, stdio: 'pipe' });
  };

  function certificate(days: number, host = 'localhost'): { key: string; cert: string } {
    const names = ['-addext', `subjectAltName=DNS:${host}`, '-subj', `/CN=${host}`];
    const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-days', String(days)];
    const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', 'host.key', '-out', 'host.pem'];
    run('req', '-x509', ...key, ...names, ...authority);
    const read = (name: string): string => readFileSync(path.join(folder, name), 'utf8');
    return { key: read('host.key'), cert: read('host.pem') };
  }

  before(() => {
    const key = '-newkey rsa:2048 -nodes -keyout ca.key -out ca.pem';
    run(...`req -x509 ${key} -days 30 -subj /CN=Test`.split(' '));
  });
  after(opened.closeAll);

  it('the doctor warns of expiring certificates, explains trust in a private CA, and requires Secure cookies', async () => {
    const proxy = await proxies(certificate(5));
    const node = await nodeBehind(opened, `https://localhost:${proxy.port}`);
    proxy.conduct.leadTo = node.settings.server.port;
    const environment = environmentOf(node);
    const soon = await trusting(ca, () => examine(environment));
    expect(soon.troubles.map(({ check, status }) => [check, status])).to.deep.equal([['certificate', 'warning']]);
    expect(soon, 'a warning does not fail the run').to.include({ healthy: true, exitCode: 0 });
    const distrusting = await examine(environment);
    expect(distrusting.of('public_address').remedy).to.contain('NODE_EXTRA_CA_CERTS');
    // Browsers would refuse these cookies, so the doctor does, too.
    proxy.conduct.isStrippingSecure = true;
    const bare = await trusting(ca, () => examine(environment));
    expect(bare.troubles.map(({ check, status }) => [check, status])).to.have.deep.members([
      ['certificate', 'warning'],
      ['authorize', 'problem'],
    ]);
    expect(bare.of('authorize').remedy).to.contain('make the proxy pass cookies on unchanged');
  });

  it('the doctor rejects a certificate for another name', async () => {
    const { port } = await proxies(certificate(30, 'other.example'));
    const other = await trusting(ca, async () =>
      examine({
        GATEHOUSE_ISSUER: `https://localhost:${port}`,
        GATEHOUSE_CONFIG: fileWith('server: { proxy_hops: 1 }'),
        DATABASE_URL: await freshMigratedDatabaseUrl(),
      }),
    );
    expect(other.of('public_address').remedy).to.contain('is for other host names');
  });
});

describe('the doctor checks which client address the service records', () => {
  const [OURS, PROXY, PRIVATE] = ['198.51.100.1', '198.51.100.2', '10.0.0.5'];
  for (const [says, status, recorded, from, to] of [
    ['a proxy on this machine', 'problem', '127.0.0.1', OURS, OURS],
    ['a proxy on this machine, from a private network', 'problem', '127.0.0.1', PRIVATE, PRIVATE],
    ['the address to which the doctor connected', 'problem', PROXY, OURS, PROXY],
    ['that address, from a private network', 'problem', PROXY, PRIVATE, PROXY],
    ['one address for the doctor and the proxy', 'warning', '127.0.0.1', '127.0.0.1', '127.0.0.1'],
    ['one private address for the doctor and the proxy', 'warning', PRIVATE, PRIVATE, PRIVATE],
    ['another private address, from a private network', 'warning', '172.18.0.1', PRIVATE, PROXY],
    ['the address of the doctor', 'ok', OURS, OURS, PROXY],
    ['its own private address', 'ok', PRIVATE, PRIVATE, PROXY],
    ['another public address, from a private network', 'warning', OURS, PRIVATE, PROXY],
  ] as const) {
    it(`with proxy_hops 0 the doctor reports ${says} as ${status}`, () => {
      const verdict = hopsVerdict({ recorded, from, to, proxyHops: 0 });
      expect(verdict.status, verdict.message).to.equal(status);
    });
  }

  it("if proxy_hops counts a proxy, the doctor's private address may differ from the public one that was recorded", () => {
    const seen = { recorded: OURS, from: PRIVATE, to: PROXY, proxyHops: 1 };
    expect(hopsVerdict(seen)).to.include({ status: 'ok' });
    for (const recorded of [PROXY, '127.0.0.1']) {
      expect(hopsVerdict({ ...seen, recorded }), recorded).to.include({ status: 'problem' });
    }
  });
});
