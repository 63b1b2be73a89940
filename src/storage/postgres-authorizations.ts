/** Authorizations on PostgreSQL. Each is one row, and each change is one statement. */
import { type Clock, epochSeconds } from '../base/clock.ts';
import { type Queries, type RowOf, withoutNulls } from './queries.ts';
import {
  type AuthorizationRecord,
  type AuthorizationStore,
  type Issue,
  isStorableId,
  keyOf,
  REMEMBER_CODE_SECONDS,
  REMEMBER_EXPIRED_SECONDS,
} from './token-store.ts';

// The database's clock plus the milliseconds in `$1`, which only tests use.
const CLOCK = `
  (SELECT ms, ms / 1000 AS now FROM (
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1::bigint AS ms) t) clock`;

const BEGIN = `
  INSERT INTO authorizations (key, account_id, client_id, generation, secret, redirect_uri_hash,
    code_challenge_hash, approved_at, ends_at, rotation, attempt, rotated_at, confirmed,
    usable_until, forgotten_at, client_generation)
  SELECT $2, $3, $4, $5::integer, $6, $7, $8, now, now + $10::bigint, -1, '', ms, false,
    now + $9::bigint, now + $9::bigint + ${REMEMBER_CODE_SECONDS}, $11::integer
  FROM ${CLOCK}`;

const ISSUED = 'a.attempt, a.rotation, now::float8, a.usable_until::float8 AS "usableUntil"';

const READ_AUTHORIZATION = `
  SELECT account_id AS "accountId", client_id AS "clientId", generation, secret,
    redirect_uri_hash AS "redirectUriHash", code_challenge_hash AS "codeChallengeHash",
    approved_at::float8 AS "approvedAt", ends_at::float8 AS "endsAt", rotation,
    rotated_at::float8 AS "rotatedAt", confirmed AS "isConfirmed", usable_until::float8 AS "usableUntil",
    client_generation AS "clientGeneration", since_rotation AS "sinceRotation"
  FROM authorizations WHERE key = $1 AND forgotten_at > $2`;

const isThere = 'a.key = $2 AND a.forgotten_at > now';
const usableUntil = (seconds: string): string => `least(now + ${seconds}::bigint, a.ends_at)`;

// A code can be exchanged only once, except by a repetition of the same attempt. A concurrent exchange waits for the
// row.
const EXCHANGE = `
  UPDATE authorizations a SET rotation = 0, attempt = $3, rotated_at = ms,
    usable_until = ${usableUntil('$4')},
    forgotten_at = ${usableUntil('$4')} + ${REMEMBER_EXPIRED_SECONDS}
  FROM ${CLOCK}
  WHERE ${isThere}
    AND (a.rotation = -1 AND a.usable_until > now OR a.rotation = 0 AND a.attempt = $3)
  RETURNING ${ISSUED}`;

const EXCHANGED_BEFORE = 'a.rotation > 0 OR a.rotation = 0 AND a.attempt <> $3';

// After a renewal of the client, an authorization accepts the refresh token that is presented first, even an older one.
// Until the next refresh, requests with other older tokens are handled as retries.
const isFirst = 'a.client_generation < $6::integer';
const isCurrent = `(${isFirst} OR a.rotation <= $4::integer)`;
const isRetry = `(a.rotation = $4::integer + 1 OR a.rotation = a.since_rotation)
  AND (a.attempt = $3 OR $5::bigint > 0 AND (NOT a.confirmed OR ms - a.rotated_at < $5 * 1000))`;

const nextRotation = 'greatest(a.rotation, $4::integer) + 1';

// Accept a refresh token with a higher rotation than the record ($4 > rotation): the store has lost its last writes. If
// the store has also lost the exchange of the code (rotation -1), ignore usable_until, which is still the expiry of the
// code. A retry does not change the record. Refuse a client that authenticated before its renewal (the record has a
// later generation): the caller may have a stolen secret.
const ROTATE = `
  UPDATE authorizations a SET
    rotation = CASE WHEN ${isCurrent} THEN ${nextRotation} ELSE a.rotation END,
    since_rotation = CASE WHEN ${isFirst} THEN ${nextRotation} ELSE a.since_rotation END,
    client_generation = $6,
    attempt = CASE WHEN ${isCurrent} THEN $3 ELSE a.attempt END,
    rotated_at = CASE WHEN ${isCurrent} THEN ms ELSE a.rotated_at END,
    confirmed = CASE WHEN ${isCurrent} THEN false ELSE a.confirmed END,
    usable_until = CASE WHEN ${isCurrent} THEN ${usableUntil('$7')} ELSE a.usable_until END,
    forgotten_at = CASE WHEN ${isCurrent} THEN ${usableUntil('$7')} + ${REMEMBER_EXPIRED_SECONDS}
      ELSE a.forgotten_at END
  FROM ${CLOCK}
  WHERE ${isThere} AND (a.ends_at IS NULL OR a.ends_at > now) AND a.client_generation <= $6
    AND (a.rotation < 0 OR a.usable_until > now) AND (${isCurrent} OR ${isRetry})
  RETURNING ${ISSUED}`;

// True for a replay: the token is older than the predecessor, or the predecessor can no longer be retried.
const ROTATED_BEFORE = `a.client_generation = $6::integer AND a.rotation > $4::integer AND NOT (${isRetry})
  AND (a.ends_at IS NULL OR a.ends_at > now)`;

// Checks the condition again: the row may have changed since the first statement refused the token.
const IS_REPLAYED = (condition: string): string => `
  SELECT 1 FROM authorizations a, ${CLOCK} WHERE ${isThere} AND (${condition})`;

const CONFIRM = `
  UPDATE authorizations SET confirmed = true
  WHERE key = $1 AND rotation = $2 AND NOT confirmed`;

export function createPostgresAuthorizations(parts: {
  database: Queries;
  clock: Clock;
  timeShift: () => number;
}): AuthorizationStore {
  const { database, clock, timeShift } = parts;
  async function readAuthorization(key: string): Promise<AuthorizationRecord | undefined> {
    const values = [key, epochSeconds(clock)];
    const [row] = await database.query<RowOf<AuthorizationRecord>>(READ_AUTHORIZATION, values);
    return row && withoutNulls<AuthorizationRecord>(row);
  }

  /**
   * Issues tokens with one statement. If nothing is issued, further statements find out why.
   * @param refreshSeconds the last parameter of `text`. `usedBefore` does not have this parameter.
   */
  async function issue(
    [text, usedBefore]: readonly [text: string, usedBefore: string],
    [shift, key, attempt, ...rest]: readonly [number, string, string, ...number[]],
    refreshSeconds: number,
    clientGeneration = Number.POSITIVE_INFINITY,
  ): Promise<Issue> {
    const values = [shift, key, attempt, ...rest];
    const [row] = await database.query<{
      readonly attempt: string;
      readonly rotation: number;
      readonly now: number;
      readonly usableUntil: number;
    }>(text, [...values, refreshSeconds]);
    if (row) {
      const { attempt: stored, ...issued } = row;
      return { outcome: stored === attempt ? 'issued' : 'retried', ...issued };
    }
    const replayed = await database.query(IS_REPLAYED(usedBefore), values);
    if (replayed.length > 0) return { outcome: 'replayed' };
    const left = await readAuthorization(key);
    if (!left) return { outcome: 'missing' };
    if (left.clientGeneration > clientGeneration) return { outcome: 'renewed' };
    return { outcome: left.endsAt !== undefined && isOver(left.endsAt) ? 'too_old' : 'expired' };
  }

  const isOver = (seconds: number): boolean => seconds * 1000 <= clock();

  return {
    async beginAuthorization(id, facts, { codeSeconds, absoluteSeconds, clientGeneration = 0 }) {
      await database.query(BEGIN, [
        timeShift(),
        keyOf(id),
        facts.accountId,
        facts.clientId,
        facts.generation,
        facts.secret,
        facts.redirectUriHash,
        facts.codeChallengeHash ?? null,
        codeSeconds,
        absoluteSeconds ?? null,
        clientGeneration,
      ]);
    },

    async readAuthorization(id) {
      return isStorableId(id) ? readAuthorization(keyOf(id)) : undefined;
    },

    async exchangeCode(id, { attempt, refreshSeconds }) {
      if (!isStorableId(id)) return { outcome: 'missing' };
      const values = [timeShift(), keyOf(id), attempt] as const;
      return issue([EXCHANGE, EXCHANGED_BEFORE], values, refreshSeconds);
    },

    async rotate(id, { from, attempt, refreshSeconds, retryWindowSeconds, clientGeneration = 0 }) {
      if (!isStorableId(id)) return { outcome: 'missing' };
      const values = [timeShift(), keyOf(id), attempt, from, retryWindowSeconds, clientGeneration] as const;
      return issue([ROTATE, ROTATED_BEFORE], values, refreshSeconds, clientGeneration);
    },

    async confirmRotation(id, rotation) {
      await database.query(CONFIRM, [keyOf(id), rotation]);
    },

    async endAuthorization(id) {
      if (!isStorableId(id)) return false;
      const removed = await database.query(
        'DELETE FROM authorizations WHERE key = $1 AND forgotten_at > $2 RETURNING 1',
        [keyOf(id), epochSeconds(clock)],
      );
      return removed.length === 1;
    },
  };
}
