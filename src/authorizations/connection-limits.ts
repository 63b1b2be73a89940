/** Stores the limits that users set on connected clients, and ends connections on the date in their limit. */
import type { ConnectionLimit } from '../accounts/access/access-limit.ts';
import type { People } from '../accounts/access/people.ts';
import type { Clock } from '../base/clock.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { Database, InTransaction, Queries } from '../storage/queries.ts';
import { type Connection, connectionId, hasEndedAt, isLimit } from './consents.ts';

export interface EndedConnection extends Connection {
  readonly name: string;
}

/** SQL assignments that end the connection `n`. Uses `greatest`, because `connected_at` may come from a fast clock. */
export const endedBy = ({ now }: Queries, cause: string): string =>
  `generation = n.generation + 1, ended_at = greatest(${now()}, n.connected_at), ended_cause = ${cause},
    limit_places = NULL, limit_read_only = false, limit_until = NULL`;

export const createConnectionLimits = ({
  database,
  clock,
  people,
}: {
  readonly database: Database;
  readonly clock: Clock;
  readonly people: Pick<People, 'forget'>;
}) => ({
  /**
   * Changes the limit of the client's access, from the client's next request on. `inTransaction` runs only if the
   * limit was changed.
   *
   * @returns false if there is no connection, or the limit is no longer `connection.limit`, which the user saw
   */
  async limit(
    connection: Connection & { readonly limit: ConnectionLimit },
    { places, isReadOnly, until }: ConnectionLimit,
    inTransaction?: InTransaction,
  ): Promise<boolean> {
    const { accountId, clientId, limit: seen } = connection;
    const now = new Date(clock());
    const isChanged = await transactionOf(database, accountId, async (tx) => {
      const rows = await tx.query(
        `UPDATE connections n SET limit_places = $3::text[], limit_read_only = $4, limit_until = $5
          WHERE account_id = $1 AND client_id = $2 AND NOT ${hasEndedAt('$6')}
            AND ${isLimit('$7', '$8', '$9')} RETURNING 1`,
        [accountId, clientId, places, isReadOnly, until, now, seen.places, seen.isReadOnly, seen.until],
      );
      if (rows.length > 0) await inTransaction?.(tx);
      return rows.length > 0;
    });
    if (isChanged) people.forget('connections', connectionId(connection));
    return isChanged;
  },

  /** Ends at most `limit` connections whose end date has passed, like `end`. @returns how many were ended */
  endDue: (limit: number, inTransaction: InTransaction<readonly EndedConnection[]>): Promise<number> =>
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
    }),
});
