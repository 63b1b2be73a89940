/** All connections of one node, which break permanently after a chosen call of a store. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../support/programs.ts';

/**
 * Kills a node that runs in this process: from its death on, nothing that the node still sends
 * reaches a store or a client. A call is one exchange with PostgreSQL or one command for Redis, in
 * the order in which they are sent. The connection of the change feed is cut too, but not counted.
 */
export interface Lifeline {
  /** Kills the node when this many more calls are carried out, before it receives the last answer. */
  dieAfter(calls: number): void;
  /** How many calls were let through since then. */
  readonly calls: number;
  /** Which of these calls may have changed what other nodes read, counted from 1. */
  readonly changes: readonly number[];
  /** Kills the node now. */
  cut(): void;
  /** Resolves when the node is killed. */
  readonly death: Promise<void>;
  /** Lets the calls of the next node through. The killed node must be closed before. */
  restart(): void;
  close(): Promise<void>;
}

interface Fate {
  /** Decides about the next call. After `last`, call `die` when that call is carried out. */
  next(isChange: boolean): 'pass' | 'last' | 'drop';
  readonly isDead: boolean;
  die(): void;
}

/** @param onDeath closes all connections. */
function createFate(onDeath: () => void): Fate & Omit<Lifeline, 'close'> {
  let left = Number.POSITIVE_INFINITY;
  let calls = 0;
  let changes: number[] = [];
  let isDead = false;
  let death = Promise.withResolvers<void>();
  const die = (): void => {
    if (isDead) return;
    isDead = true;
    onDeath();
    death.resolve();
  };
  return {
    next(isChange) {
      if (isDead || left === 0) return 'drop';
      left -= 1;
      calls += 1;
      if (isChange) changes.push(calls);
      return left === 0 ? 'last' : 'pass';
    },
    get isDead() {
      return isDead;
    },
    get calls() {
      return calls;
    },
    get changes() {
      return [...changes];
    },
    get death() {
      return death.promise;
    },
    die,
    cut: die,
    dieAfter(more) {
      left = more;
      calls = 0;
      changes = [];
    },
    restart() {
      left = Number.POSITIVE_INFINITY;
      isDead = false;
      death = Promise.withResolvers();
    },
  };
}

/**
 * Puts a proxy in front of each server.
 *
 * @param urls of the stores of the node, and of the node itself.
 * @returns the lifeline, with the same URLs through the proxies.
 */
export async function createLifeline<Urls extends Readonly<Record<string, string>>>(
  urls: Urls,
): Promise<Lifeline & { readonly urls: Urls }> {
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const fate = createFate(() => {
    for (const socket of sockets) socket.destroy();
  });

  async function proxyTo({ protocol, hostname, port }: URL): Promise<number> {
    const createProtocol = PROTOCOLS[protocol];
    const server = createServer((client) => {
      if (fate.isDead) return void client.destroy();
      const upstream = connect(Number(port), hostname);
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => {
          sockets.delete(socket);
          client.destroy();
          upstream.destroy();
        });
      }
      if (createProtocol) pass(client, upstream, createProtocol(), fate);
      else client.pipe(upstream).pipe(client);
    });
    const own = await freePort();
    await new Promise<void>((resolve) => server.listen(own, '127.0.0.1', resolve));
    servers.push(server);
    return own;
  }

  const proxied: Record<string, string> = {};
  for (const [name, url] of Object.entries(urls)) {
    const port = await proxyTo(new URL(url));
    proxied[name] = url.replace(/:\d+(?=\/|$)/, `:${port}`);
  }
  return Object.assign(fate, {
    urls: proxied as Urls,
    async close() {
      fate.cut();
      await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
    },
  });
}

function pass(client: Socket, upstream: Socket, protocol: Protocol, fate: Fate): void {
  let received: Buffer = Buffer.alloc(0);
  let isLast = false;
  let answered = Buffer.alloc(0);
  client.on('data', (bytes) => {
    received = Buffer.concat([received, bytes]);
    for (;;) {
      const call = protocol.callAt(received);
      if (!call) return;
      const bytesOfCall = received.subarray(0, call.length);
      received = received.subarray(call.length);
      const next = call.isCounted ? fate.next(call.isChange) : 'pass';
      if (next === 'drop' || isLast) continue;
      isLast = next === 'last';
      upstream.write(isLast ? protocol.asLast(bytesOfCall) : bytesOfCall);
    }
  });
  upstream.on('data', (bytes) => {
    if (!isLast) {
      client.write(bytes);
      return;
    }
    answered = Buffer.concat([answered, bytes]);
    if (protocol.isDone(answered)) fate.die();
  });
}

interface Protocol {
  /** The first call in these bytes; undefined if it is incomplete. */
  callAt(
    bytes: Buffer,
  ): { readonly length: number; readonly isCounted: boolean; readonly isChange: boolean } | undefined;
  /** The call, with the state that `isDone` needs to recognize the answer. */
  asLast(call: Buffer): Buffer;
  /** True if these bytes contain the end of the answer to the last call that was counted. */
  isDone(answers: Buffer): boolean;
}

const [QUERY, SYNC, TERMINATE] = [...'QSX'].map((type) => type.charCodeAt(0));
/** The bytes of ReadyForQuery without the last one, which is the state of the transaction. */
const READY = Buffer.from('Z\0\0\0\x05', 'latin1');

const FIRST_WORDS = /BEGIN|COMMIT|ROLLBACK|SELECT|INSERT|UPDATE|DELETE|WITH/;

/** A call is everything that a client sends up to a Query or Sync. */
function POSTGRES(): Protocol {
  let isOpened = false;
  let isFeed = false;
  let isInside = false;
  return {
    callAt(bytes) {
      let end = 0;
      for (;;) {
        // Only the first message of a connection has no type before its length.
        const lengthAt = end + (isOpened ? 1 : 0);
        if (bytes.length < lengthAt + 4) return undefined;
        const type = bytes[end];
        end = lengthAt + bytes.readUInt32BE(lengthAt);
        if (bytes.length < end) return undefined;
        if (!isOpened) {
          isOpened = true;
          isFeed = bytes.includes('gatehouse changes');
          return { length: end, isCounted: false, isChange: false };
        }
        if (type === TERMINATE) return { length: end, isCounted: false, isChange: false };
        if (type !== QUERY && type !== SYNC) continue;
        // The text is absent if the statement was prepared before.
        const [statement = ''] = bytes.toString('latin1', 0, 500).match(FIRST_WORDS) ?? [];
        if (statement === 'BEGIN') isInside = true;
        if (statement === 'COMMIT' || statement === 'ROLLBACK') isInside = false;
        return { length: end, isCounted: !isFeed, isChange: !isInside && !/SELECT|ROLLBACK/.test(statement) };
      }
    },
    asLast: (call) => call,
    isDone: (answers) => answers.subarray(-READY.length - 1, -1).equals(READY),
  };
}

/** A text that Redis is made to echo after the last command. */
const MARKER = 'the last command is carried out';

/** RESP: a command is an array of bulk strings. */
function REDIS(): Protocol {
  return {
    callAt(bytes) {
      const lineEnd = (from: number): number => bytes.indexOf('\r\n', from);
      const numberAt = (from: number, to: number): number => Number(bytes.toString('latin1', from + 1, to));
      const head = lineEnd(0);
      if (head < 0) return undefined;
      let end = head + 2;
      for (let left = numberAt(0, head); left > 0; left -= 1) {
        const eol = lineEnd(end);
        if (eol < 0) return undefined;
        end = eol + 2 + numberAt(end, eol) + 2;
      }
      const isChange = !/^\*\d+\r\n\$\d+\r\n(m?get|exists)\r\n/i.test(bytes.toString('latin1', 0, 40));
      return end <= bytes.length ? { length: end, isCounted: true, isChange } : undefined;
    },
    asLast: (call) => Buffer.concat([call, Buffer.from(`*2\r\n$4\r\nECHO\r\n$${MARKER.length}\r\n${MARKER}\r\n`)]),
    isDone: (answers) => answers.includes(MARKER),
  };
}

const PROTOCOLS: Readonly<Record<string, () => Protocol>> = {
  'postgres:': POSTGRES,
  'redis:': REDIS,
};
