/** Lists the current connections between users and clients, for the user or the operator. */
import {
  type ConnectionLimit,
  IS_LIMITED,
  LIMIT_COLUMN,
  type LimitJson,
  limitFrom,
} from '../accounts/access/access-limit.ts';
import type { Clock } from '../base/clock.ts';
import { mapPage, type Page, type PageRequest, pageOf } from '../storage/pages.ts';
import type { Queries } from '../storage/queries.ts';
import { hasEndedAt } from './consents.ts';

export interface ConnectedClient {
  readonly clientId: string;
  readonly name: string;
  /** Null if the operator provides the client. */
  readonly ownerName: string | null;
  /** When the current owner, or the operator, took over the client; null if the first owner still has the client. */
  readonly ownedSince: Date | null;
  readonly isSuspended: boolean;
  readonly connectedAt: Date;
  readonly approvedAt: Date;
  /** When the client was last used, accurate to five minutes; null if it was never used. */
  readonly lastUsedAt: Date | null;
  readonly limit: ConnectionLimit;
}

const UNUSED_MS = 90 * 86_400_000;

/** True if pages should propose to end the access, which was not used for 90 days. @param now epoch milliseconds */
export const isUnused = (lastUsedAt: Date | null, since: Date | null, now: number): boolean =>
  (lastUsedAt ?? since ?? new Date(now)).getTime() <= now - UNUSED_MS;

export interface ListedConnection
  extends Pick<ConnectedClient, 'clientId' | 'connectedAt' | 'approvedAt' | 'lastUsedAt' | 'limit'> {
  readonly id: string;
  readonly accountId: string;
  readonly email: string;
  readonly clientName: string;
}

/** SQL expression for a day as the operator sees it, so that a search finds the text on the page. */
const dayOf = (column: string): string => `coalesce(to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD'), 'never')`;

export const createConnectedClients = ({ database, clock }: { readonly database: Queries; readonly clock: Clock }) => ({
  /** Lists the clients connected to the user, the latest connection first. */
  async listOf(accountId: string): Promise<ConnectedClient[]> {
    const rows = await database.query<ConnectedClient & { readonly limit: LimitJson }>(
      `SELECT n.client_id AS "clientId", c.name, a.name AS "ownerName", c.owned_since AS "ownedSince",
          c.suspended_at IS NOT NULL AS "isSuspended", n.connected_at AS "connectedAt",
          n.approved_at AS "approvedAt", n.last_used_at AS "lastUsedAt", ${LIMIT_COLUMN} AS limit
        FROM connections n
        JOIN clients c ON c.id = n.client_id
        LEFT JOIN accounts a ON a.id = c.owner_account_id
        WHERE n.account_id = $1 AND NOT ${hasEndedAt('$2', 'c.ended_through')}
        ORDER BY n.connected_at DESC, n.client_id`,
      [accountId, new Date(clock())],
    );
    return rows.map((row) => ({ ...row, limit: limitFrom(row.limit) }));
  },

  /** Lists connections, latest first: all, or only those of a user, of a client, or of a user with a client. */
  async listBoth(
    { accountId, clientId }: { accountId?: string | undefined; clientId?: string | undefined },
    page: PageRequest = {},
  ): Promise<Page<ListedConnection>> {
    const found = await pageOf<ListedConnection & { readonly limit: LimitJson }>(
      database,
      {
        select: `SELECT n.account_id || '/' || n.client_id AS id, n.account_id AS "accountId", a.email,
            n.client_id AS "clientId", c.name AS "clientName", n.connected_at AS "connectedAt",
            n.approved_at AS "approvedAt", n.last_used_at AS "lastUsedAt", ${LIMIT_COLUMN} AS limit,
            CASE WHEN ${IS_LIMITED} THEN 'yes' ELSE '' END AS limited
          FROM connections n
          JOIN clients c ON c.id = n.client_id JOIN accounts a ON a.id = n.account_id
          -- As isCurrentSince, without a look-up for each row. PostgreSQL expects <> to hold for nearly all rows, so it
          -- reads them in the order of their index, and not all of them.
          WHERE n.ended_at IS NULL AND sign(n.client_generation - c.ended_through) <> -1
            AND (n.account_id = $1 OR $1::text IS NULL) AND (n.client_id = $2 OR $2::text IS NULL)`,
        order: ['"connectedAt"', '"accountId"', '"clientId"'],
        isDescending: true,
        hasId: (id) => `"accountId" = split_part(${id}, '/', 1) AND "clientId" = split_part(${id}, '/', 2)`,
        cells: ['id', 'email', '"clientName"', dayOf('"connectedAt"'), dayOf('"lastUsedAt"'), 'limited'],
        values: [accountId ?? null, clientId ?? null],
      },
      page,
    );
    return mapPage(found, (item) => ({ ...item, limit: limitFrom(item.limit) }));
  },
});
