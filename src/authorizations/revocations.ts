/** Records which authorizations and machine tokens were ended and why, and tells every node of it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { EndingCause } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../base/clock.ts';
import { boundToRequest } from '../base/current-request.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { type ChangeTopic, tellEveryNode, tellingOf } from '../storage/change-feed.ts';
import { type CleaningJob, deleteExpired, expiryJob } from '../storage/cleaning.ts';
import { READY_MASTERS } from '../storage/known-masters.ts';
import { removalOf } from '../storage/postgres-store.ts';
import type { Database, Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { keyOf } from '../storage/token-store.ts';
import type { Authorization } from './authorization.ts';

export interface Revocation {
  readonly authorization: Pick<Authorization, 'id' | 'accountId' | 'clientId' | 'generation'>;
  readonly cause: EndingCause;
  readonly actor: NewActivity['actor'];
  readonly origin?: Origin;
}

/** The end of one machine access token. Why is not kept: its client may get another one at once. */
export interface MachineTokenEnd {
  readonly machineToken: string;
  readonly clientId: string;
  /** Seconds since the epoch; nothing is kept of it afterwards. */
  readonly expiresAt: number;
}

export type End = Revocation | MachineTokenEnd;

export interface RecordedEnd {
  readonly id: string;
  readonly accountId: string;
  readonly clientId: string;
  readonly at: Date;
  readonly cause: EndingCause;
}

/** The end of a machine access token as it is remembered. */
export interface RecordedTokenEnd {
  /** Under which the token store keeps it. */
  readonly key: string;
  readonly clientId: string;
}

export interface Revocations {
  /**
   * Keeps the end and tells every node of it, in one statement. The first cause stays.
   *
   * @param isKeptHere what ends is a row of this database: the statement deletes it, too.
   * @returns the Redis masters that were ready then, by their replication ids.
   */
  record(end: End, isKeptHere: boolean): Promise<readonly string[]>;
  /**
   * The same for a request, which waits a third of a second for it at most. After that every node is
   * told, and the record follows later, for as long as this process lives.
   *
   * @returns as `record`; undefined if it is not recorded yet.
   * @throws StorageUnavailable if the nodes could not be told.
   */
  announce(end: End, isKeptHere: boolean): Promise<readonly string[] | undefined>;
  /** Tells every node that this authorization is ended, recorded or not. */
  tell(id: string): Promise<void>;
  /** The same of several authorizations. */
  tellAll(ids: readonly string[]): Promise<void>;
  /** The same of machine access tokens of these clients. */
  tellMachineTokens(clientIds: readonly string[]): Promise<void>;
  /** Undefined for one that was not ended by itself. */
  find(id: string): Promise<RecordedEnd | undefined>;
  /** How many there are to look through. */
  countSince(since: Date | undefined): Promise<number>;
  /** The latest first, at most `limit`, older than the one `before`. */
  latest(page: {
    readonly limit: number;
    readonly since?: Date | undefined;
    readonly before?: Pick<RecordedEnd, 'at' | 'id'> | undefined;
  }): Promise<readonly RecordedEnd[]>;
  /** The machine access tokens that were ended since and have not expired, at most `limit`, after the key `after`. */
  machineTokensSince(
    since: Date | undefined,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<readonly RecordedTokenEnd[]>;
  /**
   * Lets this node carry out recorded ends for the next `TURN_SECONDS`, unless another node does so now.
   * The node that has the turn prolongs it by calling this again.
   *
   * @returns until when everything recorded is known to be carried out; undefined when another node has the turn.
   */
  takeTurn(node: string): Promise<Date | undefined>;
  /** Gives the turn back. @param until as `takeTurn` returns it; without it, it stays as it was. */
  endTurn(node: string, until?: Date): Promise<void>;
  /** Forgets those of an account that is being deleted. */
  forgetAccount(accountId: string, tx: Queries): Promise<void>;
  removeOlderThan(olderThan: Date, limit: number): Promise<number>;
  /** For the ends of machine access tokens that have expired. */
  readonly removeExpired: CleaningJob;
  /** Writes what is left to be written, as far as the database takes it. */
  close(): Promise<void>;
}

type LogDetails = Readonly<Record<string, unknown>>;

/** Milliseconds until what could not be written is tried again. */
const RETRY_PAUSE = 5_000;
/** More than that is not kept in memory while the database is away. */
const MOST_UNWRITTEN = 10_000;
/** Milliseconds that a request waits for its record, and then for the nodes to be told. */
const RECORD_LIMIT = 300;
const TELL_LIMIT = 500;
/** So many are written at once: where they hang, each keeps a connection of the pool that others need. */
const MOST_AT_ONCE = 3;
/** A node that died with the turn keeps the others from it no longer than that. */
const TURN_SECONDS = 10;

interface Writing {
  readonly write: () => Promise<unknown>;
  readonly about: LogDetails;
}

interface RecordedOn {
  readonly masters: readonly string[];
}

const RECORDED = `SELECT id, at, cause, account_id AS "accountId", client_id AS "clientId"
  FROM ended_authorizations`;

export function createRevocations(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'partOf'>;
  /** Told of what could not be written. */
  readonly log: Pick<Logger, 'warn'>;
}): Revocations {
  const { database, clock, activity, log } = parts;
  const underWay = new Set<Promise<unknown>>();
  const inTurn = createTurns(MOST_AT_ONCE);
  const unwritten = createBackgroundWriter({
    pauseMs: RETRY_PAUSE,
    maxWaiting: MOST_UNWRITTEN,
    write: tryAgain,
  });

  async function recordAuthorization(
    { authorization, cause, actor, origin }: Revocation,
    isKeptHere: boolean,
  ): Promise<readonly string[]> {
    const { id, accountId, clientId, generation } = authorization;
    const { values, use } = createParameters();
    const details = { client_id: clientId, cause };
    const entry: NewActivity = { action: 'tokens_revoked', actor, accountId, details, origin };
    // A test belongs to no connection: the person's log does not tell of it.
    const isTest = generation === undefined;
    const [recorded] = await database.query<RecordedOn>(
      // Nothing is recorded if the account was deleted: its authorizations ended with it.
      `WITH recorded AS (
          INSERT INTO ended_authorizations (id, at, cause, account_id, client_id)
          SELECT ${use(id)}, ${use(new Date(clock()))}, ${use(cause)}, id, ${use(clientId)}
            FROM accounts WHERE id = ${use(accountId)} FOR KEY SHARE
          ON CONFLICT DO NOTHING
          RETURNING jsonb_build_object('client_name', coalesce(
            (SELECT name FROM clients WHERE id = ended_authorizations.client_id), '')) AS details)
        ${isTest ? '' : `, entry AS (${activity.partOf(entry, 'recorded', use)})`}
        ${isKeptHere ? `, ended AS (${removalOf('authorization', id, use)})` : ''}
        SELECT ${tellingOf('authorizations', id, use)}, ${READY_MASTERS} AS masters`,
      values,
    );
    return recorded?.masters ?? [];
  }

  async function recordMachineToken(
    { machineToken, clientId, expiresAt }: MachineTokenEnd,
    isKeptHere: boolean,
  ): Promise<readonly string[]> {
    const { values, use } = createParameters();
    const write = isKeptHere
      ? removalOf('machine_token', machineToken, use)
      : `INSERT INTO ended_machine_tokens (key, client_id, at, expires_at)
          VALUES (${use(keyOf(machineToken))}, ${use(clientId)}, ${use(new Date(clock()))},
            to_timestamp(${use(expiresAt)}))
          ON CONFLICT DO NOTHING`;
    const [recorded] = await database.query<RecordedOn>(
      `WITH ended AS (${write})
        SELECT ${tellingOf('clients', clientId, use)}, ${READY_MASTERS} AS masters`,
      values,
    );
    return recorded?.masters ?? [];
  }

  const record = (end: End, isKeptHere: boolean): Promise<readonly string[]> =>
    'machineToken' in end
      ? recordMachineToken(end, isKeptHere)
      : recordAuthorization(end, isKeptHere);

  const tell = async (topic: ChangeTopic, ...keys: readonly string[]): Promise<void> =>
    void (await tellEveryNode(database, topic, keys));

  async function tryAgain(writings: readonly Writing[]): Promise<readonly Writing[]> {
    const failed: Writing[] = [];
    // One after the other: what they wait for may be locked, and others need the connections.
    for (const writing of writings) {
      await writing.write().catch((err: unknown) => {
        warn(err, writing);
        failed.push(writing);
      });
    }
    return failed;
  }

  const warn = (err: unknown, { about }: Writing): void =>
    log.warn({ err, ...about }, 'an end is not recorded yet: it is tried again');

  /** @returns undefined where it failed or takes too long; it is then done later. */
  async function recordInTime(
    end: End,
    isKeptHere: boolean,
  ): Promise<readonly string[] | undefined> {
    // A later try starts from a timer, and the record still names the request.
    const write = boundToRequest(() => record(end, isKeptHere));
    const recording = inTurn(write).catch((err: unknown) => {
      const writing = { write, about: detailsOf(end) };
      warn(err, writing);
      unwritten.add(writing);
      return undefined;
    });
    underWay.add(recording);
    recording.finally(() => underWay.delete(recording));
    // The embedded database has one session: who waits there waits for work, and not for a lock.
    if (database.embedded) return recording;
    return await within(RECORD_LIMIT, recording);
  }

  return {
    record,
    tell: (id) => tell('authorizations', id),
    tellAll: (ids) => tell('authorizations', ...ids),
    tellMachineTokens: (clientIds) => tell('clients', ...clientIds),

    async announce(end, isKeptHere) {
      const masters = await recordInTime(end, isKeptHere);
      if (masters) return masters;
      const told =
        'machineToken' in end
          ? tell('clients', end.clientId)
          : tell('authorizations', end.authorization.id);
      const isTold = await within(
        TELL_LIMIT,
        told.then(() => true),
      );
      if (isTold) return undefined;
      throw new StorageUnavailable('postgresql', new Error('it took too long to tell the nodes'));
    },

    async find(id) {
      const [end] = await database.query<RecordedEnd>(`${RECORDED} WHERE id = $1`, [id]);
      return end;
    },

    async countSince(since) {
      const [row] = await database.query<{ count: number }>(
        `SELECT count(*)::integer AS count FROM ended_authorizations
          WHERE $1::timestamptz IS NULL OR at >= $1`,
        [since ?? null],
      );
      return row?.count ?? 0;
    },

    latest({ limit, since, before }) {
      return database.query(
        `${RECORDED}
          WHERE ($2::timestamptz IS NULL OR at >= $2)
            AND ($3::timestamptz IS NULL OR (at, id) < ($3, $4))
          ORDER BY at DESC, id DESC LIMIT $1`,
        [limit, since ?? null, before?.at ?? null, before?.id ?? null],
      );
    },

    machineTokensSince(since, { limit, after }) {
      return database.query(
        `SELECT key, client_id AS "clientId" FROM ended_machine_tokens
          WHERE ($2::timestamptz IS NULL OR at >= $2) AND ($3::text IS NULL OR key > $3)
            AND expires_at > $4
          ORDER BY key LIMIT $1`,
        [limit, since ?? null, after ?? null, new Date(clock())],
      );
    },

    async takeTurn(node) {
      const [turn] = await database.query<{ until: Date }>(
        `UPDATE ends_carried_out
          SET node = $1, turn_until = clock_timestamp() + make_interval(secs => $2)
          WHERE node = $1 OR turn_until < clock_timestamp() RETURNING until`,
        [node, TURN_SECONDS],
      );
      return turn?.until;
    },

    async endTurn(node, until) {
      await database.query(
        `UPDATE ends_carried_out SET turn_until = '-infinity', until = coalesce($2, until)
          WHERE node = $1`,
        [node, until ?? null],
      );
    },

    async forgetAccount(accountId, tx) {
      await tx.query('DELETE FROM ended_authorizations WHERE account_id = $1', [accountId]);
    },

    removeOlderThan: (olderThan, limit) =>
      deleteExpired(database, [{ table: 'ended_authorizations', column: 'at' }], olderThan, limit),

    removeExpired: expiryJob(parts, [{ table: 'ended_machine_tokens', column: 'expires_at' }]),

    async close() {
      await Promise.all(underWay);
      await unwritten.close();
    },
  };
}

/** Collects the parameters of a statement; `use` answers the name of one, `$1` and so on. */
function createParameters() {
  const values: unknown[] = [];
  return { values, use: (value: unknown): string => `$${values.push(value)}` };
}

/** What a log line tells of it: nothing of whose it was. */
function detailsOf(end: End): LogDetails {
  if ('machineToken' in end) return { clientId: end.clientId };
  return { clientId: end.authorization.clientId, cause: end.cause, actor: end.actor };
}

/** Has at most `most` work at once. The others wait, and the first to come is the first to begin. */
function createTurns(most: number) {
  const waiting: (() => void)[] = [];
  let free = most;
  return async <Result>(work: () => Promise<Result>): Promise<Result> => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

/** Undefined where it takes longer than so many milliseconds. */
async function within<Value>(limit: number, pending: Promise<Value>): Promise<Value | undefined> {
  const waiting = new AbortController();
  const late = delay(limit, undefined, { signal: waiting.signal }).catch(() => undefined);
  try {
    return await Promise.race([pending, late]);
  } finally {
    waiting.abort();
  }
}
