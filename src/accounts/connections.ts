/** Which person connected which client: what they approved, and the grants that came of it. */
import type { Clock } from '../clock.ts';
import { Refusal, refuseViolations } from '../refusal.ts';
import type { Database } from '../storage/queries.ts';

/** What the person saw when they approved. They are asked again when it is no longer so. */
export interface RememberedConsent {
  readonly name: string;
  /** As `redirectHosts` of the client answered. */
  readonly hosts: readonly string[];
}

export interface Connections {
  /** What the person last approved for this client; undefined when they are not connected. */
  find(accountId: string, clientId: string): Promise<RememberedConsent | undefined>;
  /** Connects the person and the client, or renews what was approved. */
  rememberConsent(consent: Connection & RememberedConsent): Promise<void>;
  /**
   * Keeps a grant with its connection, so that ending the connection finds it. To be awaited before
   * anything is issued: a connection that is ended at the same moment wins.
   *
   * @throws Refusal `connection_missing`
   */
  recordGrant(grant: Connection & { grantId: string; expiresAt: Date }): Promise<void>;
  /** The ids of the grants of a connection, oldest first. */
  grantsOf(accountId: string, clientId: string): Promise<string[]>;
  /**
   * Forgets the connection and what was approved.
   *
   * @returns the ids of its grants, which the caller must now revoke; none when not connected.
   */
  end(accountId: string, clientId: string): Promise<string[]>;
  /** Forgets up to `limit` grants that are over. @returns how many it were. */
  removeExpiredGrants(limit: number): Promise<number>;
}

interface Connection {
  readonly accountId: string;
  readonly clientId: string;
}

export function createConnections(parts: {
  readonly database: Database;
  readonly clock: Clock;
}): Connections {
  const { database, clock } = parts;

  return {
    async find(accountId, clientId) {
      const [row] = await database.query<RememberedConsent>(
        `SELECT consented_name AS name, consented_hosts AS hosts
          FROM connections WHERE account_id = $1 AND client_id = $2`,
        [accountId, clientId],
      );
      return row;
    },

    async rememberConsent({ accountId, clientId, name, hosts }) {
      await database.query(
        `INSERT INTO connections
            (account_id, client_id, connected_at, consented_name, consented_hosts)
          VALUES ($1, $2, $3, $4, $5)
          ON CONFLICT (account_id, client_id) DO UPDATE
            SET consented_name = excluded.consented_name,
              consented_hosts = excluded.consented_hosts`,
        [accountId, clientId, new Date(clock()), name, hosts],
      );
    },

    async recordGrant({ grantId, accountId, clientId, expiresAt }) {
      await refuseViolations(
        { connection_grants_connection_fkey: missingConnection },
        database.query(
          `INSERT INTO connection_grants (grant_id, account_id, client_id, created_at, expires_at)
            VALUES ($1, $2, $3, $4, $5)`,
          [grantId, accountId, clientId, new Date(clock()), expiresAt],
        ),
      );
    },

    async grantsOf(accountId, clientId) {
      const rows = await database.query<GrantRow>(
        `SELECT grant_id FROM connection_grants
          WHERE account_id = $1 AND client_id = $2
          ORDER BY created_at, grant_id`,
        [accountId, clientId],
      );
      return rows.map((row) => row.grant_id);
    },

    end: (accountId, clientId) =>
      database.transaction(async (tx) => {
        const connection = [accountId, clientId];
        // Waits for grants that are being recorded and keeps further ones out: none is recorded
        // between the list below and the end, and so left alive and unknown.
        await tx.query(
          'SELECT FROM connections WHERE account_id = $1 AND client_id = $2 FOR UPDATE',
          connection,
        );
        const grants = await tx.query<GrantRow>(
          `DELETE FROM connection_grants WHERE account_id = $1 AND client_id = $2
            RETURNING grant_id`,
          connection,
        );
        await tx.query(
          'DELETE FROM connections WHERE account_id = $1 AND client_id = $2',
          connection,
        );
        return grants.map((row) => row.grant_id);
      }),

    async removeExpiredGrants(limit) {
      // Several nodes may do this at once: each takes rows that no other one is deleting.
      const removed = await database.query(
        `DELETE FROM connection_grants WHERE grant_id IN (
            SELECT grant_id FROM connection_grants
            WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED
          ) RETURNING grant_id`,
        [new Date(clock()), limit],
      );
      return removed.length;
    },
  };
}

interface GrantRow {
  readonly grant_id: string;
}

function missingConnection(): Refusal {
  return new Refusal(
    'connection_missing',
    'The connection was ended while the grant was made.',
    'Ask the person for consent again.',
  );
}
