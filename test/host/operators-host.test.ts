/** The operators' listener refuses pages in an operator's browser, also after DNS rebinding. */
import { expect } from 'chai';
import { pino } from 'pino';
import { addressOf, drain, listen } from '../../src/host/listeners.ts';
import { createOperatorsHost } from '../../src/host/operators-host.ts';
import type { Readiness } from '../../src/host/readiness.ts';
import { rawRequest } from '../support/raw-request.ts';
import { startSeeded } from '../support/seeded.ts';
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
    const { handle } = createOperatorsHost({
      log: pino({ level: 'silent' }),
      operatorsHost: 'Gatehouse.internal',
      readiness: {} as Readiness,
      metrics: async () => ({ contentType: 'text/plain', text: 'up 1' }),
      reload: {
        preview: () => Promise.reject(new Error('not called')),
        everywhere: () => Promise.reject(new Error('not called')),
      },
      reloadCredentials: () => undefined,
      pushChanges: () => Promise.reject(new Error('not called')),
      endLeaked: () => Promise.reject(new Error('not called')),
      readAudit: () => Promise.reject(new Error('not called')),
      senders: {
        senders: () => ({ changes: [], leaks: [], audit: [] }),
        wrongSecrets: () => expect.fail('not called'),
      },
    });
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
