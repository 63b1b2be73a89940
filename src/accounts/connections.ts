/** Which person connected which client: what they approved, and the grants that came of it. */
import type { Clock } from '../clock.ts';
import { Refusal, refuseViolations } from '../refusal.ts';
import type { WriteUses } from '../storage/last-used.ts';
import type { Alongside, Database } from '../storage/queries.ts';
import type { Organization } from './access.ts';

/** What the person saw when they approved. They are asked again when it is no longer so. */
export interface RememberedConsent {
  readonly name: string;
  /** As `redirectHosts` of the client answered. */
  readonly hosts: readonly string[];
}

/** A connection as the person sees it. */
export interface ConnectedClient {
  readonly clientId: string;
  readonly name: string;
  /** Absent where the operator provides the client. */
  readonly ownerName?: string;
  readonly isSuspended: boolean;
  readonly connectedAt: Date;
  /** The last time the person approved it; the first one is `connectedAt`. */
  readonly approvedAt: Date;
  /** What the person reached then; absent for an approval older than this record. */
  readonly approvedAccess?: readonly Organization[];
  /** To within five minutes; absent while nothing was asked for. */
  readonly lastUsedAt?: Date;
}

export interface Connections {
  /** What the person last approved for this client; undefined when they are not connected. */
  find(accountId: string, clientId: string): Promise<RememberedConsent | undefined>;
  /** Connects the person and the client, or renews what was approved. */
  rememberConsent(
    consent: Connection & RememberedConsent & { access?: readonly Organization[] },
  ): Promise<void>;
  /** Every client a person connected, the latest first. */
  listOf(accountId: string): Promise<ConnectedClient[]>;
  /** To be noted with `connectionId` as the id. */
  readonly writeUses: WriteUses;
  /**
   * Keeps a grant with its connection, so that ending the connection finds it. To be awaited before
   * anything is issued: a connection that is ended at the same moment wins.
   *
   * @throws Refusal `connection_missing`
   */
  recordGrant(grant: Connection & { grantId: string; expiresAt: Date }): Promise<void>;
  /** Who has the client connected: at most `limit` accounts, in the order of their ids. */
  accountsOf(clientId: string, page: { after?: string; limit: number }): Promise<string[]>;
  /** The ids of the grants of a connection, oldest first. */
  grantsOf(accountId: string, clientId: string): Promise<string[]>;
  /**
   * Forgets the connection and what was approved.
   *
   * @param alongside is told the ids of its grants, and not called when they are not connected.
   * @returns the ids of its grants, which the caller must now revoke; none when not connected.
   */
  end(
    accountId: string,
    clientId: string,
    alongside?: Alongside<readonly string[]>,
  ): Promise<string[]>;
  /** Forgets up to `limit` grants that are over. @returns how many it were. */
  removeExpiredGrants(limit: number): Promise<number>;
}

interface Connection {
  readonly accountId: string;
  readonly clientId: string;
}

/** The connection in one text. Neither id has a space. */
export const connectionId = ({ accountId, clientId }: Connection): string =>
  `${accountId} ${clientId}`;

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

    async rememberConsent({ accountId, clientId, name, hosts, access }) {
      await database.query(
        `INSERT INTO connections (account_id, client_id, connected_at, approved_at,
            consented_name, consented_hosts, approved_access)
          VALUES ($1, $2, $3, $3, $4, $5, $6)
          ON CONFLICT (account_id, client_id) DO UPDATE
            SET approved_at = excluded.approved_at,
              consented_name = excluded.consented_name,
              consented_hosts = excluded.consented_hosts,
              approved_access = excluded.approved_access`,
        [
          accountId,
          clientId,
          new Date(clock()),
          name,
          hosts,
          access ? JSON.stringify(access) : null,
        ],
      );
    },

    async listOf(accountId) {
      const rows = await database.query<ConnectedClientRow>(
        `SELECT n.client_id, c.name, a.name AS owner_name, c.suspended_at, n.connected_at,
            n.approved_at, n.approved_access, n.last_used_at
          FROM connections n
          JOIN clients c ON c.id = n.client_id
          LEFT JOIN accounts a ON a.id = c.owner_account_id
          WHERE n.account_id = $1
          ORDER BY n.connected_at DESC, n.client_id`,
        [accountId],
      );
      return rows.map(connectedClientFrom);
    },

    async writeUses(uses) {
      const ids = uses.map(({ id }) => id.split(' '));
      await database.query(
        `UPDATE connections n SET last_used_at = used.at
          FROM unnest($1::text[], $2::text[], $3::timestamptz[])
            AS used (account_id, client_id, at)
          WHERE n.account_id = used.account_id AND n.client_id = used.client_id
            AND (n.last_used_at IS NULL OR n.last_used_at < used.at)`,
        [ids.map(([id]) => id), ids.map(([, id]) => id), uses.map(({ at }) => at)],
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

    async accountsOf(clientId, { after = '', limit }) {
      const rows = await database.query<{ account_id: string }>(
        `SELECT account_id FROM connections
          WHERE client_id = $1 AND account_id > $2 ORDER BY account_id LIMIT $3`,
        [clientId, after, limit],
      );
      return rows.map((row) => row.account_id);
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

    end: (accountId, clientId, alongside) =>
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
        const grantIds = grants.map((row) => row.grant_id);
        const ended = await tx.query(
          'DELETE FROM connections WHERE account_id = $1 AND client_id = $2 RETURNING 1',
          connection,
        );
        if (ended.length > 0) await alongside?.(tx, grantIds);
        return grantIds;
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

interface ConnectedClientRow {
  readonly client_id: string;
  readonly name: string;
  readonly owner_name: string | null;
  readonly suspended_at: Date | null;
  readonly connected_at: Date;
  readonly approved_at: Date;
  readonly approved_access: Organization[] | null;
  readonly last_used_at: Date | null;
}

function connectedClientFrom(row: ConnectedClientRow): ConnectedClient {
  return {
    clientId: row.client_id,
    name: row.name,
    ...(row.owner_name !== null && { ownerName: row.owner_name }),
    isSuspended: row.suspended_at !== null,
    connectedAt: row.connected_at,
    approvedAt: row.approved_at,
    ...(row.approved_access !== null && { approvedAccess: row.approved_access }),
    ...(row.last_used_at !== null && { lastUsedAt: row.last_used_at }),
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
