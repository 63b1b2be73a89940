/** What changed in the database, told to every node, so that what a node remembers is never stale. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { OpenDatabase } from './database.ts';
import type { Listen } from './embedded/server.ts';
import { createEchoes } from './notification-echoes.ts';
import type { Queries } from './queries.ts';

/** `everything` is said where something may have changed untold. */
export type ChangeTopic =
  | 'clients'
  | 'accounts'
  | 'access'
  | 'api-keys'
  | 'connections'
  /** By client. */
  | 'bars'
  /** Told by who ends one, for it ends in the token store. */
  | 'authorizations'
  /** By public ids, for resource servers. */
  | 'api-key-ids'
  | 'organizations'
  /** By the replication id of a Redis on which the ends are about to be repeated. */
  | 'redis-masters'
  | 'everything';

/**
 * @param key what changed: the id of an account or a client, of whom the access is; the hash of an
 *   API key, or its id; account and client of a connection, with a space between. Empty for `everything`.
 */
type ChangeListener = (topic: ChangeTopic, key: string) => void;

/**
 * PostgreSQL's NOTIFY as events.
 *
 * While `isLive` is false nobody tells of changes (a lost connection, an operator command): a cache
 * must then ask the database every time.
 */
export interface ChangeFeed {
  /** True if all changes have been heard that were committed before the last 950 milliseconds. */
  readonly isLive: boolean;
  /** Calls `listener` after each committed change, of this node too. */
  onChange(listener: ChangeListener): void;
  /** Calls `listener` with each text of `messageEveryNode`. Some are lost while the feed is not live. */
  onMessage(listener: (text: string) => void): void;
  /** Says this on this node, for whoever answers a request sooner than the database tells of it. */
  tell(topic: ChangeTopic, key: string): void;
  /** Says `everything`, for an operator who knows of a change that nobody told. */
  forgetEverything(): void;
  close(): Promise<void>;
}

/** Of the triggers of migration 0024. Nodes of before it listen to `gatehouse_changes`. */
const CHANNEL = 'gatehouse_named_changes';
/** Apart, because whoever hears of a change forgets something. */
const MESSAGES = 'gatehouse_messages';
/** Milliseconds from the start of a round trip on the listening connection to the start of the next. */
const ROUND_TRIP_INTERVAL = 250;
/** Milliseconds. Whatever keeps a round trip longer than this keeps notifications, too. */
const MAX_ROUND_TRIP = 700;
const CONNECT_LIMIT = 1_000;
const RETRY_PAUSE = 500;

/**
 * Returns an SQL expression, to be used in a larger statement, that notifies every node when the
 * transaction commits.
 *
 * @param use adds a parameter to the statement and answers its name.
 */
export const tellingOf = (
  topic: ChangeTopic,
  key: string,
  use: (value: string) => string,
): string => `pg_notify('${CHANNEL}', ${use(`${topic} ${key}`)})`;

/** Tells every node, once the transaction is committed, what no trigger of the database knows. */
export const tellEveryNode = (
  queries: Queries,
  topic: ChangeTopic,
  keys: readonly string[],
): Promise<unknown> =>
  queries.query(`SELECT pg_notify($1, $2 || ' ' || key) FROM unnest($3::text[]) AS key`, [
    CHANNEL,
    topic,
    keys,
  ]);

/** What is shown while it happens, and not kept. @param text at most 7,999 bytes, without NUL. */
export const messageEveryNode = (queries: Queries, text: string): Promise<unknown> =>
  queries.query('SELECT pg_notify($1, $2)', [MESSAGES, text]);

/** The feed of an operator command, which is over before anything changes: never live. */
export const silentChangeFeed: ChangeFeed = {
  isLive: false,
  onChange: () => {},
  onMessage: () => {},
  tell: () => {},
  forgetEverything: () => {},
  close: async () => {},
};

/**
 * Listens until closed, on a connection of its own unless the database is in this process.
 *
 * @param patience multiplies how long a round trip may take, for tests on a busy machine.
 */
export async function listenForChanges(database: OpenDatabase, patience = 1): Promise<ChangeFeed> {
  if (!database.embedded) return listenOnConnection(database, patience);
  return database.listen ? listenHere(database.listen) : silentChangeFeed;
}

/** Nothing can be missed: who changes something is answered after it was told. */
async function listenHere(listen: Listen): Promise<ChangeFeed> {
  const { hear, receive, ...listeners } = createListeners();
  let isLive = true;
  await listen(CHANNEL, hear);
  await listen(MESSAGES, receive);
  return {
    get isLive() {
      return isLive;
    },
    ...listeners,
    async close() {
      isLive = false;
    },
  };
}

/** Keeps its connection, or comes back. Resolves after the first attempt, however that went. */
async function listenOnConnection(database: OpenDatabase, patience: number): Promise<ChangeFeed> {
  const { hear, receive, ...listeners } = createListeners();
  const { forgetEverything } = listeners;
  const maxRoundTrip = MAX_ROUND_TRIP * patience;
  const maxDelay = ROUND_TRIP_INTERVAL + maxRoundTrip;
  const closing = new AbortController();
  /**
   * In the time of `performance.now()`. A time and no flag, because a process that was stalled may
   * work on a request before the first timer fires.
   */
  let liveUntil = Number.NEGATIVE_INFINITY;

  /** Listens until the connection fails; says so by rejecting. */
  async function listenOnce(onReady: () => void): Promise<void> {
    const client = new pg.Client({
      ...database.connection,
      application_name: 'gatehouse changes',
      connectionTimeoutMillis: CONNECT_LIMIT * patience,
      query_timeout: maxRoundTrip,
    });
    const echoes = createEchoes(database);
    const over = new AbortController();

    /** @returns when it began, in the time of `performance.now()`. */
    async function makeRoundTrip(): Promise<number> {
      const sentAt = performance.now();
      const sentEchoes = echoes.sent;
      // PostgreSQL passes on all notifications that were committed before, and then answers.
      await client.query('SELECT 1');
      if (echoes.heard < sentEchoes) throw new Error('notifications do not arrive');
      // After a stall the answer may be read before the time limit is checked.
      if (performance.now() - sentAt > maxRoundTrip) throw new Error('answered too late');
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
      // Whatever changed while nobody listened is unknown: forget first, then trust the feed.
      forgetEverything();
      liveUntil = sentAt + maxDelay;
      void echoes.repeat(over.signal);
      onReady();
      for (;;) {
        const pause = Math.max(0, sentAt + ROUND_TRIP_INTERVAL - performance.now());
        await Promise.race([delay(pause, undefined, { signal: closing.signal }), lost]);
        if (performance.now() > liveUntil) throw new Error('this process was stalled');
        sentAt = await makeRoundTrip();
        liveUntil = sentAt + maxDelay;
      }
    } finally {
      over.abort();
      liveUntil = Number.NEGATIVE_INFINITY;
      forgetEverything();
      client.end().catch(() => {});
    }
  }

  async function keepListening(onReady: () => void): Promise<void> {
    while (!closing.signal.aborted) {
      await listenOnce(onReady).catch(() => {});
      onReady();
      await delay(RETRY_PAUSE, undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  let done: Promise<void> = Promise.resolve();
  await new Promise<void>((resolve) => {
    done = keepListening(resolve);
  });
  return {
    get isLive() {
      return performance.now() <= liveUntil;
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
    // For nodes of before: whose access it is, and which owner has another name, is told beside it.
    if (key === '' && topic !== 'everything') return;
    for (const listener of listeners) listener(topic as ChangeTopic, key);
  }
  return {
    hear,
    receive(text: string): void {
      for (const receiver of receivers) receiver(text);
    },
    onMessage: (receiver: (text: string) => void) => void receivers.push(receiver),
    onChange: (listener: ChangeListener) => void listeners.push(listener),
    tell: (topic: ChangeTopic, key: string) => hear(`${topic} ${key}`),
    forgetEverything: () => hear('everything'),
  };
}
