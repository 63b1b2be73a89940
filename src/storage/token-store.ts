/**
 * Where tokens, grants, sessions and interactions are kept: the promise that Redis and PostgreSQL
 * both keep, and that one contract suite and one concurrency suite hold them to.
 */

/** One kind of record, each with a name space of its own. */
export type RecordKind =
  | 'access_token'
  | 'machine_token'
  | 'code'
  | 'grant'
  | 'session'
  | 'interaction'
  | 'shown_once';

/** What one record is found by. */
export interface RecordName {
  readonly kind: RecordKind;
  readonly id: string;
}

export interface StoredRecord<Data> {
  readonly data: Data;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
  /** True for a code that was exchanged: a second exchange is a replay. */
  readonly isConsumed: boolean;
}

/** All refresh tokens of one grant, in one record: which rotation is current, and since when. */
export interface RefreshFamily<Data> {
  readonly rotation: number;
  /** Milliseconds since the epoch at which `rotation` became the current one. */
  readonly rotatedAt: number;
  /** Seconds since the epoch at which the current refresh token expires. */
  readonly expiresAt: number;
  readonly data: Data;
}

/**
 * `advanced`: this attempt made `rotation` the current one. `already`: somebody else had.
 * `missing`: the family was revoked or has expired, nothing was written.
 */
export type Advance = 'advanced' | 'already' | 'missing';

/**
 * Promises of every implementation:
 *
 * - An identifier is kept as a hash only. One outside `[A-Za-z0-9_-]{16,128}` is not asked for.
 * - An expired record is never returned, whatever the store's own clock says.
 * - Each method is one atomic step and one round trip. `advanceFamily` may take a second one to say
 *   why it lost; a session and its uid are two steps where a step reaches one key only (Redis).
 * - A step that is sent twice because its answer was lost succeeds twice: `attempt` tells it from
 *   somebody else's.
 * - A store that does not answer, or cannot keep what it was given, throws StorageUnavailable.
 */
export interface TokenStore {
  read<Data>(kind: RecordKind, id: string): Promise<StoredRecord<Data> | undefined>;

  /**
   * Two records that a question needs together: one round trip, where `read` takes two. On a Redis
   * Cluster, whose keys live apart, two at the same time.
   */
  readBoth<First, Second>(
    first: RecordName,
    second: RecordName,
  ): Promise<readonly [StoredRecord<First> | undefined, StoredRecord<Second> | undefined]>;

  /** Keeps `data` until `expiresAt` (seconds since the epoch), replacing what was there. */
  write(kind: RecordKind, id: string, data: unknown, expiresAt: number): Promise<void>;

  /**
   * As `write`, but only where a record is: what was removed meanwhile does not come back.
   *
   * @returns whether there was one.
   */
  replace(kind: RecordKind, id: string, data: unknown, expiresAt: number): Promise<boolean>;

  /**
   * @returns whether there was anything to remove: true for exactly one of several callers, and for
   *   none where the answer to that one was lost and its step was sent again.
   */
  remove(kind: RecordKind, id: string): Promise<boolean>;

  /** Reads and removes in one step: of several callers one is answered, once. */
  take<Data>(kind: RecordKind, id: string): Promise<StoredRecord<Data> | undefined>;

  /** Sessions are also found by a second identifier, which outlives the renewal of the first. */
  writeSession(id: string, uid: string, data: unknown, expiresAt: number): Promise<void>;
  readSessionByUid<Data>(uid: string): Promise<StoredRecord<Data> | undefined>;

  /**
   * Marks a code as exchanged.
   *
   * @returns true for exactly one attempt, however many there are; false when there is none.
   */
  consumeCode(id: string, attempt: string): Promise<boolean>;

  /** Begins the family of a grant at rotation 0. One that was advanced already stays as it is. */
  startFamily(grantId: string, data: unknown, now: number, expiresAt: number): Promise<void>;
  readFamily<Data>(grantId: string): Promise<RefreshFamily<Data> | undefined>;

  /** Compare-and-set: makes `rotation` the current one if the family exists and is behind it. */
  advanceFamily(
    grantId: string,
    step: { rotation: number; attempt: string; data: unknown; now: number; expiresAt: number },
  ): Promise<Advance>;
  removeFamily(grantId: string): Promise<void>;

  /**
   * Deletes at most `limit` expired records, where the store does not do so by itself.
   *
   * @returns how many were deleted.
   */
  removeExpired(limit: number): Promise<number>;

  /** Resolves when the store answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

const ID = /^[A-Za-z0-9_-]{16,128}$/;

/** False for what no identifier of ours can be: such a value costs no query and reaches no store. */
export const isStorableId = (id: string): boolean => ID.test(id);
