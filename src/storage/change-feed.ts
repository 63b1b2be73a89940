/** What changed in the database, told to every node, so that what a node remembers is never stale. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { OpenDatabase } from './database.ts';
import type { Listen } from './embedded-server.ts';

/** `everything` is said when the connection that listens was lost and may have missed something. */
export type ChangeTopic = 'clients' | 'accounts' | 'access' | 'api-keys' | 'everything';

/**
 * PostgreSQL's NOTIFY as events.
 *
 * While `isLive` is false nobody tells of changes (a lost connection, an operator command): a cache
 * must then ask the database every time.
 */
export interface ChangeFeed {
  readonly isLive: boolean;
  /** Calls `listener` after each committed change, of this node too. */
  onChange(listener: (topic: ChangeTopic) => void): void;
  close(): Promise<void>;
}

const CHANNEL = 'gatehouse_changes';
/** A connection that is silently gone is noticed this late at most, in milliseconds. */
const HEARTBEAT = 2_000;
const ANSWER_LIMIT = 1_000;
const RETRY_PAUSE = 500;

/** The feed of an operator command, which is over before anything changes: never live. */
export const silentChangeFeed: ChangeFeed = {
  isLive: false,
  onChange: () => {},
  close: async () => {},
};

/** Listens until closed, on a connection where the database is not in this process. */
export async function listenForChanges(database: OpenDatabase): Promise<ChangeFeed> {
  if (!database.embedded) return listenOnConnection(database.connection);
  return database.listen ? listenHere(database.listen) : silentChangeFeed;
}

/** Nothing can be missed: who changes something is answered after it was told. */
async function listenHere(listen: Listen): Promise<ChangeFeed> {
  const listeners: ((topic: ChangeTopic) => void)[] = [];
  let isLive = true;
  await listen(CHANNEL, (payload) => {
    for (const listener of listeners) listener(payload as ChangeTopic);
  });
  return {
    get isLive() {
      return isLive;
    },
    onChange: (listener) => void listeners.push(listener),
    async close() {
      isLive = false;
    },
  };
}

/** Keeps its connection, or comes back. Resolves after the first attempt, however that went. */
async function listenOnConnection(connection: pg.ClientConfig): Promise<ChangeFeed> {
  const listeners: ((topic: ChangeTopic) => void)[] = [];
  const closing = new AbortController();
  let isLive = false;
  const tell = (topic: ChangeTopic): void => {
    for (const listener of listeners) listener(topic);
  };

  /** Listens until the connection fails; says so by rejecting. */
  async function listenOnce(onReady: () => void): Promise<void> {
    const client = new pg.Client({
      ...connection,
      application_name: 'gatehouse changes',
      connectionTimeoutMillis: ANSWER_LIMIT,
      query_timeout: ANSWER_LIMIT,
    });
    try {
      const lost = new Promise<never>((_, reject) => {
        client.on('error', reject);
        client.on('end', () => reject(new Error('connection ended')));
      });
      lost.catch(() => {});
      client.on('notification', ({ payload }) => tell((payload ?? 'everything') as ChangeTopic));
      await Promise.race([client.connect(), lost]);
      await client.query(`LISTEN ${CHANNEL}`);
      // Whatever changed while nobody listened is unknown: forget first, then trust the feed.
      tell('everything');
      isLive = true;
      onReady();
      for (;;) {
        await Promise.race([delay(HEARTBEAT, undefined, { signal: closing.signal }), lost]);
        await client.query('SELECT 1');
      }
    } finally {
      isLive = false;
      tell('everything');
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
      return isLive;
    },
    onChange: (listener) => void listeners.push(listener),
    async close() {
      closing.abort();
      await done;
    },
  };
}
