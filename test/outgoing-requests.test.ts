/** What a hostile server can do to the requests that this program sends to it. */
import type { RequestListener, ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect } from 'chai';
import { listen } from '../examples/sandbox/listening.ts';
import { fetchAnswer } from '../src/base/outgoing-requests.ts';
import { createRequests } from '../src/doctor/requests.ts';
import { atEndOfFile } from './support/end-of-run.ts';

const BODY = '{"data":"a decoded body"}';
const SIGNAL = new AbortController().signal;
const told = async (answer: Response): Promise<string> => `${answer.status} ${await answer.text()}`;

/** The function through which every request is sent, and the caller that reads a stream, with how they report an answer. */
const CALLERS: Readonly<Record<string, (url: URL) => Promise<string>>> = {
  'a request': async (url) => told(await fetchAnswer(url, {}, LIMITS)),
  'the doctor, of a stream': async ({ origin }) => {
    const { openStream } = createRequests({ issuer: origin, signal: SIGNAL });
    const stream = await openStream({ path: '/?status=401' }, SIGNAL);
    return JSON.stringify(stream);
  },
};

const encoded = (coding: string, encode: (text: string) => Buffer) => (response: ServerResponse) =>
  response.setHeader('content-encoding', coding).end(encode(BODY));
const CODINGS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  br: encoded('br', brotliCompressSync),
  gzip: encoded('gzip', gzipSync),
  'X-GZIP': encoded('X-GZIP', gzipSync),
  deflate: encoded('deflate', deflateSync),
  zstd: encoded('zstd', zstdCompressSync),
  'identity, br': encoded('identity, br', brotliCompressSync),
};

const LIMITS = { timeoutMs: 5_000, maxBytes: 1_000 };
let answer: (response: ServerResponse) => void = () => {};
let accepted: (string | undefined)[] = [];
let paths: string[] = [];
const hostile: RequestListener = ({ headers, url = '' }, response) => {
  accepted.push(headers['accept-encoding']);
  paths.push(url);
  if (url.includes('status=401')) response.statusCode = 401;
  answer(response);
};

/** Returns what `ask` reports: its answer, or the messages of its error. */
const outcomeOf = (ask: Promise<string>): Promise<string> =>
  ask.catch((error: Error) => `${error.name} ${error.message} ${error.cause}`);

describe('a request to another server withstands hostile and broken answers', () => {
  let url: URL;
  before(async () => {
    const { port, close } = await listen(hostile, { host: '127.0.0.1', port: 0 });
    url = new URL(`http://127.0.0.1:${port}/`);
    atEndOfFile(close);
  });
  beforeEach(() => {
    accepted = [];
    paths = [];
  });

  for (const [caller, ask] of Object.entries(CALLERS)) {
    it(`${caller} requests an uncompressed answer, and refuses a compressed one by naming its content coding`, async () => {
      for (const [coding, send] of Object.entries(CODINGS)) {
        answer = send;
        const outcome = await outcomeOf(ask(url));
        expect(outcome, coding).to.include(`content coding`).and.include(coding.toLowerCase());
        expect(outcome, coding).not.to.include('decoded');
      }
      expect(new Set(accepted)).to.deep.equal(new Set(['identity']));
    });

    it(`${caller} follows no redirect`, async () => {
      answer = (response) => response.writeHead(307, { location: '/elsewhere' }).end();
      await outcomeOf(ask(url));
      expect(paths.join()).not.to.include('elsewhere');
      expect(paths).to.have.length(1);
    });

    it(`${caller} stops reading an answer without an end`, async () => {
      let sent = 0;
      const closed = new Promise<void>((resolve) => {
        answer = (response) => {
          response.on('close', resolve).on('error', () => {});
          const piece = Buffer.alloc(64 * 1024, 'x');
          const next = (): void => {
            while (!response.destroyed && response.write(piece)) sent += piece.length;
          };
          response.on('drain', next);
          next();
        };
      });
      const outcome = await outcomeOf(ask(url));
      await closed;
      expect(outcome).to.match(/an answer of more than \d+ bytes/);
      expect(sent).to.be.below(16 * 1024 * 1024);
    });

    it(`${caller} does not wait for an answer if the server switches to another protocol`, async () => {
      answer = ({ socket }) => socket?.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n');
      expect(await outcomeOf(ask(url))).to.match(/without an answer|No server|no node/);
    });
  }

  it('no connection is used twice, even if the server keeps it open', async () => {
    const ports = new Set<number | undefined>();
    answer = (response) => {
      ports.add(response.socket?.remotePort);
      response.setHeader('connection', 'keep-alive').end(BODY);
    };
    const limits = { timeoutMs: 60_000, maxBytes: 1_000 };
    for (const _ of [1, 2, 3]) await fetchAnswer(url, {}, limits);
    expect(ports.size).to.equal(3);
  });

  it('an answer whose Content-Encoding names no real content coding is read as it is', async () => {
    for (const coding of ['identity', 'none', '', 'UTF-8', 'utf8, identity']) {
      answer = (response) => response.setHeader('content-encoding', coding).end(BODY);
      const limits = { timeoutMs: 60_000, maxBytes: 1_000 };
      expect(await told(await fetchAnswer(url, {}, limits))).to.equal(`200 ${BODY}`);
    }
  });

  it('an answer with an invalid status is refused, and the error names the status', async () => {
    for (const status of ['000', '600', '999']) {
      answer = ({ socket }) => socket?.end(`HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`);
      const outcome = await outcomeOf(fetchAnswer(url, {}, LIMITS).then(told));
      expect(outcome).to.include(`AnswerRefused an answer with the status ${Number(status)},`);
    }
  });

  it('an answer is read whatever its reason phrase is', async () => {
    answer = ({ socket }) => socket?.end('HTTP/1.1 200 \x01\u00ff\r\nContent-Length: 2\r\n\r\nok', 'latin1');
    const outcome = await outcomeOf(fetchAnswer(url, {}, LIMITS).then(told));
    expect(outcome).to.equal('200 ok');
  });

  it('a slow answer is abandoned after the time limit, and the error names the cause', async () => {
    const slow: readonly ((response: ServerResponse) => void)[] = [
      () => {},
      (response) => response.write('{'),
      (response) => {
        const timer = setInterval(() => response.write('x'), 5);
        response.on('close', () => clearInterval(timer));
      },
      ({ socket }) => {
        const timer = setInterval(() => socket?.write('HTTP/1.1 100 Continue\r\n\r\n'), 5);
        socket?.on('close', () => clearInterval(timer));
      },
    ];
    for (const each of slow) {
      answer = each;
      const outcome = await outcomeOf(fetchAnswer(url, {}, { timeoutMs: 40, maxBytes: 1_000 }).then(told));
      expect(outcome).to.match(/^TimeoutError /);
    }
  });

  it('the caller can abort a request during the answer, and the error contains the given reason', async () => {
    const controller = new AbortController();
    answer = (response) => {
      response.write('{');
      controller.abort(new Error('no longer needed'));
    };
    const { signal } = controller;
    const limits = { timeoutMs: 60_000, maxBytes: 1_000 };
    expect(await outcomeOf(fetchAnswer(url, { signal }, limits).then(told))).to.include('no longer needed');
  });
});
