/** A TCP proxy that a test can redirect, silence, delay, or break at a chosen byte. */
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../support/programs.ts';

export interface TcpProxy {
  readonly port: number;
  /** Sets the port to which new connections lead. */
  leadTo(port: number): void;
  /** Lets each answer arrive this many milliseconds later. */
  delay(ms: number): void;
  /** Stops the traffic: existing connections stay open but carry no more data. */
  silence(): void;
  /** Breaks all connections. */
  breakAll(): void;
  /** Drops notifications of PostgreSQL from now on, as some poolers do, but passes answers on. */
  swallowNotifications(): void;
  /**
   * Breaks one connection, at the first answer to a request that contains `request`.
   *
   * @param passed returns how many bytes of the answer are still passed on.
   */
  breakAnswerTo(request: string, passed?: (answer: Buffer) => number): Promise<void>;
  /** Delays the first matching request, or its answer, and all that follows on the connection. */
  hold(request: RegExp, what?: 'request' | 'answer'): { readonly held: Promise<void>; release(): void };
  close(): Promise<void>;
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const port = await freePort();
  let leadsTo = target;
  let sabotage: Sabotage | undefined;
  let holding: { request: RegExp; what: string; reached: () => void; released: Promise<void> } | undefined;
  const pairs = new Set<readonly [Socket, Socket]>();
  let isSwallowing = false;
  let delayMs = 0;

  const server = createServer((client) => {
    const upstream = connect(leadsTo, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const end = (): void => {
      for (const socket of pair) socket.destroy();
      pairs.delete(pair);
    };
    let isMarked = false;
    let beforeAnswer: { reached: () => void; released: Promise<void> } | undefined;
    client.on('data', (bytes) => {
      isMarked ||= sabotage !== undefined && bytes.includes(sabotage.request);
      if (!holding?.request.test(bytes.toString())) {
        upstream.write(bytes);
        return;
      }
      const { what, reached, released } = holding;
      holding = undefined;
      if (what === 'answer') {
        beforeAnswer = { reached, released };
        upstream.write(bytes);
        return;
      }
      client.pause();
      void released.then(() => {
        upstream.write(bytes);
        client.resume();
      });
      reached();
    });
    const swallow = createNotificationFilter();
    let sending: Promise<void> | undefined;
    function send(bytes: Buffer): void {
      if (delayMs === 0 && !sending) return void client.write(bytes);
      const due = performance.now() + delayMs;
      // In order, even after the delay was made shorter.
      sending = (sending ?? Promise.resolve())
        .then(() => wait(Math.max(0, due - performance.now())))
        .then(() => void client.write(bytes));
    }
    upstream.on('data', (answer) => {
      const bytes = isSwallowing ? swallow(answer) : answer;
      if (beforeAnswer) {
        const { reached, released } = beforeAnswer;
        beforeAnswer = undefined;
        upstream.pause();
        void released.then(() => {
          client.write(bytes);
          upstream.resume();
        });
        reached();
        return;
      }
      if (!isMarked || !sabotage) {
        send(bytes);
        return;
      }
      const { passed, done } = sabotage;
      sabotage = undefined;
      client.write(bytes.subarray(0, passed(bytes)), end);
      done();
    });
    for (const socket of pair) socket.on('error', end).on('close', end);
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));

  function breakAll(): void {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  }

  return {
    port,
    breakAll,
    leadTo(next) {
      leadsTo = next;
    },
    delay(ms) {
      delayMs = ms;
    },
    silence() {
      for (const pair of pairs) {
        for (const socket of pair) socket.removeAllListeners('data').resume();
      }
    },
    swallowNotifications() {
      isSwallowing = true;
    },
    breakAnswerTo: (request, passed = () => 0) =>
      new Promise((done) => {
        sabotage = { request, passed, done };
      }),
    hold(request, what = 'request') {
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const { promise: held, resolve: reached } = Promise.withResolvers<void>();
      holding = { request, what, reached, released };
      return { held, release };
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      breakAll();
      await closed;
    },
  };
}

/** A PostgreSQL message is one byte for its kind, then its length without that byte. */
const KIND_LENGTH = 1;
const HEAD_LENGTH = 5;
const NOTIFICATION = 'A'.charCodeAt(0);

/** @returns a filter that removes the notifications from the bytes that a server sends. */
function createNotificationFilter(): (bytes: Buffer) => Buffer {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    const passed: Buffer[] = [];
    while (rest.length >= HEAD_LENGTH) {
      const length = KIND_LENGTH + rest.readInt32BE(KIND_LENGTH);
      if (rest.length < length) break;
      if (rest[0] !== NOTIFICATION) passed.push(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
    return Buffer.concat(passed);
  };
}

interface Sabotage {
  readonly request: string;
  readonly passed: (answer: Buffer) => number;
  readonly done: () => void;
}
