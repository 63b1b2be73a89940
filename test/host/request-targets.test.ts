/** No request target ends the process, and no error of one request concerns another. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { addressOf, drain, listen } from '../../src/host/listeners.ts';
import { startSeeded } from '../support/seeded.ts';

/** Targets that are neither in origin-form nor in absolute-form (RFC 9112 §3.2). */
const INVALID = [
  '//x@[/#',
  '//x@[/?a=b#',
  '//#x@[::1]/#',
  'http://[/',
  'http://?',
  'http://',
  'https://a@localhost/login',
  'http://@localhost/login',
  'http://%6cocalhost/login',
  'http://2130706433/login',
  'http://localhost:99999/login',
  'ftp://localhost/login',
  'javascript:alert(1)',
  'x@[',
  '?#',
  '*',
  '/login#fragment',
  '/login?state=\xa0',
  '/\xff\xfe',
] as const;

const METHODS = ['GET', 'HEAD', 'POST', 'OPTIONS', 'PATCH'];

/** Sends bytes on a connection of their own, and returns all that is answered until its end. */
async function answerTo(port: number, request: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1');
  });
  socket.write(Buffer.from(request, 'latin1'));
  await once(socket, 'close');
  return answer;
}

describe('request targets', () => {
  const on = startSeeded();
  /** Returns the URL of a listener, and a path that it always answers. */
  const listener = (name = 'public'): [url: URL, path: string] =>
    name === 'public' ? [new URL(on.issuer), '/login'] : [new URL(on.service.operatorsUrl), '/healthz'];

  const isServing = async (url: URL, path: string): Promise<boolean> => (await fetch(new URL(path, url))).ok;

  for (const name of ['public', 'operators']) {
    it(`the ${name} listener answers 400 with a reference to every invalid target, and serves the next request`, async () => {
      const [url, path] = listener(name);
      for (const target of INVALID) {
        for (const method of METHODS) {
          const lines = [`${method} ${target} HTTP/1.1`, `Host: ${url.host}`, 'Connection: close'];
          const answer = await answerTo(Number(url.port), `${lines.join('\r\n')}\r\n\r\n`);
          expect(answer, `${method} ${target}`).to.match(/^HTTP\/1\.1 400 Bad Request\r\n/);
          const [, id] = /\r\nX-Request-Id: (req_[0-9a-f]{16})\r\n/i.exec(answer) ?? [];
          const logged = on.service.logLines.filter((line) => line.includes(String(id)));
          expect(logged, `${method} ${target}`).to.have.length(1);
          expect(logged[0]).to.include('"status":400');
          // Node's own parser refuses some targets, without knowing the method.
          if (method !== 'HEAD' || answer.includes('Bad Request (')) {
            expect(answer).to.match(/\n(The request target must be a path.*|Bad Request .*)\n$/);
          }
        }
      }
      expect(on.service.logLines.filter((line) => line.includes('"level":50'))).to.deep.equal([]);
      expect(await isServing(url, path)).to.equal(true);
    });
  }

  it('an invalid target gets 400 with any headers, but no answer after another request on the connection', async () => {
    const [url, path] = listener();
    const port = Number(url.port);
    const bad = 'GET //x@[/# HTTP/1.1';
    const valid = `GET ${path} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`;
    const host = `Host: ${url.host}\r\n`;
    for (const [request, statuses] of [
      [`${bad}\r\nConnection: close\r\n\r\n`, [400]],
      [`${bad}\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n`, [400]],
      [`${bad}\r\n${host}Expect: 100-continue\r\nConnection: close\r\n\r\n`, [100, 400]],
      [`${bad}\r\n${host}Expect: the-impossible\r\nConnection: close\r\n\r\n`, [400]],
      [`${bad.replace('1.1', '1.0')}\r\n\r\n`, [400]],
      [`${valid}${bad}\r\n${host}\r\n`, [200]],
      [`${valid}${bad}\r\n${host}\r\n${valid}`, [200]],
    ] as const) {
      const answer = await answerTo(port, request);
      const found = [...answer.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
      expect(found, request).to.deep.equal(statuses);
    }
    expect(await isServing(url, path)).to.equal(true);
    // Requests behind an answer that ends the connection are not handled (RFC 9112 §9.6).
    const handled = on.service.logLines.filter((line) => line.includes('"status":499'));
    expect(handled).to.deep.equal([]);
  });

  it('a target in absolute-form is served by its path, for the host that it names (RFC 9112 §3.2.2)', async () => {
    const [{ host, port }] = listener();
    const statusOf = async (target: string, named: string): Promise<string | undefined> => {
      const lines = [`GET ${target} HTTP/1.1`, `Host: ${named}`, 'Connection: close'];
      const answer = await answerTo(Number(port), `${lines.join('\r\n')}\r\n\r\n`);
      return /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1];
    };
    expect(await statusOf(`http://${host}/login?a=b`, host)).to.equal('200');
    expect(await statusOf(`HTTP://${host}/login`, 'elsewhere.example')).to.equal('200');
    expect(await statusOf('http://elsewhere.example/login', host)).to.equal('421');
    expect(await statusOf(`http://${host}`, host)).to.equal('303');
    expect(await statusOf(`http://${host}/x/../login`, host)).to.equal('404');
  });

  it('an error that a handler throws or rejects with is logged and answered 500, and the next request is served', async () => {
    const failures: Record<string, (response: ServerResponse) => unknown> = {
      '/throws': () => {
        throw new Error('thrown');
      },
      '/rejects': () => Promise.reject(new Error('rejected')),
      '/odd': () => Promise.reject(undefined),
      '/half': (response) => {
        response.statusMessage = 'Fine';
        response.writeHead(200, { 'X-Odd': '\n' });
      },
    };
    const logged: unknown[] = [];
    const log = { error: (fields: { err: unknown }) => void logged.push(fields.err) };
    const server = await listen(
      (request, response) => {
        response.setHeader('Set-Cookie', 'session=half-done');
        return failures[request.url ?? '']?.(response) ?? response.end('here');
      },
      0,
      '127.0.0.1',
      { log: log as never },
    );
    for (const path of Object.keys(failures)) {
      const answer = await fetch(addressOf(server) + path, { method: 'POST' });
      expect(answer.status, path).to.equal(500);
      expect(await answer.text()).to.match(/^Something went wrong on our side\. Reference: req_[0-9a-f]{16}\n$/);
    }
    expect(logged.map((err) => (err as Error | undefined)?.message)).to.deep.equal([
      'thrown',
      'rejected',
      undefined,
      'Invalid character in header content ["X-Odd"]',
    ]);
    expect(await (await fetch(addressOf(server), { method: 'POST' })).text()).to.equal('here');
    await drain(server);
  });
});
