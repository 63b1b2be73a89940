/** Records which authorizations and machine tokens were ended and why, and notifies every node. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { Details, EndingCause } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../base/clock.ts';
import { boundToRequest } from '../base/current-request.ts';
import { createTurns } from '../storage/account-turns.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { announcementSql, announceToAllNodes, type ChangeTopic } from '../storage/change-feed.ts';
import { type CleaningJob, deleteExpired, expiryJob } from '../storage/cleaning.ts';
import { READY_MASTERS } from '../storage/known-masters.ts';
import { removalOf } from '../storage/postgres-store.ts';
import { createParameters, type Database, type Queries } from '../storage/queries.ts';
import { StorageUnavailable } from '../storage/storage-unavailable.ts';
import { keyOf } from '../storage/token-store.ts';
import type { Authorization } from './authorization.ts';

export interface Revocation {
  readonly authorization: Pick<Authorization, 'id' | 'accountId' | 'clientId' | 'generation'>;
  readonly cause: EndingCause;
  readonly actor: NewActivity['actor'];
  readonly origin?: Origin;
  /** Further details for the activity log. */
  readonly details?: Details;
}

/** A revoked machine access token. Its cause is not stored, because the client can get a new token. */
export interface MachineTokenEnd {
  readonly machineToken: string;
  readonly clientId: string;
  /** Seconds since the epoch; the record is removed afterwards. */
  readonly expiresAt: number;
  /** Recorded in the same statement. */
  readonly entry?: NewActivity;
}

export type End = Revocation | MachineTokenEnd;

export interface RecordedEnd {
  readonly id: string;
  readonly accountId: string;
  readonly clientId: string;
  readonly at: Date;
  readonly cause: EndingCause;
}

/** The stored revocation of a machine access token. */
export interface RecordedTokenEnd {
  /** The token's key in the token store. */
  readonly key: string;
  readonly clientId: string;
}

export interface Revocations {
  /**
   * Stores the revocation and notifies every node in one statement. The first recorded cause stays.
   *
   * @param isKeptHere true if this database is the token store: the statement deletes the row, too
   * @returns `masters`: the replication ids of the Redis masters that were ready at that moment
   */
  record(end: End, isKeptHere: boolean): Promise<Recorded>;
  /**
   * Like `record`, for a request, which waits at most `RECORD_TIMEOUT_MS` for the record (with the
   * embedded database until it is written or fails). After that it notifies every node and writes
   * the record later, while this process runs.
   *
   * @returns the masters that `record` returns; undefined if the revocation is not recorded yet
   * @throws StorageUnavailable if the nodes could not be notified
   */
  recordOrAnnounce(end: End, isKeptHere: boolean): Promise<readonly string[] | undefined>;
  /** Notifies every node that this authorization has ended, recorded or not. */
  announceEnd(id: string): Promise<void>;
  announceEnds(ids: readonly string[]): Promise<void>;
  /**
   * Notifies every node again of the recorded end of an authorization or machine token.
   *
   * @returns false if no such end of this client is recorded
   */
  announceRecorded(
    ended: { readonly clientId: string } & ({ readonly id: string } | Pick<MachineTokenEnd, 'machineToken'>),
  ): Promise<boolean>;
  /** Notifies every node that machine access tokens of these clients have ended. */
  announceMachineTokens(clientIds: readonly string[]): Promise<void>;
  /** Undefined unless this authorization was ended by itself, not with its whole connection. */
  find(id: string): Promise<RecordedEnd | undefined>;
  /** Counts the recorded revocations of authorizations since this time, or all of them. */
  countSince(since: Date | undefined): Promise<number>;
  /** Returns at most `limit` revoked authorizations, the latest first, all older than `before`. */
  latest(page: {
    readonly limit: number;
    readonly since?: Date | undefined;
    readonly before?: Pick<RecordedEnd, 'at' | 'id'> | undefined;
  }): Promise<readonly RecordedEnd[]>;
  /** Returns the first `limit` unexpired machine tokens ended from `since` on, by key > `after`. */
  machineTokensSince(
    since: Date | undefined,
    page: { readonly limit: number; readonly after?: string | undefined },
  ): Promise<readonly RecordedTokenEnd[]>;
  /**
   * Gives this node the turn to carry out recorded revocations for `TURN_SECONDS`, unless another
   * node has it. The node that has the turn extends it by calling this again.
   *
   * @returns the time up to which they were carried out, and the present one by the same clock;
   *   undefined if another node has the turn
   */
  takeTurn(node: string): Promise<{ readonly until: Date; readonly now: Date } | undefined>;
  /** Ends the turn. @param until the time that the next `takeTurn` returns; absent to keep it */
  endTurn(node: string, until?: Date): Promise<void>;
  /** Removes the revocations of an account that is being deleted. */
  forgetAccount(accountId: string, tx: Queries): Promise<void>;
  removeOlderThan(olderThan: Date, limit: number): Promise<number>;
  /** Removes the revocations of machine access tokens that have expired. */
  readonly removeExpired: CleaningJob;
  /** Writes the records that are not written yet, as far as the database accepts them. */
  close(): Promise<void>;
}

type LogDetails = Readonly<Record<string, unknown>>;

const RETRY_PAUSE_MS = 5_000;
/** Maximum number of unwritten records, to limit memory while the database is unavailable. */
const MAX_UNWRITTEN = 10_000;
/** How long a request waits for its record, and then for the notification of the nodes. */
const RECORD_TIMEOUT_MS = 300;
const NOTIFY_TIMEOUT_MS = 500;
/** Maximum number of concurrent writes: if they hang, each occupies a connection of the pool. */
const MAX_CONCURRENT = 3;
/** Maximum time for which a node that crashed during its turn blocks the others. */
const TURN_SECONDS = 10;

interface Writing {
  readonly write: () => Promise<unknown>;
  readonly about: LogDetails;
}

interface Recorded {
  readonly masters: readonly string[];
  /** False if the revocation was recorded before. */
  readonly isFirst: boolean;
}

const FIRST = '(SELECT count(*) > 0 FROM recorded) AS "isFirst"';

const RECORDED = `SELECT id, at, cause, account_id AS "accountId", client_id AS "clientId"
  FROM ended_authorizations`;

export function createRevocations(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Pick<Activity, 'partOf'>;
  readonly log: Pick<Logger, 'warn'>;
  /** Multiplies how long a request waits for its record and its notification, for tests. */
  readonly timeoutFactor?: number;
}): Revocations {
  const { database, clock, activity, log, timeoutFactor = 1 } = parts;
  const inProgress = new Set<Promise<unknown>>();
  const inTurn = createTurns(MAX_CONCURRENT);
  const unwritten = createBackgroundWriter({
    pauseMs: RETRY_PAUSE_MS,
    maxWaiting: MAX_UNWRITTEN,
    write: tryAgain,
  });

  async function recordAuthorization(
    { authorization, cause, actor, origin, details: more }: Revocation,
    isKeptHere: boolean,
  ): Promise<Recorded> {
    const { id, accountId, clientId, generation } = authorization;
    const { values, use } = createParameters();
    const details = { ...more, client_id: clientId, cause };
    const entry: NewActivity = { action: 'tokens_revoked', actor, accountId, details, origin };
    // A client test has no connection, so the user's activity log omits it.
    const isTest = generation === undefined;
    const [recorded] = await database.query<Recorded>(
      // Nothing is recorded if the account was deleted: its authorizations ended with it.
      `WITH recorded AS (
          INSERT INTO ended_authorizations (id, at, cause, account_id, client_id)
          SELECT ${use(id)}, ${database.now()}, ${use(cause)}, id, ${use(clientId)}
            FROM accounts WHERE id = ${use(accountId)} FOR KEY SHARE
          ON CONFLICT DO NOTHING
          RETURNING jsonb_build_object('client_name', coalesce(
            (SELECT name FROM clients WHERE id = ended_authorizations.client_id), '')) AS details)
        ${isTest ? '' : `, entry AS (${activity.partOf(entry, 'recorded', use)})`}
        ${isKeptHere ? `, ended AS (${removalOf('authorization', id, use)})` : ''}
        SELECT ${announcementSql('authorizations', id, use)}, ${READY_MASTERS} AS masters, ${FIRST}`,
      values,
    );
    return recorded ?? { masters: [], isFirst: false };
  }

  async function recordMachineToken(
    { machineToken, clientId, expiresAt, entry }: MachineTokenEnd,
    isKeptHere: boolean,
  ): Promise<Recorded> {
    const { values, use } = createParameters();
    const write = isKeptHere
      ? removalOf('machine_token', machineToken, use)
      : `INSERT INTO ended_machine_tokens (key, client_id, at, expires_at)
          VALUES (${use(keyOf(machineToken))}, ${use(clientId)}, ${database.now()},
            to_timestamp(${use(expiresAt)}))
          ON CONFLICT DO NOTHING`;
    const [recorded] = await database.query<Recorded>(
      `WITH recorded AS (${write} RETURNING '{}'::jsonb AS details)
        ${entry ? `, entry AS (${activity.partOf(entry, 'recorded', use)})` : ''}
        SELECT ${announcementSql('clients', clientId, use)}, ${READY_MASTERS} AS masters, ${FIRST}`,
      values,
    );
    return recorded ?? { masters: [], isFirst: false };
  }

  const record = (end: End, isKeptHere: boolean): Promise<Recorded> =>
    'machineToken' in end ? recordMachineToken(end, isKeptHere) : recordAuthorization(end, isKeptHere);

  const announceKeys = async (topic: ChangeTopic, ...keys: readonly string[]): Promise<void> =>
    void (await announceToAllNodes(database, topic, keys));

  async function tryAgain(writings: readonly Writing[]): Promise<readonly Writing[]> {
    const failed: Writing[] = [];
    // Write one record after another: each may wait for a lock, and other work needs connections.
    for (const writing of writings) {
      await writing.write().catch((err: unknown) => {
        warn(err, writing);
        failed.push(writing);
      });
    }
    return failed;
  }

  const warn = (err: unknown, { about }: Writing): void =>
    log.warn({ err, ...about }, 'a revocation could not be recorded yet and is retried');

  /** @returns undefined if the write failed or takes too long: the record is then written later */
  async function recordInTime(end: End, isKeptHere: boolean): Promise<Recorded | undefined> {
    // Bind the write to the request: later tries in a timer must still record the request's id.
    const write = boundToRequest(() => record(end, isKeptHere));
    const recording = inTurn(write).catch((err: unknown) => {
      const writing = { write, about: detailsOf(end) };
      warn(err, writing);
      unwritten.add(writing);
      // The token store has ended it: only its record waits.
      if (err instanceof StorageUnavailable && err.code === 'too_many_waiting') throw err;
      return undefined;
    });
    inProgress.add(recording);
    const forget = () => inProgress.delete(recording);
    recording.then(forget, forget);
    // The embedded database has one session: writes wait for other work, but never for a lock.
    if (database.embedded) return recording;
    return await within(RECORD_TIMEOUT_MS * timeoutFactor, recording);
  }

  return {
    record,
    announceEnd: (id) => announceKeys('authorizations', id),
    announceEnds: (ids) => announceKeys('authorizations', ...ids),
    announceMachineTokens: (clientIds) => announceKeys('clients', ...clientIds),

    async announceRecorded(ended) {
      const { values, use } = createParameters();
      const found =
        'id' in ended
          ? `${announcementSql('authorizations', ended.id, use)} FROM ended_authorizations
            WHERE id = ${use(ended.id)}`
          : `${announcementSql('clients', ended.clientId, use)} FROM ended_machine_tokens
            WHERE key = ${use(keyOf(ended.machineToken))}`;
      const sql = `SELECT ${found} AND client_id = ${use(ended.clientId)}`;
      return (await database.query(sql, values)).length > 0;
    },

    async recordOrAnnounce(end, isKeptHere) {
      const recorded = await recordInTime(end, isKeptHere);
      if (recorded) return recorded.masters;
      const announcing =
        'machineToken' in end
          ? announceKeys('clients', end.clientId)
          : announceKeys('authorizations', end.authorization.id);
      const isAnnounced = await within(
        NOTIFY_TIMEOUT_MS * timeoutFactor,
        announcing.then(() => true),
      );
      if (isAnnounced) return undefined;
      throw new StorageUnavailable('postgresql', new Error('notifying the nodes timed out'));
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
      const [turn] = await database.query<{ until: Date; now: Date }>(
        `UPDATE ends_carried_out
          SET node = $1, turn_until = clock_timestamp() + make_interval(secs => $2)
          WHERE node = $1 OR turn_until < clock_timestamp() RETURNING until, ${database.now()} AS now`,
        [node, TURN_SECONDS],
      );
      return turn;
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
      await Promise.allSettled(inProgress);
      await unwritten.close();
    },
  };
}

/** Returns the fields of log lines about a revocation: none identifies the user. */
function detailsOf(end: End): LogDetails {
  if ('machineToken' in end) return { clientId: end.clientId };
  return { clientId: end.authorization.clientId, cause: end.cause, actor: end.actor };
}

/** Resolves to undefined if `pending` takes longer. */
async function within<Value>(limitMs: number, pending: Promise<Value>): Promise<Value | undefined> {
  const waiting = new AbortController();
  const late = delay(limitMs, undefined, { signal: waiting.signal }).catch(() => undefined);
  try {
    return await Promise.race([pending, late]);
  } finally {
    waiting.abort();
  }
}
