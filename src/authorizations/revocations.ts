/** Records which authorizations and machine tokens were revoked, and why. Every check of a token reads this. */
import type { Activity, NewActivity, Origin } from '../accounts/activity/activity.ts';
import type { Details, EndingCause } from '../accounts/activity/activity-words.ts';
import { announcementSql } from '../storage/change-feed.ts';
import { refusalsExpiryJob } from '../storage/cleaning.ts';
import { removalOf } from '../storage/postgres-store.ts';
import { createParameters, type Database, type Queries, raise } from '../storage/queries.ts';
import { keyOf, REMEMBER_EXPIRED_SECONDS, type TokenStore } from '../storage/token-store.ts';
import type { Authorization } from './authorization.ts';

export interface Revocation {
  readonly authorization: Pick<Authorization, 'id' | 'accountId' | 'clientId' | 'generation' | 'usableUntil'>;
  readonly cause: EndingCause;
  readonly actor: NewActivity['actor'];
  readonly origin?: Origin;
  readonly details?: Details;
}

/** A revoked machine access token. The cause is not stored, because the client can get a new token. */
export interface MachineTokenEnd {
  readonly machineToken: string;
  readonly clientId: string;
  /** Epoch seconds; undefined if the token store has lost the token. */
  readonly expiresAt: number | undefined;
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

const RECORDED = `SELECT id, at, cause, account_id AS "accountId", client_id AS "clientId"
  FROM ended_authorizations`;

const FIRST = '(SELECT count(*) > 0 FROM recorded) AS "isFirst"';

/** How much longer a revocation is stored than the revoked token or authorization, because clocks differ. */
const MARGIN_SECONDS = 86_400;

/** The maximum of `tokens.machine_access_token`. */
const MAX_MACHINE_TOKEN_SECONDS = 86_400;

export type Revocations = ReturnType<typeof createRevocations>;

export function createRevocations(parts: { readonly database: Database; readonly activity: Pick<Activity, 'partOf'> }) {
  const { database, activity } = parts;
  /** The longest token lifetime, in seconds, that this process has stored. */
  let keptLifetime = 0;

  function authorizationSql(
    { authorization, cause, actor, origin, details: more }: Revocation,
    store: Pick<TokenStore, 'isInDatabase'>,
    use: (value: unknown) => string,
  ): string {
    const { id, accountId, clientId, usableUntil } = authorization;
    const details = { ...more, client_id: clientId, cause };
    const entry: NewActivity = { action: 'tokens_revoked', actor, accountId, details, origin };
    // Add REMEMBER_EXPIRED_SECONDS: for this time, the token store keeps an expired record, and a client that retries
    // still gets access tokens.
    const keptSeconds = REMEMBER_EXPIRED_SECONDS + MARGIN_SECONDS;
    // Use the later time: another node may be prolonging the record, or an older copy of the store may keep it longer.
    const forgottenAt = `greatest(to_timestamp(${use(usableUntil + keptSeconds)}), ${database.now()} +
      ((SELECT refresh_lifetime_seconds FROM lasting_numbers) + ${use(keptSeconds)}) * interval '1 second')`;
    // If the account was deleted, record nothing: its authorizations ended with the account.
    return `WITH recorded AS (
        INSERT INTO ended_authorizations (id, at, cause, account_id, client_id, forgotten_at)
        SELECT ${use(id)}, ${database.now()}, ${use(cause)}, id, ${use(clientId)}, ${forgottenAt}
          FROM accounts WHERE id = ${use(accountId)} FOR KEY SHARE
        ON CONFLICT DO NOTHING
        RETURNING jsonb_build_object('client_name', coalesce(
          (SELECT name FROM clients WHERE id = ended_authorizations.client_id), '')) AS details),
      entry AS (${activity.partOf(entry, 'recorded', use)})
      ${store.isInDatabase ? `, ended AS (${removalOf('authorization', id, use)})` : ''}
      SELECT ${announcementSql('authorizations', `${accountId} ${id}`, use)}, ${FIRST}`;
  }

  function machineTokenSql(
    { machineToken, clientId, expiresAt, entry }: MachineTokenEnd,
    store: Pick<TokenStore, 'isInDatabase'>,
    use: (value: unknown) => string,
  ): string {
    const forgottenAt = () =>
      expiresAt === undefined
        ? `${database.now()} + ${use(MAX_MACHINE_TOKEN_SECONDS + MARGIN_SECONDS)} * interval '1 second'`
        : `to_timestamp(${use(expiresAt + MARGIN_SECONDS)})`;
    const write = store.isInDatabase
      ? removalOf('machine_token', machineToken, use)
      : `INSERT INTO ended_machine_tokens (key, client_id, at, expires_at)
          VALUES (${use(keyOf(machineToken))}, ${use(clientId)}, ${database.now()}, ${forgottenAt()})
          ON CONFLICT DO NOTHING`;
    return `WITH recorded AS (${write} RETURNING '{}'::jsonb AS details)
      ${entry ? `, entry AS (${activity.partOf(entry, 'recorded', use)})` : ''}
      SELECT ${announcementSql('clients', clientId, use)}, ${FIRST}`;
  }

  return {
    async announce(key: string): Promise<void> {
      const { values, use } = createParameters();
      await database.query(`SELECT ${announcementSql('authorizations', key, use)}`, values);
    },

    /**
     * Stores the revocation, its log entry and its announcement to every node in one statement. The first recorded
     * cause stays.
     *
     * @param store if it is PostgreSQL, the statement also deletes the row of the token or authorization
     * @returns false if the revocation was recorded before
     */
    async record(end: End, store: Pick<TokenStore, 'isInDatabase'>): Promise<boolean> {
      const { values, use } = createParameters();
      const sql = 'machineToken' in end ? machineTokenSql(end, store, use) : authorizationSql(end, store, use);
      const [recorded] = await database.query<{ isFirst: boolean }>(sql, values);
      return recorded?.isFirst === true;
    },

    /**
     * Makes all nodes store each new revocation for at least this lifetime of refresh tokens. Must run before the node
     * issues such tokens, and at each reload: a restored database may contain a shorter lifetime.
     *
     * @throws StorageUnavailable unless this process has already stored this or a longer lifetime
     */
    async keepEndsFor(seconds: number): Promise<void> {
      try {
        // Tokens that this process issued with an earlier, longer lifetime may still be valid.
        const longest = Math.max(seconds, keptLifetime);
        await raise(database, 'refresh_lifetime_seconds', '$1', [longest]);
        keptLifetime = Math.max(longest, keptLifetime);
      } catch (error) {
        if (seconds > keptLifetime) throw error;
      }
    },

    async hasEndedToken({ machineToken, clientId }: Pick<MachineTokenEnd, 'machineToken' | 'clientId'>) {
      const text = 'SELECT 1 FROM ended_machine_tokens WHERE client_id = $1 AND key = $2';
      return (await database.query(text, [clientId, keyOf(machineToken)])).length > 0;
    },

    /** Returns this authorization's own revocation, if any, but not that of its connection. */
    async find(id: string): Promise<RecordedEnd | undefined> {
      const [end] = await database.query<RecordedEnd>(`${RECORDED} WHERE id = $1`, [id]);
      return end;
    },

    async forgetAccount(accountId: string, tx: Queries): Promise<void> {
      await tx.query('DELETE FROM ended_authorizations WHERE account_id = $1', [accountId]);
    },

    /** Removes the revocations of expired tokens. An expired token is refused even if the token store still has it. */
    removeExpired: refusalsExpiryJob(database, [
      { table: 'ended_authorizations', column: 'forgotten_at' },
      { table: 'ended_machine_tokens', column: 'expires_at' },
    ]),
  };
}
