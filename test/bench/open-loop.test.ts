/** The open loop of the benchmarks counts the time that a request waits while the server stalls. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { CONNECTIONS } from '../../bench/load.ts';
import { measureOpenLoop } from '../../bench/open-loop.ts';
import { atEndOfFile } from '../support/end-of-run.ts';

const call = () => ({ request: { method: 'GET', path: '/' } as const });

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEndOfFile(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the open loop of the benchmarks', () => {
  it('the time of a request is counted from its planned moment, even if the server stalls', async () => {
    const rate = { perSecond: 1_000, seconds: 0.4 };
    const stallMs = 400;
    let stalled: Promise<void> | undefined;
    let waiting = 0;
    const url = await serve(async (_, response) => {
      waiting += 1;
      expect(waiting).to.be.at.most(CONNECTIONS);
      // The stall begins with the first request, and ends after the last one is due.
      stalled ??= delay(stallMs);
      await stalled;
      waiting -= 1;
      response.end('ok');
    });
    const result = await measureOpenLoop(url, rate, call);
    expect(result).to.include({ planned: 400, failures: 0, unanswered: 0 });
    // The request in the middle was due after 200 ms. A closed loop sends it after the stall.
    expect(result.p50).to.be.at.least(199);
    expect(result.longest).to.be.at.least(399);
  });

  it('each planned request is sent once, and refused, wrong and missing answers are failures', async () => {
    let received = 0;
    const url = await serve((_, response) => {
      received += 1;
      if (received === 10) response.destroy();
      else if (received === 20) response.writeHead(503).end('');
      else response.end(received === 30 ? 'wrong' : 'right');
    });
    const result = await measureOpenLoop(url, { perSecond: 1_000, seconds: 0.1 }, () => ({
      ...call(),
      answered: ({ status, body }) => status === 503 || body === 'right',
    }));
    expect(received).to.equal(100);
    expect(result).to.include({ planned: 100, failures: 3, unanswered: 1 });
  });

  it('the measurement ends if the server goes away', async () => {
    const server = createServer((_, response) => response.end('ok'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    let sent = 0;
    const result = await measureOpenLoop(`http://127.0.0.1:${port}`, { perSecond: 1_000, seconds: 0.2 }, () => {
      sent += 1;
      if (sent === 50) {
        server.close();
        server.closeAllConnections();
      }
      return call();
    });
    expect(result.planned).to.equal(200);
    expect(result.failures).to.equal(result.unanswered);
    expect(result.failures).to.be.at.least(150);
  });
});
