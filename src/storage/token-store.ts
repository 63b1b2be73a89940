/**
 * The contract of the store of authorizations, sessions and interactions. It is implemented on Redis and on PostgreSQL,
 * and both pass the same tests.
 */
import { sha256 } from '../base/random-id.ts';

/** Kinds of records without special rules. The same id may occur in several kinds. */
export type RecordKind = 'machine_token' | 'session' | 'interaction' | 'shown_once';

export interface StoredRecord<Data> {
  readonly data: Data;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

/** The values of an authorization that never change. */
export interface AuthorizationFacts {
  readonly accountId: string;
  readonly clientId: string;
  /** The connection's generation (a number) at the approval. */
  readonly generation: number;
  /** A random value from which the code and the tokens are derived. */
  readonly secret: string;
  /** The exchange of the code must send the same redirect URI again. */
  readonly redirectUriHash: string;
  readonly codeChallengeHash?: string;
}

/** A whole authorization is one record, however often it is refreshed. */
export interface AuthorizationRecord extends AuthorizationFacts {
  /** Seconds since the epoch. All times of the record are by the store's clock. */
  readonly approvedAt: number;
  /** When the authorization ends at the latest, in seconds since the epoch; absent without a maximum age. */
  readonly endsAt?: number;
  /** The number of the current refresh token; -1 before the exchange of the code. */
  readonly rotation: number;
  /** When `rotation` became the current one, in milliseconds since the epoch. */
  readonly rotatedAt: number;
  /** True once an access token of `rotation` was used, which proves that the client received the response. */
  readonly isConfirmed: boolean;
  /** The time until which the code, and later the current refresh token, can be used, in seconds since the epoch. */
  readonly usableUntil: number;
  /** The client's generation at the approval, or at the first refresh after a renewal of the client. */
  readonly clientGeneration: number;
  /** The first `rotation` after the latest change of `clientGeneration`. */
  readonly sinceRotation: number;
}

/** The result of an exchange or a refresh. Times are seconds since the epoch, by the store's clock. */
export type Issue =
  | {
      readonly outcome: 'issued' | 'retried';
      readonly now: number;
      readonly usableUntil: number;
      /** The rotation number of the refresh token that the caller must issue. */
      readonly rotation: number;
    }
  /**
   * `replayed`: the code or the refresh token was used before. Nothing was written: the caller must end the
   * authorization. `expired`: not used in time. `too_old`: the maximum age is reached.
   * `missing`: the authorization does not exist (any more). `renewed`: the client was renewed after its authentication,
   * and the authorization already has the later generation. Nothing was written.
   */
  | { readonly outcome: 'replayed' | 'expired' | 'too_old' | 'missing' | 'renewed' };

/** The part of the store for authorizations. For what every method guarantees, see `TokenStore`. */
export interface AuthorizationStore {
  /** Stores a new authorization until an hour after its code has expired. */
  beginAuthorization(
    id: string,
    facts: AuthorizationFacts,
    start: {
      readonly codeSeconds: number;
      readonly absoluteSeconds: number | undefined;
      /** 0 if absent. */
      readonly clientGeneration?: number;
    },
  ): Promise<void>;

  readAuthorization(id: string): Promise<AuthorizationRecord | undefined>;

  /** Consumes the code. The first attempt gets the first refresh token, and any other attempt is a replay. */
  exchangeCode(id: string, step: { readonly attempt: string; readonly refreshSeconds: number }): Promise<Issue>;

  /**
   * Replaces the refresh token of rotation `from` with the next one.
   *
   * The direct predecessor of the current token may be presented again within the retry window, and later as long as
   * the current token is not confirmed. Then the outcome is `retried`, and nothing is written. An older token is a
   * replay, and so is the predecessor if the window is 0. A token newer than the record is accepted: the store must
   * have lost its last writes. The store may even have lost the exchange of the code, but it still has the record.
   *
   * If the client was renewed since, any refresh token is accepted once, and the authorization gets the client's
   * generation. Every older token then counts as the direct predecessor, because the client may have an older token
   * than an attacker who refreshed with the client's former secret.
   */
  rotate(
    id: string,
    step: {
      readonly from: number;
      readonly attempt: string;
      readonly refreshSeconds: number;
      readonly retryWindowSeconds: number;
      /** The generation of the client when it was authenticated; 0 if absent. */
      readonly clientGeneration?: number;
    },
  ): Promise<Issue>;

  /** Records that the client has received the tokens of this rotation. Does nothing for any other rotation. */
  confirmRotation(id: string, rotation: number): Promise<void>;

  /** @returns true if the authorization existed. Of several concurrent callers, only one gets true. */
  endAuthorization(id: string): Promise<boolean>;
}

/**
 * Every implementation guarantees:
 * - Identifiers are stored only as hashes. An identifier outside `[A-Za-z0-9_-]{16,128}` is not looked up.
 * - An expired record is never returned, even if the store's own clock is wrong.
 * - Each method is one atomic step and one round trip. PostgreSQL needs up to two more round trips to find out why
 * nothing was issued. In Redis, a session and its index by uid are written in two steps.
 * - The store's clock decides about authorizations, so that nodes with different clocks never take an honest retry for
 * a replay.
 * - A step that is sent twice because its answer was lost succeeds twice: `attempt` distinguishes it from the step of
 * another caller.
 * - A store that does not answer, or cannot store what it was given, throws StorageUnavailable.
 */
export interface TokenStore extends AuthorizationStore {
  /** True if records are rows of the service's database, so that its transactions can end them. */
  readonly isInDatabase: boolean;

  read<Data>(kind: RecordKind, id: string): Promise<StoredRecord<Data> | undefined>;

  /** Stores `data` until `expiresAt` (seconds since the epoch); replaces an existing record. */
  write(kind: RecordKind, id: string, data: unknown, expiresAt: number): Promise<void>;

  /**
   * Like `write`, but only if the record exists, so that a removed record is not restored.
   * @returns true if the record existed
   */
  replace(kind: RecordKind, id: string, data: unknown, expiresAt: number): Promise<boolean>;

  /**
   * @returns true if the record existed. At most one of several concurrent callers gets true. No caller gets true if
   * the answer of the store was lost, and the store was asked again.
   */
  remove(kind: RecordKind, id: string): Promise<boolean>;

  /** Reads and removes a record in one step. Of several concurrent callers, only one gets it. */
  take<Data>(kind: RecordKind, id: string): Promise<StoredRecord<Data> | undefined>;

  /** A session can also be found by `uid`, which stays the same when `id` is renewed. */
  writeSession(id: string, uid: string, data: unknown, expiresAt: number): Promise<void>;
  /** Like `replace`, for a session. */
  replaceSession(id: string, uid: string, data: unknown, expiresAt: number): Promise<boolean>;
  readSessionByUid<Data>(uid: string): Promise<StoredRecord<Data> | undefined>;

  /**
   * Deletes at most `limit` expired records, unless the store deletes them itself.
   * @returns how many were deleted
   */
  removeExpired(limit: number): Promise<number>;

  /** Rejects if the store does not answer. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

/** An authorization is stored for this long after its code has expired, so that a replay of the code still ends it. */
export const REMEMBER_CODE_SECONDS = 3_600;
/** An authorization is stored for this long after its refresh token has expired, to answer "expired", not "unknown". */
export const REMEMBER_EXPIRED_SECONDS = 86_400;

/** Returns when the record may be deleted, in seconds since the epoch. */
export const forgottenAt = ({ rotation, usableUntil }: Pick<AuthorizationRecord, 'rotation' | 'usableUntil'>): number =>
  usableUntil + (rotation < 0 ? REMEMBER_CODE_SECONDS : REMEMBER_EXPIRED_SECONDS);

const ID = /^[A-Za-z0-9_-]{16,128}$/;

/** False for a value that cannot be an id of Gatehouse. Never pass it to a query or a store. */
export const isStorableId = (id: string): boolean => ID.test(id);

/** Hashes an id to 22 characters, 132 bits: no second id with the same hash can be found. */
export const keyOf = (id: string): string => sha256(id).slice(0, 22);
