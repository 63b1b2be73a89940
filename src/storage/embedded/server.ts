/** Serves PostgreSQL on a Unix socket: its connections take turns to use the one PGlite session. */
import { createServer, type Socket } from 'node:net';
import type { PGlite } from '@electric-sql/pglite';
import { STOPPED_INSIDE } from '../storage-unavailable.ts';

/** Calls `listener` with the payload of each NOTIFY on `channel`, as soon as it is committed. */
export type Listen = (channel: string, listener: (payload: string) => void) => Promise<void>;

export type EmbeddedServer = Awaited<ReturnType<typeof serveOnSocket>>;

/** A service and a few commands together stay below this limit. PGlite serves only one connection at a time. */
const MAX_CONNECTIONS = 40;

/** How long a transaction may wait for its process: a stopped process would block all others. */
const MAX_IDLE_MS = 10_000;

/**
 * Serves the database to every process with permission to open the socket.
 *
 * All connections share one database session, with one unnamed statement and one transaction. So a connection has this
 * session for itself from its first message until the session is idle again. The messages of a connection reach PGlite
 * together, without messages of other connections in between. (The package pglite-socket forwards messages one by one,
 * so one connection's statement can run with another's values: electric-sql/pglite#1046.)
 */
export async function serveOnSocket(db: PGlite, socketPath: string, maxIdleMs = MAX_IDLE_MS) {
  const session = createSession(db);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    attend(socket, session, maxIdleMs);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  return {
    get connections() {
      return sockets.size;
    },
    /** Must be called only once for each channel. */
    listen: session.listen,
    /** Closes the socket and the remaining connections. */
    async close(): Promise<void> {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
      await session.end();
    },
  };
}

type Session = ReturnType<typeof createSession>;

function createSession(db: PGlite) {
  const waiting: { connection: symbol; begin: () => void }[] = [];
  const listeners = new Map<string, (payload: string) => void>();
  let holder: symbol | undefined;

  const passTurn = (): void => {
    const next = waiting.shift();
    holder = next?.connection;
    next?.begin();
  };

  async function execute(messages: Buffer): Promise<Buffer> {
    const parts: Buffer[] = [];
    await db.execProtocolRawStream(messages, {
      onRawData: (bytes) => void parts.push(Buffer.from(bytes)),
    });
    // Remove the statement's own notifications, which PGlite adds to the answer.
    return withoutNotifications(Buffer.concat(parts), (channel, payload) => listeners.get(channel)?.(payload));
  }

  /** Waits for the turn of `connection`; resolves at once if it already has the turn. */
  function takeTurn(connection: symbol): Promise<void> {
    if (holder === connection) return Promise.resolve();
    const turn = new Promise<void>((begin) => waiting.push({ connection, begin }));
    if (holder === undefined) passTurn();
    return turn;
  }

  /** Executes messages for the connection that has the turn. The turn ends when the database session is idle. */
  async function run(connection: symbol, messages: Buffer): Promise<Buffer> {
    const answer = await execute(messages);
    if (holder === connection && isIdle(answer)) passTurn();
    return answer;
  }

  return {
    takeTurn,
    run,
    isHeldBy: (connection: symbol): boolean => holder === connection,

    async listen(channel: string, listener: (payload: string) => void): Promise<void> {
      listeners.set(channel, listener);
      const own = Symbol('listen');
      await takeTurn(own);
      await run(own, simpleQuery(`LISTEN ${channel}`));
    },

    /** Rolls back an unfinished transaction of the connection. */
    async leave(connection: symbol): Promise<void> {
      if (holder !== connection) return;
      await execute(ABANDON).finally(passTurn);
    },

    /** Stops all further runs, and resolves when the last one has finished. */
    async end(): Promise<void> {
      await takeTurn(Symbol('end'));
    },
  };
}

function attend(socket: Socket, session: Session, maxIdleMs: number): void {
  const connection = Symbol('connection');
  const read = createReader();
  let work = Promise.resolve();
  let idle: NodeJS.Timeout | undefined;
  const next = (step: () => Promise<void>): void => {
    // If a step fails, PGlite itself has failed: close the connection of the client.
    work = work.then(step).catch(() => void socket.destroy());
  };

  async function answer(messages: Buffer): Promise<void> {
    if (messages === ENCRYPTION) {
      socket.write('N');
      return;
    }
    await session.takeTurn(connection);
    watch(false);
    // Skip the messages if the client has disconnected. The client's turn then ends in `leave`.
    if (!socket.destroyed) socket.write(await session.run(connection, messages));
    watch(session.isHeldBy(connection) && !socket.destroyed);
  }

  function watch(isInTransaction: boolean): void {
    clearTimeout(idle);
    idle = isInTransaction ? setTimeout(giveUp, maxIdleMs).unref() : undefined;
  }

  function giveUp(): void {
    socket.write(STOPPED_TOO_LONG);
    socket.destroy();
  }

  socket.on('error', () => {});
  socket.on('data', (bytes) => {
    if (idle) watch(true);
    try {
      for (const messages of read(bytes)) next(() => answer(messages));
    } catch {
      // Disconnect: the client does not speak the protocol of PostgreSQL.
      socket.destroy();
    }
  });
  socket.on('close', () => {
    watch(false);
    next(() => session.leave(connection));
  });
}

/** The reader returns this value for an encryption request, which a client may send before it opens the connection. */
const ENCRYPTION = Buffer.alloc(0);
const ENCRYPTION_CODES = [80_877_103, 80_877_104];
const CANCEL_CODE = 80_877_102;

/** Query, Sync, FunctionCall, Flush, CopyDone, CopyFail: after any of these a client awaits answers. */
const LAST_OF_EXCHANGE = new Set([...'QSFHcf'].map((type) => type.charCodeAt(0)));
const TERMINATE = 'X'.charCodeAt(0);

/**
 * Reassembles the messages of a connection.
 *
 * @returns a function that takes the next bytes and returns the exchanges that are now complete. An exchange ends where
 * the client waits for answers.
 */
function createReader(): (bytes: Buffer) => Buffer[] {
  let received: Buffer = Buffer.alloc(0);
  let isOpened = false;

  return (bytes) => {
    const complete: Buffer[] = [];
    received = Buffer.concat([received, bytes]);
    let begin = 0;
    let end = 0;
    for (;;) {
      // Only messages that open a connection have no type before their length.
      const message = messageAt(received, end, isOpened ? 1 : 0);
      if (!message) break;
      end += message.length;
      if (isOpened) {
        const [type = 0] = message;
        if (LAST_OF_EXCHANGE.has(type)) complete.push(received.subarray(begin, end));
        else if (type !== TERMINATE) continue;
      } else {
        const code = message.readUInt32BE(4);
        isOpened = code !== CANCEL_CODE && !ENCRYPTION_CODES.includes(code);
        if (isOpened) complete.push(message);
        else if (code !== CANCEL_CODE) complete.push(ENCRYPTION);
      }
      begin = end;
    }
    received = received.subarray(begin);
    return complete;
  };
}

function messageAt(bytes: Buffer, start: number, typeLength: 0 | 1): Buffer | undefined {
  const lengthAt = start + typeLength;
  if (bytes.length < lengthAt + 4) return undefined;
  const end = lengthAt + bytes.readUInt32BE(lengthAt);
  return end <= bytes.length ? bytes.subarray(start, end) : undefined;
}

function messageOf(type: string, text: string): Buffer {
  const message = Buffer.from(`${type}\0\0\0\0${text}\0`, 'latin1');
  message.writeUInt32BE(message.length - 1, 1);
  return message;
}

const simpleQuery = (sql: string): Buffer => messageOf('Q', sql);

const STOPPED_TOO_LONG = messageOf(
  'E',
  `SFATAL\0C${STOPPED_INSIDE}\0Mterminating connection due to idle-in-transaction timeout\0`,
);

/** The Sync ends an exchange that the client may have sent only in part. The ROLLBACK ends the client's transaction. */
const ABANDON = Buffer.concat([Buffer.from('S\0\0\0\x04', 'latin1'), simpleQuery('ROLLBACK')]);
/** ReadyForQuery, outside a transaction: the last message of a finished exchange. */
const IDLE = Buffer.from('Z\0\0\0\x05I', 'latin1');

const isIdle = (answer: Buffer): boolean => answer.subarray(-IDLE.length).equals(IDLE);

/** NotificationResponse: the process that notified (4 bytes), the channel, the payload. */
const NOTIFICATION = 'A'.charCodeAt(0);

/**
 * @param answer whole messages of the PostgreSQL protocol.
 * @param notify called for each notification, before the client learns that its statement is done.
 * @returns the other messages.
 */
function withoutNotifications(answer: Buffer, notify: (channel: string, payload: string) => void): Buffer {
  const others: Buffer[] = [];
  let begin = 0;
  for (let at = 0; at < answer.length; ) {
    const end = at + 1 + answer.readUInt32BE(at + 1);
    if (answer[at] === NOTIFICATION) {
      const [channel = '', payload = ''] = answer.toString('utf8', at + 9, end).split('\0');
      notify(channel, payload);
      others.push(answer.subarray(begin, at));
      begin = end;
    }
    at = end;
  }
  return begin === 0 ? answer : Buffer.concat([...others, answer.subarray(begin)]);
}
