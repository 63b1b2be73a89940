/** Stores the limits that users set on connected clients, and ends connections on the date in their limit. */
import type { ConnectionLimit } from '../accounts/access/access-limit.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { hasEndedAt, isLimit } from './consents.ts';

export interface Connection {
  readonly accountId: string;
  readonly clientId: string;
}

export interface EndedConnection extends Connection {
  readonly name: string;
}

/** SQL assignments that end the connection `n`. Uses `greatest`, because the clock of the start may have been ahead. */
export const endedBy = ({ now }: Queries, cause: string): string =>
  `generation = n.generation + 1, ended_at = greatest(${now()}, n.connected_at), ended_cause = ${cause},
    limit_places = NULL, limit_read_only = false, limit_until = NULL`;

export const setLimit = (
  database: Database,
  { accountId, clientId, limit: seen }: Connection & { readonly limit: ConnectionLimit },
  { places, isReadOnly, until }: ConnectionLimit,
  { now, inTransaction }: { readonly now: Date; readonly inTransaction: InTransaction | undefined },
): Promise<boolean> =>
  transactionOf(database, accountId, async (tx) => {
    const rows = await tx.query(
      `UPDATE connections n SET limit_places = $3::text[], limit_read_only = $4, limit_until = $5
        WHERE account_id = $1 AND client_id = $2 AND NOT ${hasEndedAt('$6')}
          AND ${isLimit('$7', '$8', '$9')} RETURNING 1`,
      [accountId, clientId, places, isReadOnly, until, now, seen.places, seen.isReadOnly, seen.until],
    );
    if (rows.length > 0) await inTransaction?.(tx, undefined);
    return rows.length > 0;
  });

export const endDue = (
  database: Database,
  limit: number,
  inTransaction: InTransaction<readonly EndedConnection[]>,
): Promise<number> =>
  database.transaction(async (tx) => {
    const ended = await tx.query<EndedConnection>(
      `UPDATE connections n SET ${endedBy(tx, "'time_limit'")}
        FROM clients c
        WHERE c.id = n.client_id AND n.ctid = ANY (ARRAY(
          SELECT n.ctid FROM connections n
          WHERE n.limit_until <= ${tx.now()} AND ended_at IS NULL
          ORDER BY limit_until LIMIT $1 FOR UPDATE SKIP LOCKED))
        RETURNING n.account_id AS "accountId", n.client_id AS "clientId", c.name`,
      [limit],
    );
    await inTransaction(tx, ended);
    return ended.length;
  });
