/** All connections of one node, which break permanently after a chosen call of a store. */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from '../support/programs.ts';

/**
 * Kills a node that runs in this process: from its death on, nothing that the node still sends reaches a store or a
 * client. A call is what the node sends to PostgreSQL at once, or one command for Redis, in the order in which they are
 * sent. The connection of the change feed is cut too, but not counted.
 */
export interface Lifeline {
  /** Kills the node when this many more calls are answered, before it receives the last answer. */
  dieAfter(calls: number): void;
  /** Which of the calls since then may have changed what other nodes read, counted from 1. */
  readonly changes: readonly number[];
  /** Kills the node now. */
  cut(): void;
  /** Resolves when the node is killed. */
  readonly death: Promise<void>;
  /** Lets the calls of the next node through. The killed node must be closed before. */
  restart(): void;
  close(): Promise<void>;
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
  let left = Number.POSITIVE_INFINITY;
  let calls = 0;
  let changes: number[] = [];
  let isDead = false;
  let death = Promise.withResolvers<void>();
  const cut = (): void => {
    isDead = true;
    for (const socket of sockets) socket.destroy();
    death.resolve();
  };

  async function proxyTo({ protocol, hostname, port }: URL): Promise<number> {
    const server = createServer((client) => {
      if (isDead) return void client.destroy();
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
      const kindOf = KINDS[protocol]?.();
      const isRedis = protocol === 'redis:';
      let isLast = false;
      const pass = (call: Buffer): void => {
        const kind = kindOf?.(call.toString('latin1', 0, 500)) ?? 'uncounted';
        // What follows on a connection to PostgreSQL may be the rest of the last call.
        if (kind !== 'uncounted' && (isRedis || !isLast)) {
          if (left === 0) return;
          left -= 1;
          calls += 1;
          if (kind === 'change') changes.push(calls);
          isLast = left === 0;
        }
        upstream.write(call);
        if (isRedis && isLast) upstream.write(ECHO);
      };
      let received: Buffer = Buffer.alloc(0);
      client.on('data', (bytes) => {
        if (!isRedis) return pass(bytes);
        received = Buffer.concat([received, bytes]);
        for (let end = endOfCommand(received); end > 0; end = endOfCommand(received)) {
          pass(received.subarray(0, end));
          received = received.subarray(end);
        }
      });
      let answers = '';
      upstream.on('data', (bytes) => {
        if (!isLast) return void client.write(bytes);
        answers += bytes.toString('latin1');
        // The calls before the last one on a connection to Redis may not be answered yet.
        if (!isRedis || answers.includes(MARKER)) cut();
      });
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
  return {
    urls: proxied as Urls,
    cut,
    get changes() {
      return [...changes];
    },
    get death() {
      return death.promise;
    },
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
    async close() {
      cut();
      await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
    },
  };
}

/** A text that Redis is made to echo after the last command. */
const MARKER = 'the last command is carried out';
const ECHO = `*2\r\n$4\r\nECHO\r\n$${MARKER.length}\r\n${MARKER}\r\n`;

/** Returns the length of the first command of Redis in these bytes, an array of bulk strings; 0 if it is incomplete. */
function endOfCommand(bytes: Buffer): number {
  let end = 0;
  /** Returns the number in the line that begins at `end`, and moves `end` behind the line. */
  const numberOfLine = (): number => {
    const eol = bytes.indexOf('\r\n', end);
    const number = eol < 0 ? Number.NaN : Number(bytes.toString('latin1', end + 1, eol));
    end = eol + 2;
    return number;
  };
  let left = numberOfLine();
  for (; left > 0; left -= 1) {
    const length = numberOfLine();
    end += length + 2;
    if (Number.isNaN(length) || end > bytes.length) return 0;
  }
  return left === 0 ? end : 0;
}

type Kind = 'change' | 'read' | 'uncounted';

const FIRST_WORDS = /BEGIN|COMMIT|ROLLBACK|SELECT|INSERT|UPDATE|DELETE|WITH/;

/** For each connection a function that says what the calls on it do, by the begin of what is sent. */
const KINDS: Readonly<Record<string, () => (sent: string) => Kind>> = {
  'postgres:': () => {
    let isOpened = false;
    let isFeed = false;
    let isInside = false;
    return (sent) => {
      // The first message of a connection names it.
      if (!isOpened) isFeed = sent.includes('gatehouse changes');
      const isCounted = isOpened && !isFeed && !sent.startsWith('X');
      isOpened = true;
      if (!isCounted) return 'uncounted';
      // The text is absent if the statement was prepared before.
      const [statement = ''] = FIRST_WORDS.exec(sent) ?? [];
      if (statement === 'BEGIN') isInside = true;
      if (statement === 'COMMIT' || statement === 'ROLLBACK') isInside = false;
      return isInside || /SELECT|ROLLBACK/.test(statement) ? 'read' : 'change';
    };
  },
  'redis:': () => (sent) => (/^\*\d+\r\n\$\d+\r\n(m?get|exists)\r\n/i.test(sent) ? 'read' : 'change'),
};
