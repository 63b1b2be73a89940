/**
 * Where authorizations, sessions and interactions are kept: the promise that Redis and PostgreSQL
 * both keep, and that one contract suite and one concurrency suite hold them to.
 */
import { sha256 } from '../base/random-id.ts';

/** One kind of record that is only kept and found, each with a name space of its own. */
export type RecordKind = 'machine_token' | 'session' | 'interaction' | 'shown_once';

export interface StoredRecord<Data> {
  readonly data: Data;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

/** What is known of an authorization from the beginning, and never changes. */
export interface AuthorizationFacts {
  readonly accountId: string;
  readonly clientId: string;
  /** Of its connection when it was approved; absent for a test, which belongs to none. */
  readonly generation?: number;
  /** Random. Its values are made with it. */
  readonly secret: string;
  /** What the exchange of its code must bring again, hashed. */
  readonly redirectUriHash: string;
  readonly codeChallengeHash?: string;
}

/** All there is of an authorization: however often it is refreshed, it is one record. */
export interface AuthorizationRecord extends AuthorizationFacts {
  /** Seconds since the epoch, by the store's clock, as all times of it. */
  readonly approvedAt: number;
  /** When it ends whatever happens; absent where there is no absolute age. */
  readonly endsAt?: number;
  /** Of the current refresh token; -1 until the code is exchanged. */
  readonly rotation: number;
  /** Milliseconds since the epoch at which `rotation` became the current one. */
  readonly rotatedAt: number;
  /** Somebody was seen with an access token of `rotation`: its answer has arrived. */
  readonly isConfirmed: boolean;
  /** Seconds since the epoch until which the code, then the current refresh token, can be used. */
  readonly usableUntil: number;
}

/** What an exchange or a refresh came to. Times are seconds since the epoch, by the store's clock. */
export type Issue =
  | { readonly outcome: 'issued' | 'retried'; readonly now: number; readonly usableUntil: number }
  /**
   * `replayed`: the code or the refresh token was used before. Nothing was written: the caller has
   * to end the authorization. `expired`: not used in time. `too_old`: the absolute age is reached.
   * `missing`: there is no such authorization (any more).
   */
  | { readonly outcome: 'replayed' | 'expired' | 'too_old' | 'missing' };

/** The part of the store that keeps authorizations. Its promises are those of `TokenStore`. */
export interface AuthorizationStore {
  /** Keeps a new authorization until its code can no longer be used, and an hour. */
  beginAuthorization(
    id: string,
    facts: AuthorizationFacts,
    lifetimes: { readonly codeSeconds: number; readonly absoluteSeconds: number | undefined },
  ): Promise<void>;

  readAuthorization(id: string): Promise<AuthorizationRecord | undefined>;

  /** Uses the code up: the first attempt gets the first refresh token, and any other is a replay. */
  exchangeCode(
    id: string,
    step: { readonly attempt: string; readonly refreshSeconds: number },
  ): Promise<Issue>;

  /**
   * Replaces the refresh token of rotation `from` by the next one.
   *
   * Presented again, the immediate predecessor of the current one is `retried`, with nothing
   * written: inside the retry window, and later as long as the current one is not confirmed. An
   * older one is a replay, and with a window of 0 so is the predecessor.
   */
  rotate(
    id: string,
    step: {
      readonly from: number;
      readonly attempt: string;
      readonly refreshSeconds: number;
      readonly retryWindowSeconds: number;
    },
  ): Promise<Issue>;

  /** Notes that the answer with this rotation has arrived, where it is still the current one. */
  confirmRotation(id: string, rotation: number): Promise<void>;

  /** @returns whether it was there: true for exactly one of several callers. */
  endAuthorization(id: string): Promise<boolean>;

  /**
   * Whether what was written to this record until now survives the loss of one server: false where
   * its replicas have not followed. True where none is meant to.
   */
  isReplicated(kind: RecordKind | 'authorization', id: string): Promise<boolean>;

  /**
   * Whether what was done a moment ago was done on these Redis masters, named by their replication
   * ids. True where there is no Redis, and for a command, which does not watch them.
   */
  usesOnlyMasters(ids: readonly string[]): boolean;
}

/**
 * Promises of every implementation:
 *
 * - An identifier is kept as a hash only. One outside `[A-Za-z0-9_-]{16,128}` is not asked for.
 * - An expired record is never returned, whatever the store's own clock says.
 * - Each method is one atomic step and one round trip. PostgreSQL takes a second one to say why
 *   nothing was issued; a session and its uid are two steps in Redis.
 * - Time that decides about an authorization is the store's: of nodes whose clocks differ none
 *   takes an honest retry for a replay.
 * - A step that is sent twice because its answer was lost succeeds twice: `attempt` tells it from
 *   somebody else's.
 * - A store that does not answer, or cannot keep what it was given, throws StorageUnavailable.
 */
export interface TokenStore extends AuthorizationStore {
  /** Records are rows of the service's own database, so that they can end in a transaction of it. */
  readonly isInDatabase: boolean;

  read<Data>(kind: RecordKind, id: string): Promise<StoredRecord<Data> | undefined>;

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

  /** As `remove`, for who knows the key under which it is kept (`keyOf`), and not its identifier. */
  removeKept(kind: RecordKind, key: string): Promise<boolean>;

  /** Reads and removes in one step: of several callers one is answered, once. */
  take<Data>(kind: RecordKind, id: string): Promise<StoredRecord<Data> | undefined>;

  /** Sessions are also found by a second identifier, which outlives the renewal of the first. */
  writeSession(id: string, uid: string, data: unknown, expiresAt: number): Promise<void>;
  /** As `replace`, for a session: one that was removed meanwhile does not come back. */
  replaceSession(id: string, uid: string, data: unknown, expiresAt: number): Promise<boolean>;
  readSessionByUid<Data>(uid: string): Promise<StoredRecord<Data> | undefined>;
  /** Ends the session that is found by this identifier, if there is one. */
  removeSessionByUid(uid: string): Promise<void>;

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

/** Seconds for which an authorization is kept after its code could be used: a replay still ends it. */
export const REMEMBER_CODE_SECONDS = 3_600;
/** The same after its last refresh token: its client is told "expired", not "unknown". */
export const REMEMBER_EXPIRED_SECONDS = 86_400;

/** Seconds since the epoch at which the record may go. */
export const forgottenAt = ({
  rotation,
  usableUntil,
}: Pick<AuthorizationRecord, 'rotation' | 'usableUntil'>): number =>
  usableUntil + (rotation < 0 ? REMEMBER_CODE_SECONDS : REMEMBER_EXPIRED_SECONDS);

const ID = /^[A-Za-z0-9_-]{16,128}$/;

/** False for what no identifier of ours can be: such a value costs no query and reaches no store. */
export const isStorableId = (id: string): boolean => ID.test(id);

/** Identifiers are kept as a hash. 22 characters are 132 bits: nobody finds a second one for a key. */
export const keyOf = (id: string): string => sha256(id).slice(0, 22);
