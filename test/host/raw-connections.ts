/** Random connections of raw bytes, and what every answer to them must keep. */
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PATIENCE_MS } from '../support/timeout-factor.ts';

/** A route of one of the listeners, with the requests of a user who may use it. */
export interface Target {
  readonly url: URL;
  readonly method: string;
  readonly path: string;
}

/** What the requests are made of. */
export interface Ingredients {
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
type Choice = ReturnType<typeof createChoice>;

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
const FRAMINGS = [
  'length',
  'length',
  'length',
  'length',
  'length',
  'length',
  'chunks',
  'chunks',
  'extension',
  'none',
  'long',
  'short',
  'both',
  'list',
  'sign',
  'twice',
  'size',
  'endless',
  'trailer',
] as const;

const WHOLE: readonly string[] = ['length', 'chunks', 'list', 'sign', 'trailer'];

interface SentRequest {
  readonly method: string;
  readonly bytes: string;
  /** True unless the body has another length than it says: what follows may be read as its part. */
  readonly isWhole: boolean;
}

/** Latin-1 text stands for bytes. */
function drawRequest(choice: Choice, made: Ingredients, isLast: boolean) {
  const { below, oneIn, of } = choice;
  const { url, method: usual, path: pattern } = of(made.targets);
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
  const isSignedIn = !oneIn(3);
  if (isSignedIn) lines.push(`Cookie: ${made.cookie}${oneIn(10) ? of(HOSTILE) : ''}`);
  if (oneIn(3)) lines.push(`Authorization: ${oneIn(4) ? of(HOSTILE) : of(made.credentials)}`);
  if (usual === 'POST' && !oneIn(8)) lines.push(`Origin: ${url.origin}`);
  for (let count = oneIn(3) ? 1 + below(3) : 0; count > 0; count -= 1) lines.push(of(HEADERS));
  if (isLast) lines.push('Connection: close');

  // Node does not read what it received together with the request of an upgrade.
  const isUpgrade = lines.some((line) => line.startsWith('Connection: Upgrade'));
  if (usual !== 'POST' && !oneIn(10)) {
    return { method, bytes: `${lines.join('\r\n')}\r\n\r\n`, isWhole: !isUpgrade };
  }
  const kept = made.forms.get(path) ?? [];
  const fields = kept.map(([name, text]) =>
    oneIn(12) ? `${name}=${of(HOSTILE)}` : new URLSearchParams([[name, text]]).toString(),
  );
  fields.push(...pairs(FIELD_NAMES, below(4)));
  let body = fields.join('&');
  if (oneIn(12)) body = of(['{"a":', '[]\n{}', '\0', MARK, 'a'.repeat(60_000), '=&=&&%']);
  if (!oneIn(10)) lines.push('Content-Type: application/x-www-form-urlencoded');
  const framing = of(FRAMINGS);
  const framed = frame(body, framing);
  return {
    method,
    bytes: `${[...lines, ...framed.lines].join('\r\n')}\r\n\r\n${framed.body}`,
    isWhole: !isUpgrade && WHOLE.includes(framing),
  };
}

function frame(body: string, framing: (typeof FRAMINGS)[number]): { lines: readonly string[]; body: string } {
  const { length } = body;
  const chunked = 'Transfer-Encoding: chunked';
  const inChunks = (size: number, extension = ''): string =>
    (body.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [])
      .map((chunk) => `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`)
      .join('');
  switch (framing) {
    case 'length':
      return { lines: [`Content-Length: ${length}`], body };
    case 'chunks':
      return { lines: [chunked], body: `${inChunks(40)}0\r\n\r\n` };
    case 'extension':
      return { lines: [chunked], body: `${inChunks(2_000, `;a="${MARK}"`)}0\r\n\r\n` };
    case 'trailer':
      return { lines: [chunked], body: `${inChunks(2_000)}0\r\nHost: evil.example\r\n\r\n` };
    case 'none':
      return { lines: [], body };
    case 'long':
      return { lines: [`Content-Length: ${length + 9}`], body };
    case 'short':
      return { lines: [`Content-Length: ${Math.max(0, length - 9)}`], body };
    case 'both':
      return { lines: [`Content-Length: ${length}`, chunked], body: `${inChunks(40)}0\r\n\r\n` };
    case 'list':
      return { lines: [`Content-Length: ${length}, ${length}`], body };
    case 'sign':
      return { lines: [`Content-Length: +${length}`], body };
    case 'twice':
      return { lines: [`Content-Length: ${length}`, `Content-Length: ${length + 1}`], body };
    case 'size':
      return { lines: [chunked], body: `${inChunks(40)}fffffffffffffffff\r\n` };
    case 'endless':
      return { lines: [chunked], body: inChunks(40) };
  }
}

/** How a client ends its connection: by `Connection: close`, or by itself after its bytes. */
const ENDINGS = ['close', 'close', 'close', 'close', 'close', 'close', 'half', 'reset', 'cut'];

export interface Connection {
  readonly url: URL;
  readonly requests: readonly SentRequest[];
  /** The bytes, in the pieces in which they are sent. */
  readonly pieces: readonly string[];
  readonly ending: string;
}

/** Returns the connection for these numbers: one list for the connection, then one per request. */
export function drawConnection([own = [], ...others]: readonly (readonly number[])[], made: Ingredients): Connection {
  const choice = createChoice(own);
  const ending = choice.of(ENDINGS);
  const { url } = choice.of(made.targets);
  const targets = made.targets.filter((target) => target.url === url);
  const requests = others.map((numbers, index) =>
    drawRequest(createChoice(numbers), { ...made, targets }, ending === 'close' && index === others.length - 1),
  );
  let text = requests.map(({ bytes }) => bytes).join('');
  if (ending === 'cut') text = text.slice(0, choice.below(text.length + 1));
  const isSplit = choice.oneIn(3);
  const at = isSplit ? choice.below(text.length + 1) : text.length;
  return { url, requests, pieces: [text.slice(0, at), text.slice(at)], ending };
}

interface ReceivedAnswer {
  readonly status: number;
  readonly head: string;
  readonly headers: Headers;
  readonly body: string;
  readonly isComplete: boolean;
}

/** Reads the answers to requests with these methods. @returns also the bytes that are no answer */
function readAnswers(text: string, methods: readonly string[], isClosed: boolean) {
  const answers: ReceivedAnswer[] = [];
  let rest = text;
  for (;;) {
    const [whole, status, lines] = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(rest) ?? [];
    if (whole === undefined || status === undefined || lines === undefined) break;
    rest = rest.slice(whole.length);
    if (status.startsWith('1')) continue;
    const pairs = lines.split('\r\n').filter(Boolean);
    const headers = new Headers(
      pairs.map((line): [string, string] => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      }),
    );
    // A refusal by the listener has a body for HEAD, too: it may not know the method.
    const isHead = methods[answers.length] === 'HEAD' && !/^(?!HTTP)./.test(rest);
    const hasBody = !isHead && status !== '204' && status !== '304';
    const [length, isComplete] = hasBody ? lengthOfBody(rest, headers, isClosed) : [0, true];
    const body = rest.slice(0, length);
    answers.push({ status: Number(status), head: whole, headers, body, isComplete });
    rest = rest.slice(length);
  }
  return { answers, rest };
}

function lengthOfBody(text: string, headers: Headers, isClosed: boolean): [number, boolean] {
  const length = headers.get('content-length');
  if (length !== null) return [Number(length), text.length >= Number(length)];
  if (headers.get('transfer-encoding') !== 'chunked') return [text.length, isClosed];
  let at = 0;
  for (;;) {
    const end = text.indexOf('\r\n', at);
    const size = Number.parseInt(text.slice(at, end), 16);
    if (end < 0 || Number.isNaN(size) || end + size + 4 > text.length) return [text.length, false];
    at = end + size + 4;
    if (size === 0) return [at, true];
  }
}

/** Time for an answer to bytes of which the client cannot know whether they are a whole request. */
const UNSURE_MS = 20;

/** Sends the connection. @returns what is wrong with the answers; an empty list if nothing is */
export async function tryConnection(connection: Connection): Promise<string[]> {
  const { url, requests, pieces, ending } = connection;
  const broken = requests.findIndex(({ isWhole }) => !isWhole);
  const due = broken < 0 ? requests.length : broken;
  const methods = requests.map(({ method }) => method);
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
  let unsure: NodeJS.Timeout | undefined;
  const look = (): void => {
    const { answers } = readAnswers(received, methods, false);
    const last = answers.at(-1);
    if (last?.headers.get('content-type')?.startsWith('text/event-stream')) stop();
    const isDone = ending === 'close' && broken >= 0 && answers.length >= due;
    if (isDone && last?.isComplete !== false) unsure ??= setTimeout(stop, UNSURE_MS);
  };
  // The system resets a connection that is closed before all was read: an answer may be lost.
  socket.on('error', stop);
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    look();
  });
  for (const piece of pieces) {
    if (piece === '') continue;
    socket.write(piece, 'latin1');
    await nextTurn();
  }
  if (ending === 'half' || ending === 'cut') socket.end();
  if (ending === 'reset') socket.resetAndDestroy();
  look();
  await closed;
  clearTimeout(limit);
  clearTimeout(unsure);

  const { answers, rest } = readAnswers(received, methods, true);
  const problems = answers.flatMap(problemsOf);
  // CONNECT ends the connection at once, also in the middle of an earlier answer.
  if (methods.includes('CONNECT')) isOver = true;
  if (rest !== '' && !isOver) problems.push(`bytes that are no answer: ${JSON.stringify(rest.slice(0, 200))}`);
  const isCutOff = answers.slice(0, due).some(({ isComplete }) => !isComplete);
  const isClosing = answers.at(-1)?.headers.get('connection') === 'close';
  if (ending === 'close' && !isOver && (isCutOff || (answers.length < due && !isClosing))) {
    problems.push(`answers ${answers.map(({ status }) => status)} to ${due} requests`);
  }
  if (isLate) problems.push('the connection stays open');
  return problems;
}

function problemsOf({ status, head, headers, body }: ReceivedAnswer): string[] {
  const problems: string[] = [];
  // A store that is away, or passwords that cannot be hashed now, are the only documented ones.
  const isForLater = status === 503 && headers.has('retry-after');
  if (status >= 500 && !isForLater) problems.push(`status ${status}: ${body.slice(0, 200)}`);
  if (headers.has('x-fuzz')) problems.push('a header of the request');
  if (!/^req_[0-9a-f]{16}$/.test(headers.get('x-request-id') ?? '')) problems.push('no reference');
  if (headers.get('x-content-type-options') !== 'nosniff') problems.push('no nosniff');
  if (/[^\r\n\x20-\x7e]/.test(head)) problems.push(`bytes in headers: ${JSON.stringify(head)}`);
  const isHtml = headers.get('content-type')?.includes('html');
  const place = isHtml ? body.search(/<fuzz|fuzz["']/i) : -1;
  if (place >= 0) problems.push(`unescaped: ${body.slice(Math.max(0, place - 80), place + 20)}`);
  return problems.map((problem) => `${problem} (${status} of ${headers.get('x-request-id')})`);
}
