/** The operators' listener refuses pages in an operator's browser, also after DNS rebinding. */
import { expect } from 'chai';
import { pino } from 'pino';
import { addressOf, drain, listen } from '../../src/host/listeners.ts';
import { createOperatorsHost } from '../../src/host/operators-host.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { wordsOf } from '../support/words.ts';

describe("the operators' listener", () => {
  const on = startSeeded();
  const portOf = (url: string) => Number(new URL(url).port);
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    rawRequest(portOf(on.service.operatorsUrl), path, {
      method,
      headers: { 'content-length': '0', ...headers },
    });

  it('metrics and reload requests are answered for IP addresses and localhost, and for no other host name', async () => {
    for (const [method, path] of [['GET', '/metrics'] as const, ['POST', '/reload'] as const]) {
      for (const host of wordsOf('127.0.0.1 localhost:9 LOCALHOST [::1]:9 10.1.2.3')) {
        const { status, text } = await ask(method, path, { host });
        expect(status, `${path} ${host} ${text}`).not.to.equal(421);
      }
      for (const host of wordsOf('evil.example:9 localhost.evil.example 127.0.0.1.nip.io evil@localhost')) {
        expect((await ask(method, path, { host })).status, `${path} ${host}`).to.equal(421);
      }
    }
  });

  it('health and readiness requests are answered for any host name, because load balancers use any', async () => {
    for (const path of ['/healthz', '/readyz']) {
      expect((await ask('GET', path, { host: 'node-1.internal' })).status, path).to.equal(200);
    }
  });

  it('the listener for operators answers for its configured host name, too', async () => {
    const parts = {
      log: pino({ level: 'silent' }),
      operatorsHost: 'Gatehouse.internal',
      metrics: async () => ({ contentType: 'text/plain', text: 'up 1' }),
      reload: {},
      senders: { senders: () => ({ changes: [], leaks: [], audit: [] }) },
    };
    // The parts that no request of this test needs are missing.
    const { handle } = createOperatorsHost(parts as unknown as Parameters<typeof createOperatorsHost>[0]);
    const server = await listen(handle, 0, '127.0.0.1');
    try {
      const own = portOf(addressOf(server));
      const named = { host: `gatehouse.INTERNAL:${own}` };
      expect((await rawRequest(own, '/metrics', { headers: named })).text).to.equal('up 1');
      const other = { host: 'other.internal' };
      expect((await rawRequest(own, '/metrics', { headers: other })).status).to.equal(421);
    } finally {
      await drain(server);
    }
  });

  it('a reload requested by a page is refused by its Origin or its Sec-Fetch-Site header', async () => {
    const host = 'localhost';
    for (const sent of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'none' },
    ]) {
      expect((await ask('POST', '/reload', { host, ...sent })).status).to.equal(403);
    }
  });
});

describe('the paths /changes, /leaks and /audit require secrets of their own', () => {
  const start = startsOn();
  const SECRET = 'secret-of-the-tests-0123456789abcdefghij';
  const sender = [{ name: 'tests', secret: SECRET }];
  const senders = { changes: sender, leaks: sender, audit: sender };

  for (const [path, name, usual] of [
    ['/changes', 'changes', 'POST'],
    ['/leaks', 'leaks', 'POST'],
    ['/audit', 'audit', 'GET'],
  ] as const) {
    it(`${path} refuses browsers, other host names, other methods and wrong secrets, and exists only if a secret is set`, async () => {
      const service = await start({ settings: { senders, limits: { clientFailuresPerAddress: 3 } } });
      const ask = (headers: Record<string, string>, method: string = usual, { operatorsUrl } = service) =>
        rawRequest(Number(new URL(operatorsUrl).port), path, {
          method,
          headers: { host: 'localhost', authorization: `Bearer ${SECRET}`, 'content-length': '0', ...headers },
        });
      expect((await ask({ origin: 'null' })).status).to.equal(403);
      expect((await ask({ host: 'evil.example' })).status).to.equal(421);
      expect((await ask({}, usual === 'GET' ? 'POST' : 'GET')).status).to.equal(405);
      const answers = [];
      for (const authorization of ['', 'Bearer', `Basic ${SECRET}`, 'Bearer x', `bearer ${SECRET}`]) {
        answers.push(await ask({ authorization }));
      }
      expect([answers[0]?.status, answers[1]?.status, answers.at(-1)?.status]).to.deep.equal([401, 401, 429]);
      expect(answers[0]?.headers.get('www-authenticate')).to.equal('Bearer');
      expect(answers[0]?.text).to.contain(`GATEHOUSE_${name.toUpperCase()}_SECRETS`);
      expect(Number(answers.at(-1)?.headers.get('retry-after'))).to.be.above(0);
      // A correct secret is always accepted; both lists read an empty body as what it is.
      expect((await ask({})).status).to.equal(name === 'leaks' ? 400 : 200);

      const without = await start({ settings: { senders: { ...senders, [name]: [] } } });
      expect((await ask({}, usual, without)).status).to.equal(404);
    });
  }
});
