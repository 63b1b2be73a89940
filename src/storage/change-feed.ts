/** Announces changes of the database to every node, so that nodes can remove outdated values from their caches. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { OpenDatabase } from './database.ts';
import type { Listen } from './embedded/server.ts';
import { createEchoes } from './notification-echoes.ts';
import type { Queries } from './queries.ts';

/** The subject of a change. `everything` means that changes may have been missed. */
export type ChangeTopic =
  | 'clients'
  | 'accounts'
  | 'access'
  | 'api-keys'
  | 'connections'
  /** The organizations that block a client. The key is the id of the client. */
  | 'bars'
  /** The statement that records the end of an authorization also announces the end. */
  | 'authorizations'
  /** The public ids of API keys, by which resource servers know the keys. */
  | 'api-key-ids'
  | 'organizations'
  | 'everything';

/**
 * @param key names what changed. It is the id of an account, client (also if its access changed) or organization, or
 *   the hash or the id of an API key. For a connection it is account and client, and for an authorization account and
 *   id, with a space between. It is empty for `everything`.
 */
type ChangeListener = (topic: ChangeTopic, key: string) => void;

/** A time by the clock of the database server. Changes may be announced up to a second after they were made. */
export interface FeedPosition {
  /** A value that changes when the database server restarts. Only positions with the same value can be compared. */
  readonly server: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
}

/**
 * Provides PostgreSQL's NOTIFY as events. While `isLive` is false, changes are not announced, so caches must ask the
 * database every time. It is false after a lost connection, and in an operator command.
 */
export interface ChangeFeed {
  /** True if all changes that were committed more than 950 milliseconds ago have been received. */
  readonly isLive: boolean;
  /**
   * All changes until this time have been received. Undefined if the feed is not live, or if the database runs in this
   * process. Positions of different nodes can be compared.
   */
  readonly position: FeedPosition | undefined;
  /** Calls `listener` after each committed change of any node, including this node. */
  onChange(listener: ChangeListener): void;
  /** Calls `listener` with each text of `sendToAllNodes`. Texts are lost while the feed is not live. */
  onMessage(listener: (text: string) => void): void;
  /** Announces a change on this node only, before the database's notification arrives. */
  announce(topic: ChangeTopic, key: string): void;
  /** Announces `everything`, for an operator who knows of a change that was not announced. */
  announceEverything(): void;
  close(): Promise<void>;
}

/** The triggers of the schema use this name. */
const CHANNEL = 'gatehouse_named_changes';
/** A separate channel, because each message on `CHANNEL` clears cached values. */
const MESSAGES = 'gatehouse_messages';
/** Time from the start of a round trip on the listening connection to the start of the next. */
const ROUND_TRIP_INTERVAL_MS = 250;
/** If a round trip takes longer, notifications may be late as well, so that the feed is no longer live. */
const MAX_ROUND_TRIP_MS = 700;
const CONNECT_TIMEOUT_MS = 1_000;
const RETRY_PAUSE_MS = 500;
const POSITION_SQL = `SELECT floor(extract(epoch FROM pg_postmaster_start_time()) * 1000)::float8 AS server,
  floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time`;

/**
 * Returns an SQL expression that notifies every node when the transaction commits.
 * @param use adds a parameter to the statement and returns its placeholder
 */
export const announcementSql = (topic: ChangeTopic, key: string, use: (value: string) => string): string =>
  `pg_notify('${CHANNEL}', ${use(`${topic} ${key}`)})`;

/** Sends a text to every node without storing the text. @param text at most 7,999 bytes, without NUL */
export const sendToAllNodes = (queries: Queries, text: string): Promise<unknown> =>
  queries.query('SELECT pg_notify($1, $2)', [MESSAGES, text]);

/** A feed that announces nothing, so nothing is cached. Operator commands use it: they end too soon for a cache. */
export const silentChangeFeed: ChangeFeed = {
  isLive: false,
  position: undefined,
  onChange: () => {},
  onMessage: () => {},
  announce: () => {},
  announceEverything: () => {},
  close: async () => {},
};

/**
 * Listens until closed. Uses a separate connection, unless the database runs in this process.
 * @param timeoutFactor multiplies the timeouts, for tests on a busy machine
 */
export async function listenForChanges(database: OpenDatabase, timeoutFactor = 1): Promise<ChangeFeed> {
  if (!database.embedded) return listenOnConnection(database, timeoutFactor);
  return database.listen ? listenHere(database.listen) : silentChangeFeed;
}

/** The feed is live until it is closed, because this process sees each change before its statement returns. */
async function listenHere(listen: Listen): Promise<ChangeFeed> {
  const { hear, receive, ...listeners } = createListeners();
  let isLive = true;
  await listen(CHANNEL, hear);
  await listen(MESSAGES, receive);
  return {
    get isLive() {
      return isLive;
    },
    position: undefined,
    ...listeners,
    async close() {
      isLive = false;
    },
  };
}

/** Reconnects whenever the connection fails. Resolves after the first attempt, even if it failed. */
async function listenOnConnection(database: OpenDatabase, timeoutFactor: number): Promise<ChangeFeed> {
  const { hear, receive, ...listeners } = createListeners();
  const { announceEverything } = listeners;
  const maxRoundTrip = MAX_ROUND_TRIP_MS * timeoutFactor;
  const maxDelay = ROUND_TRIP_INTERVAL_MS + maxRoundTrip;
  const closing = new AbortController();
  /**
   * The time at which the feed stops being live (`performance.now()`). A flag that a timer clears would be too late,
   * because a process that was stalled may handle a request before the timer fires.
   */
  let liveUntil = Number.NEGATIVE_INFINITY;
  const isLive = (): boolean => performance.now() <= liveUntil;
  let position: FeedPosition | undefined;

  /** Rejects when the connection fails. */
  async function listenOnce(onReady: () => void): Promise<void> {
    const client = new pg.Client({
      ...database.connection,
      application_name: 'gatehouse changes',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS * timeoutFactor,
      query_timeout: maxRoundTrip,
    });
    const echoes = createEchoes(database);
    const over = new AbortController();

    /** Returns the time at which the round trip began (`performance.now()`). */
    async function makeRoundTrip(): Promise<number> {
      const sentAt = performance.now();
      const sentEchoes = echoes.sent;
      // PostgreSQL sends all earlier notifications before the answer to this query.
      const { rows } = await client.query<FeedPosition>(POSITION_SQL);
      if (echoes.heard < sentEchoes) throw new Error('notifications do not arrive');
      // If this process was stalled, the answer may be read before the timeout is checked.
      if (performance.now() - sentAt > maxRoundTrip) throw new Error('PostgreSQL answered too late');
      position = rows[0];
      return sentAt;
    }

    try {
      const lost = new Promise<never>((_, reject) => {
        client.on('error', reject);
        client.on('end', () => reject(new Error('connection ended')));
      });
      lost.catch(() => {});
      client.on('notification', ({ channel, payload }) => {
        if (channel === echoes.channel) echoes.hear(payload);
        else if (channel === MESSAGES) receive(payload ?? '');
        else hear(payload ?? 'everything');
      });
      await Promise.race([client.connect(), lost]);
      await client.query(`LISTEN ${CHANNEL}; LISTEN ${MESSAGES}; LISTEN ${echoes.channel}`);
      await echoes.send();
      let sentAt = await makeRoundTrip();
      // Changes may have been missed until now, so clear all caches before the feed is live.
      announceEverything();
      liveUntil = sentAt + maxDelay;
      void echoes.repeat(over.signal);
      onReady();
      for (;;) {
        const pause = Math.max(0, sentAt + ROUND_TRIP_INTERVAL_MS - performance.now());
        await Promise.race([delay(pause, undefined, { signal: closing.signal }), lost]);
        if (performance.now() > liveUntil) throw new Error('this process was stalled');
        sentAt = await makeRoundTrip();
        liveUntil = sentAt + maxDelay;
      }
    } finally {
      over.abort();
      liveUntil = Number.NEGATIVE_INFINITY;
      announceEverything();
      client.end().catch(() => {});
    }
  }

  async function keepListening(onReady: () => void): Promise<void> {
    while (!closing.signal.aborted) {
      await listenOnce(onReady).catch(() => {});
      onReady();
      await delay(RETRY_PAUSE_MS, undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  let done: Promise<void> = Promise.resolve();
  await new Promise<void>((resolve) => {
    done = keepListening(resolve);
  });
  return {
    get isLive() {
      return isLive();
    },
    get position() {
      return isLive() ? position : undefined;
    },
    ...listeners,
    async close() {
      closing.abort();
      await done;
    },
  };
}

function createListeners() {
  const listeners: ChangeListener[] = [];
  const receivers: ((text: string) => void)[] = [];
  function hear(payload: string): void {
    const [topic = '', ...names] = payload.split(' ');
    const key = names.join(' ');
    for (const listener of listeners) listener(topic as ChangeTopic, key);
  }
  return {
    hear,
    receive(text: string): void {
      for (const receiver of receivers) receiver(text);
    },
    onMessage: (receiver: (text: string) => void) => void receivers.push(receiver),
    onChange: (listener: ChangeListener) => void listeners.push(listener),
    announce: (topic: ChangeTopic, key: string) => hear(`${topic} ${key}`),
    announceEverything: () => hear('everything'),
  };
}
