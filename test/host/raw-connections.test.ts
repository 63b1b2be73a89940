/** Random bytes on raw connections, to every route of both listeners. `listeners.test.ts` sends pipelines. */
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inspect } from 'node:util';
import fc from 'fast-check';
import { basic } from '../support/oauth.ts';
import { createPerson, type Person } from '../support/person.ts';
import { repeated } from '../support/repetitions.ts';
import { startSeeded } from '../support/seeded.ts';
import { PATIENCE_MS } from '../support/timeout-factor.ts';

/** `REQUESTS=500000 SEED=… npm test -- test/host/raw-connections.test.ts` tries more, or the same. */
const REQUESTS = Number(process.env.REQUESTS ?? repeated(150));
const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));

const SECRET = 'secret-of-the-tests-0123456789abcdefghij';

/** One list of numbers for each of the connections that are open at the same time. */
const numbers = fc.array(fc.nat(65_535), { minLength: 4, maxLength: 60, size: 'max' });
const batch = fc.noBias(fc.array(numbers, { minLength: 1, maxLength: 60, size: 'max' }));
/** Batches from one seed, before the session is checked. */
const BATCHES = 10;

describe('raw connections', () => {
  const sender = [{ name: 'tests', secret: SECRET }];
  const senders = { changes: sender, leaks: sender, audit: sender };
  const on = startSeeded({ settings: { senders, log: { level: 'debug' } } });

  it(`random requests are answered or their connection is closed, without an internal error (${REQUESTS}, seed ${seed})`, async function () {
    this.timeout(120_000 + REQUESTS * 20);
    const faults = catchFaults();
    let sent = 0;
    let round = seed;
    let person = createPerson(on.issuer);
    let made = await collectIngredients(person);
    try {
      while (sent < REQUESTS) {
        // A form that was sent may have ended the session.
        if ((await person.get('/profile')).status !== 200) {
          person = createPerson(on.issuer);
          made = await collectIngredients(person);
        }
        const property = fc.asyncProperty(batch, async (drawn) => {
          const connections = drawn.map((one) => drawConnection(one, made));
          sent += connections.length;
          const [problems, others] = await Promise.all([Promise.all(connections.map(problemsOn)), problemsOfOthers()]);
          const found = connections.flatMap(({ pieces }, index) =>
            (problems[index] ?? []).map((problem) => `${problem}: ${JSON.stringify(pieces)}`),
          );
          found.push(...others, ...faults.splice(0).map((fault) => inspect(fault)), ...problemsInLog());
          if (found.length > 0) throw new Error(found.join('\n'));
        });
        // After that time, report the failure that is the shortest so far.
        await fc.assert(property, {
          numRuns: BATCHES,
          seed: round,
          interruptAfterTimeLimit: PATIENCE_MS,
          includeErrorInReport: true,
        });
        round += 1;
      }
    } finally {
      faults.restore();
    }
  });

  /** Returns what goes wrong for other users of both listeners. */
  async function problemsOfOthers(): Promise<string[]> {
    const urls = [`${on.issuer}/login`, `${on.service.operatorsUrl}/healthz`];
    const answers = await Promise.all(
      urls.map((url) =>
        fetch(url).then(async (answer) => {
          await answer.text();
          return answer.status;
        }),
      ),
    );
    return answers.flatMap((status, index) => (status === 200 ? [] : [`${urls[index]}: ${status}`]));
  }

  /** Returns the problems in the log since the last call, and empties it. */
  function problemsInLog(): string[] {
    const lines = on.service.logLines as string[];
    return lines.splice(0).filter((line) => {
      const { level, err: _, ...fields } = JSON.parse(line);
      return level >= 50 || /\p{Cc}/u.test(line.trimEnd()) || /\\[nrtbfu]/.test(JSON.stringify(fields));
    });
  }

  /** Signs in, and opens every page to find its forms. */
  async function collectIngredients(person: Person): Promise<Ingredients> {
    const { service, seeded, issuer } = on;
    await person.signIn(seeded.other);
    const { confidential, public: publicClient, resourceServer, machine } = seeded.clients;
    const ids = [confidential.id, seeded.elsewhere.id, seeded.organization.id, publicClient.id];
    const at = (url: string, routes: readonly { method: string; path: string }[]): Target[] =>
      routes.map(({ method, path }) => ({ url: new URL(url), method, path }));
    const publicTargets = at(issuer, service.routes());
    const forms = new Map<string, readonly [string, string][]>();
    const pages = publicTargets
      .filter(({ method, path }) => method === 'GET' && !/\/(requests|changes)$/.test(path))
      .map(({ path }) => {
        const id = path.includes('/organizations/') ? seeded.elsewhere.id : confidential.id;
        return person.get(path.replace(/:\w+/g, id));
      });
    for (const page of await Promise.all(pages)) {
      for (const form of page.forms) {
        forms.set(new URL(form.action, page.url).pathname, form.values);
      }
    }
    return {
      targets: [...publicTargets, ...at(service.operatorsUrl, service.operatorsRoutes)],
      ids,
      cookie: person.cookieHeader('/profile'),
      credentials: [...[resourceServer, confidential, machine].map(basic), `Bearer ${SECRET}`],
      forms,
    };
  }
});

/** Collects what would end the process, instead of mocha. */
function catchFaults(): unknown[] & { restore(): void } {
  const faults: unknown[] = [];
  const events = ['uncaughtException', 'unhandledRejection'] as const;
  const others = events.map((event) => process.listeners(event as 'uncaughtException'));
  const record = (error: unknown): void => void faults.push(error);
  for (const event of events) process.removeAllListeners(event).on(event, record);
  const restore = (): void => {
    for (const [index, event] of events.entries()) {
      process.off(event, record);
      for (const listener of others[index] ?? []) process.on(event, listener);
    }
  };
  return Object.assign(faults, { restore });
}

/** A route of one of the listeners, with the requests of a user who may use it. */
interface Target {
  readonly url: URL;
  readonly method: string;
  readonly path: string;
}

/** What the requests are made of. */
interface Ingredients {
  readonly targets: readonly Target[];
  /** Identifiers that exist, for the parameters of paths and forms. */
  readonly ids: readonly string[];
  /** `Cookie` of a signed-in user. */
  readonly cookie: string;
  /** Valid values of `Authorization`. */
  readonly credentials: readonly string[];
  /** The forms that the signed-in user can send, by the path to which they are sent. */
  readonly forms: ReadonlyMap<string, readonly (readonly [name: string, value: string])[]>;
}

/** Decides by its numbers, one after the other; for the first, plainest choice if there are none. */
function createChoice(numbers: readonly number[]) {
  let used = 0;
  const below = (count: number): number => (numbers[used++] ?? 0) % count;
  return {
    below,
    oneIn: (count: number): boolean => below(count) === count - 1,
    of: <One>(list: readonly One[]): One => list[below(list.length)] as One,
  };
}
/** Shows unescaped markup, and a header that an answer took from a request. */
const MARK = `<fuzz"'>`;
const HOSTILE = [
  MARK,
  '%3Cfuzz%22%27%3E',
  'a%0d%0aX-Fuzz:%20a',
  '%00',
  '%ff%fe',
  '%ED%A0%80',
  '%',
  '%zz',
  '%1b[31m%c2%9b',
  '..%2f..%2f',
  '../..',
  '__proto__',
  "'%20OR%201=1;--",
  'javascript:alert(1)',
  'https://evil.example/',
  '//evil.example/\\',
  'x@[/#',
  'gate_at_x',
  'é\x80\x9f',
  '\x07\x1b[31m',
  '\t ',
  '(((((((((((',
  'a'.repeat(300),
  `${MARK}`.repeat(1_500),
];

const ODD_TARGETS = ['*', 'x@[', '//x@[/#', '/#', '//#x@[::1]/#', 'http://?', 'http://[/', '?'];
const ODD_HOSTS = ({ host }: URL): string[] =>
  [host, host, 'evil.example', 'x@[', '%6c'].map((name) => `http://${name}`);
const METHODS_TRIED = [...METHODS, 'get', 'G<ET', 'GATEHOUSE', 'PRI'];
const QUERY_NAMES =
  'client_id redirect_uri state scope prompt code token return_to answer form done error iss page __proto__ a[b]'.split(
    ' ',
  );
const FIELD_NAMES =
  'grant_type code refresh_token token client_id client_secret redirect_uri code_verifier email password form __proto__ name a[]'.split(
    ' ',
  );
const HEADERS = [
  'Accept: text/html',
  'Accept: application/json;q=0.0000001, */*;q=-1',
  'Accept-Language: de;q=1, x;q=x, *',
  'Accept-Encoding: br, gzip;q=2',
  'Content-Type: multipart/form-data; boundary=x',
  'Content-Type: application/json; charset=utf-16le',
  `Content-Type: ${MARK}`,
  `User-Agent: ${MARK}\x80\x9b31m`,
  `Referer: ${MARK}`,
  `Origin: ${MARK}`,
  'Origin: null',
  'Sec-Fetch-Site: cross-site',
  'Sec-Fetch-Dest: image',
  `X-Forwarded-For: ${MARK}, 1.2.3.4`,
  `X-Forwarded-Host: ${MARK}`,
  `X-Forwarded-Proto: ${MARK}`,
  `X-Request-Id: ${MARK}`,
  `Traceparent: 00-${MARK}-01`,
  'Expect: 100-continue',
  'Expect: the-impossible',
  'If-None-Match: *, W/"',
  'If-Modified-Since: x',
  'Range: bytes=0-0,-1,5-4',
  'Connection: Upgrade\r\nUpgrade: websocket',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA',
  'Connection: close',
  'TE: trailers',
  'Trailer: Host',
  'Cache-Control: max-age=0',
  'X-Http-Method-Override: DELETE',
  'Last-Event-ID: x',
  `X-Long: ${'a'.repeat(20_000)}`,
  `X-${'a'.repeat(500)}: a`,
  'X-Nul: a\0b',
  'No colon',
  ' Folded: first',
  'X-Folded: a\r\n b',
  'Space : a',
  ': no name',
  'X-Cr: a\rX-Fuzz: b',
  'X-Lf: a\nX-Fuzz: b',
  ...Array.from({ length: 8 }, (_, index) => `Cookie: ${'=;,"\\ é<'[index]}=${MARK}; a`),
];
/** How a body is sent, the usual way more often. */
const FRAMINGS =
  'length length length length length length chunks chunks extension trailer list sign none long short both twice size endless'.split(
    ' ',
  );
/** The body has the length that it says, or the request is refused for what it says. */
const WHOLE = ['length', 'chunks', 'extension', 'trailer', 'list', 'sign'];
/** How a client ends its connection: by `Connection: close`, or by itself after its bytes, or in the middle of them. */
const ENDINGS = ['close', 'close', 'close', 'close', 'close', 'close', 'half', 'reset', 'cut'];

interface Connection {
  readonly url: URL;
  readonly method: string;
  /** The bytes, in the pieces in which they are sent; Latin-1 text stands for bytes. */
  readonly pieces: readonly string[];
  readonly ending: string;
  /** True if exactly one answer is due. */
  readonly isWhole: boolean;
}

/** Returns the connection for these numbers. */
function drawConnection(numbers: readonly number[], made: Ingredients): Connection {
  const { below, oneIn, of } = createChoice(numbers);
  const { url, method: usual, path: pattern } = of(made.targets);
  const ending = of(ENDINGS);
  const value = (): string => (oneIn(3) ? of(HOSTILE) : of(made.ids));
  const path = pattern.replace(/:\w+/g, () => value().replaceAll(' ', '+'));
  const method = oneIn(12) ? of(METHODS_TRIED) : usual;
  const pairs = (names: readonly string[], count: number): string[] =>
    Array.from({ length: count }, () => `${of(names)}=${value()}`);
  const query = oneIn(3) ? `?${pairs(QUERY_NAMES, below(5)).join('&')}` : '';
  const odd = oneIn(5) ? of([...ODD_TARGETS, ...HOSTILE, ...ODD_HOSTS(url)]) : '';
  const target = odd.startsWith('http://') ? odd + path + query : odd || path + query;
  const version = oneIn(20) ? of(['HTTP/1.0', 'HTTP/9.9', 'HTTP/1.1 ', '', 'x']) : 'HTTP/1.1';
  const lines = [`${method} ${target} ${version}`];

  const host = `Host: ${url.host}`;
  if (oneIn(15)) lines.push(...of([[], [host, host], ['Host: evil.example'], [`Host: ${MARK}`]]));
  else lines.push(host);
  if (!oneIn(3)) lines.push(`Cookie: ${made.cookie}${oneIn(10) ? of(HOSTILE) : ''}`);
  if (oneIn(3)) lines.push(`Authorization: ${oneIn(4) ? of(HOSTILE) : of(made.credentials)}`);
  if (usual === 'POST' && !oneIn(8)) lines.push(`Origin: ${url.origin}`);
  for (let count = oneIn(3) ? 1 + below(3) : 0; count > 0; count -= 1) lines.push(of(HEADERS));
  if (ending === 'close') lines.push('Connection: close');

  let body = '';
  let framing = 'length';
  if (usual === 'POST' || oneIn(10)) {
    const fields = (made.forms.get(path) ?? []).map(([name, text]) =>
      oneIn(12) ? `${name}=${of(HOSTILE)}` : new URLSearchParams([[name, text]]).toString(),
    );
    fields.push(...pairs(FIELD_NAMES, below(4)));
    body = oneIn(12) ? of(['{"a":', '[]\n{}', '\0', MARK, 'a'.repeat(60_000), '=&=&&%']) : fields.join('&');
    if (!oneIn(10)) lines.push('Content-Type: application/x-www-form-urlencoded');
    framing = of(FRAMINGS);
    const framed = framedAs(framing, body);
    lines.push(...framed.lines);
    body = framed.body;
  }
  const whole = `${lines.join('\r\n')}\r\n\r\n${body}`;
  const text = ending === 'cut' ? whole.slice(0, below(whole.length + 1)) : whole;
  const at = oneIn(3) ? below(text.length + 1) : text.length;
  // Node does not read what it received together with the request of an upgrade, and closes after CONNECT.
  const isOther = method === 'CONNECT' || lines.some((line) => line.startsWith('Connection: Upgrade'));
  const isWhole = ending === 'close' && !isOther && WHOLE.includes(framing);
  return { url, method, pieces: [text.slice(0, at), text.slice(at)], ending, isWhole };
}

function framedAs(framing: string, body: string): { lines: readonly string[]; body: string } {
  const chunked = 'Transfer-Encoding: chunked';
  const chunks = (body.match(/.{1,40}/gs) ?? []).map((one) => `${one.length.toString(16)}\r\n${one}\r\n`).join('');
  const extended = chunks.replace(/^[0-9a-f]+/, `$&;a="${MARK}"`);
  const length = (text: string | number): string => `Content-Length: ${text}`;
  if (framing === 'chunks') return { lines: [chunked], body: `${chunks}0\r\n\r\n` };
  if (framing === 'extension') return { lines: [chunked], body: `${extended}0\r\n\r\n` };
  if (framing === 'trailer') return { lines: [chunked], body: `${chunks}0\r\nHost: evil.example\r\n\r\n` };
  if (framing === 'size') return { lines: [chunked], body: `${chunks}fffffffffffffffff\r\n` };
  if (framing === 'endless') return { lines: [chunked], body: chunks };
  if (framing === 'both') return { lines: [length(body.length), chunked], body: `${chunks}0\r\n\r\n` };
  if (framing === 'list') return { lines: [length(`${body.length}, ${body.length}`)], body };
  if (framing === 'sign') return { lines: [length(`+${body.length}`)], body };
  if (framing === 'twice') return { lines: [length(body.length), length(body.length + 1)], body };
  if (framing === 'short') return { lines: [length(Math.max(0, body.length - 9))], body };
  if (framing === 'long') return { lines: [length(body.length + 9)], body };
  return { lines: framing === 'none' ? [] : [length(body.length)], body };
}

/** Time for an answer to bytes of which the client cannot know whether they are a whole request. */
const UNSURE_MS = 20;

/** Sends the connection. @returns what is wrong with the answer; an empty list if nothing is */
async function problemsOn({ url, method, pieces, ending, isWhole }: Connection): Promise<string[]> {
  const socket = connect(Number(url.port), '127.0.0.1');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  let received = '';
  let isOver = false;
  const stop = (): void => {
    isOver = true;
    socket.destroy();
  };
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    socket.destroy();
  }, PATIENCE_MS);
  // The system resets a connection that is closed before all was read: an answer may be lost.
  socket.on('error', stop);
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    if (/^content-type: text\/event-stream/im.test(received)) stop();
  });
  for (const piece of pieces) {
    if (piece === '') continue;
    socket.write(piece, 'latin1');
    await nextTurn();
  }
  if (ending === 'half' || ending === 'cut') socket.end();
  if (ending === 'reset') socket.resetAndDestroy();
  const unsure = ending === 'close' && !isWhole ? setTimeout(stop, UNSURE_MS) : undefined;
  await closed;
  clearTimeout(limit);
  clearTimeout(unsure);
  if (isLate) return ['the connection stays open'];

  const text = received.replace(/^(?:HTTP\/1\.1 1\d\d [^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+/, '');
  const [head, status = '', lines = ''] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(text) ?? [];
  const isDue = isWhole && !isOver;
  if (head === undefined) return isDue || (text !== '' && !isOver) ? [`no answer: ${JSON.stringify(text)}`] : [];
  const headers = new Headers(
    lines
      .split('\r\n')
      .filter(Boolean)
      .map((line): [string, string] => [line.replace(/:.*/, ''), line.replace(/.*?:/, '').trim()]),
  );
  const body = text.slice(head.length);
  const problems: string[] = [];
  const length = headers.get('content-length');
  const hasBody = method !== 'HEAD' && !['204', '304'].includes(status);
  const isChunked = headers.get('transfer-encoding') === 'chunked';
  const isComplete = length === null ? !isChunked || body.endsWith('0\r\n\r\n') : body.length === Number(length);
  if (isDue && hasBody && !isComplete)
    problems.push(`another body than announced: ${JSON.stringify(body.slice(-200))}`);
  // A store that is away, or passwords that cannot be hashed now, are the only documented ones.
  if (status >= '500' && !(status === '503' && headers.has('retry-after'))) problems.push(body.slice(0, 200));
  if (headers.has('x-fuzz')) problems.push('a header of the request');
  if (!/^req_[0-9a-f]{16}$/.test(headers.get('x-request-id') ?? '')) problems.push('no reference');
  if (headers.get('x-content-type-options') !== 'nosniff') problems.push('no nosniff');
  if (/[^\r\n\x20-\x7e]/.test(head)) problems.push(`bytes in headers: ${JSON.stringify(head)}`);
  const place = headers.get('content-type')?.includes('html') ? body.search(/<fuzz|fuzz["']/i) : -1;
  if (place >= 0) problems.push(`unescaped: ${body.slice(Math.max(0, place - 80), place + 20)}`);
  return problems.map((problem) => `${problem} (${status} of ${headers.get('x-request-id')})`);
}
