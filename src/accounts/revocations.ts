/** Why authorizations ended: what the person, the audit and `explain` can still be told about them. */
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Database, Queries } from '../storage/queries.ts';
import type { Activity, NewActivity, Origin } from './activity.ts';

export type RevocationCause =
  /** The client, or whoever held its access token, ended it at one of the revocation endpoints. */
  | 'client_revoked'
  /** RFC 6749 §4.1.2: a used authorization code was presented again. */
  | 'code_replayed'
  /** RFC 9700 §4.14.2: a refresh token was presented that had been replaced. */
  | 'refresh_token_replayed'
  | 'person_disconnected'
  | 'operator_revoked'
  | 'client_deleted';

/** A grant as PostgreSQL remembers it; whether it is still good, the token store decides. */
export interface RememberedGrant {
  readonly accountId: string;
  readonly clientId: string;
  /** Absent where it was not revoked, or nothing could be recorded. */
  readonly revoked?: { readonly at: Date; readonly cause: RevocationCause };
  /** When it began and when it ends by itself; absent once its connection is gone. */
  readonly createdAt?: Date;
  readonly expiresAt?: Date;
}

export interface Revocation {
  readonly grantId: string;
  readonly cause: RevocationCause;
  readonly actor: NewActivity['actor'];
  readonly origin?: Origin;
}

export interface Revocations {
  /** Keeps it with the grant's connection; the first cause stays. Nothing for a grant of none. */
  record(revocation: Revocation, tx?: Queries): Promise<void>;
  /**
   * The same, to be called after the revocation itself, which neither waits for it nor depends on
   * it: it is written a moment later, and lost when the database is away.
   */
  note(revocation: Revocation): void;
  /** For the grants of a connection that ends as a whole, in its transaction. */
  recordAll(grants: EndedGrants, tx: Queries): Promise<void>;
  /** What is remembered of a grant, good or not; undefined for one that nobody ever heard of. */
  find(grantId: string): Promise<RememberedGrant | undefined>;
  /** Forgets at most `limit` that are older than `olderThan`. @returns how many it were. */
  removeOlderThan(olderThan: Date, limit: number): Promise<number>;
  /** Writes what was noted. */
  close(): Promise<void>;
}

export interface EndedGrants {
  readonly grantIds: readonly string[];
  readonly accountId: string;
  readonly clientId: string;
  readonly cause: RevocationCause;
}

interface RememberedGrantRow {
  readonly account_id: string;
  readonly client_id: string;
  readonly at: Date | null;
  readonly cause: RevocationCause | null;
  readonly created_at: Date | null;
  readonly expires_at: Date | null;
}

export function createRevocations(parts: {
  readonly database: Database;
  readonly clock: Clock;
  readonly activity: Activity;
  /** Told of what was noted and could not be written. */
  readonly log: Pick<Logger, 'warn'>;
}): Revocations {
  const { database, clock, activity, log } = parts;
  const underWay = new Set<Promise<void>>();

  async function write({ grantId, cause, actor, origin }: Revocation, tx: Queries): Promise<void> {
    const [revoked] = await tx.query<{ account_id: string; client_id: string; name: string }>(
      `WITH revoked AS (
          INSERT INTO revoked_grants (grant_id, at, cause, account_id, client_id)
          SELECT grant_id, $2, $3, account_id, client_id
            FROM connection_grants WHERE grant_id = $1
          ON CONFLICT DO NOTHING
          RETURNING account_id, client_id)
        SELECT account_id, client_id, name FROM revoked JOIN clients ON clients.id = client_id`,
      [grantId, new Date(clock()), cause],
    );
    if (!revoked) return;
    const { account_id: accountId, client_id, name: client_name } = revoked;
    const details = { client_id, client_name, cause };
    const entry: NewActivity = { action: 'tokens_revoked', actor, accountId, details, origin };
    await activity.record(entry, tx);
  }

  const record: Revocations['record'] = (revocation, tx) =>
    tx ? write(revocation, tx) : database.transaction((own) => write(revocation, own));

  return {
    record,

    note(revocation) {
      const written = record(revocation)
        .catch((err: unknown) => {
          const { grantId: _, ...about } = revocation;
          log.warn({ err, ...about }, 'why a grant was revoked could not be recorded');
        })
        .finally(() => underWay.delete(written));
      underWay.add(written);
    },

    async recordAll({ grantIds, accountId, clientId, cause }, tx) {
      await tx.query(
        `INSERT INTO revoked_grants (grant_id, at, cause, account_id, client_id)
          SELECT grant_id, $2, $3, $4, $5 FROM unnest($1::text[]) AS ended (grant_id)
          ON CONFLICT DO NOTHING`,
        [grantIds, new Date(clock()), cause, accountId, clientId],
      );
    },

    async find(grantId) {
      const [row] = await database.query<RememberedGrantRow>(
        `SELECT coalesce(g.account_id, r.account_id) AS account_id,
            coalesce(g.client_id, r.client_id) AS client_id,
            r.at, r.cause, g.created_at, g.expires_at
          FROM (SELECT $1 AS grant_id) asked
          LEFT JOIN connection_grants g USING (grant_id)
          LEFT JOIN revoked_grants r USING (grant_id)
          WHERE g.grant_id IS NOT NULL OR r.grant_id IS NOT NULL`,
        [grantId],
      );
      if (!row) return undefined;
      const { at, cause, created_at: createdAt, expires_at: expiresAt } = row;
      return {
        accountId: row.account_id,
        clientId: row.client_id,
        ...(at && cause && { revoked: { at, cause } }),
        ...(createdAt && { createdAt }),
        ...(expiresAt && { expiresAt }),
      };
    },

    async removeOlderThan(olderThan, limit) {
      const removed = await database.query(
        `DELETE FROM revoked_grants WHERE grant_id IN (
            SELECT grant_id FROM revoked_grants
            WHERE at < $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING 1`,
        [olderThan, limit],
      );
      return removed.length;
    },

    async close() {
      await Promise.all(underWay);
    },
  };
}
