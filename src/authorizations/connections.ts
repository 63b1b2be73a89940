/** Connections of users with clients: what was approved, and which authorizations are valid. */
import { type ConnectionLimit, LIMIT_COLUMN, type LimitJson, limitFrom } from '../accounts/access/access-limit.ts';
import { createPeople, type People, type Person, type PersonConnection } from '../accounts/access/people.ts';
import type { EndingCause } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../base/clock.ts';
import type { Client } from '../clients/client.ts';
import { countOfPeople } from '../clients/client-row.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import type { WriteUses } from '../storage/last-used.ts';
import { beyondLost, type Database, type InTransaction, type Queries, raise } from '../storage/queries.ts';
import { createConnectedClients } from './connected-clients.ts';
import { createConnectionLimits, type EndedConnection, endedBy } from './connection-limits.ts';
import {
  type Connection,
  connectionId,
  createConsents,
  hasEndedAt,
  type RememberedConsent,
  recordedIn,
  type SilentPlace,
} from './consents.ts';

export type Connections = ReturnType<typeof createConnections>;

export type Whose = Connection | { readonly accountId: string; readonly clientId?: undefined };

/** The approved consent, and the generation of the authorizations that are issued for this consent. */
export interface ConnectedConsent extends RememberedConsent {
  /** False if the client has had another owner since the approval. The value is current, unlike a cached client. */
  readonly isSameOwner: boolean;
  readonly generation: number;
  readonly clientGeneration: number;
  /** The current value of `Client.alwaysAsks`; a cached client may be slightly older. */
  readonly alwaysAsks: boolean;
  /** The kinds of browsers in which a code was issued in the last day without asking the user. */
  readonly recordedIn: readonly SilentPlace[];
  readonly limit: ConnectionLimit;
}

/** Maximum number of connections that one statement changes, so that concurrent requests do not wait long. */
export const BATCH = 1_000;

export const connectionIn = ({ connections }: Person, clientId: string): PersonConnection | undefined =>
  connections.find(([id]) => id === clientId);

const generationIn = (person: Person, clientId: string): number | undefined => connectionIn(person, clientId)?.[1];

/** The returned test for `People.find` rejects a cached user whose connection has a lower generation than `seen`. */
export const hasGeneration =
  (clientId: string, seen: number) =>
  (person: Person): boolean =>
    (generationIn(person, clientId) ?? 0) >= seen;

export function createConnections(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly people?: People;
}) {
  const { database, clock, people = createPeople(parts) } = parts;

  return {
    ...createConnectedClients({ database, clock }),
    ...createConnectionLimits({ database, clock, people }),
    ...createConsents({ database, people }),

    async find(accountId: string, clientId: string): Promise<ConnectedConsent | undefined> {
      const [row] = await database.query<ConnectedConsent & { limit: LimitJson }>(
        `SELECT consented_name AS name, consented_hosts AS hosts, consented_owned_since AS "ownedSince",
            n.generation, c.generation AS "clientGeneration",
            c.always_asks AS "alwaysAsks", ${recordedIn(database.now())} AS "recordedIn",
            ${LIMIT_COLUMN} AS limit,
            -- Pages know times in milliseconds.
            consented_owned_since IS NOT DISTINCT FROM date_trunc('milliseconds', c.owned_since)
              AS "isSameOwner"
          FROM connections n JOIN clients c ON c.id = client_id
          WHERE account_id = $1 AND client_id = $2 AND NOT ${hasEndedAt('$3', 'c.ended_through')}`,
        [accountId, clientId, new Date(clock())],
      );
      return row && { ...row, limit: limitFrom(row.limit) };
    },

    /** Stores when connections were last used. The ids are results of `connectionId`. */
    async writeUses(uses: Parameters<WriteUses>[0]): Promise<void> {
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

    /**
     * Returns the generation of valid authorizations; undefined if the user and client were never connected.
     *
     * @param seen the generation that the caller has seen. An older cached connection is read again, because another
     *   node may just have connected them.
     */
    async generationOf(accountId: string, clientId: string, seen = 0): Promise<number | undefined> {
      const person = await people.find(accountId, hasGeneration(clientId, seen));
      return person && generationIn(person, clientId);
    },

    async countOf(clientId: string, which?: 'current' | 'unmarked'): Promise<number> {
      const count = countOfPeople('$1', which);
      const [row] = await database.query<{ count: number }>(`SELECT ${count} AS count`, [clientId]);
      return row?.count ?? 0;
    },

    /**
     * Ends connections and all their authorizations: one statement raises the generation of each connection. The
     * statement needs neither a list of authorizations nor the token store.
     *
     * @param whose all connections of a user, or only the connection with one client
     * @param inTransaction runs in the same transaction, even if there was nothing to end
     * @param within the caller's transaction, used instead of a new one. This node may use its cached connections until
     * the database's notification arrives, unless the caller clears the cache after the commit.
     * @returns the ended connections
     */
    async end(
      whose: Whose,
      cause: EndingCause,
      inTransaction?: InTransaction<readonly EndedConnection[]>,
      within?: Queries,
    ): Promise<readonly EndedConnection[]> {
      const { accountId, clientId = null } = whose;
      const end = async (tx: Queries): Promise<EndedConnection[]> => {
        const connections = await tx.query<EndedConnection>(
          `UPDATE connections n SET ${endedBy(tx, '$3')}
            FROM clients c
            WHERE n.ended_at IS NULL AND c.id = n.client_id AND n.account_id = $1
              AND (n.client_id = $2 OR $2::text IS NULL)
            RETURNING n.account_id AS "accountId", n.client_id AS "clientId", c.name`,
          [accountId, clientId, cause],
        );
        await inTransaction?.(tx, connections);
        return connections;
      };
      // Do not clear the cache here: before the caller's commit, a reader would cache the old connection again.
      if (within) return end(within);
      const ended = await transactionOf(database, whose.accountId, end);
      // Clear the cache now, so that the caller sees the change before the notification arrives.
      for (const connection of ended) people.forget('connections', connectionId(connection));
      return ended;
    },

    /**
     * Marks up to `BATCH` connections that `ClientRegistry.revoke` has ended, because one statement for all could take
     * too long. Skips users who have approved the client again.
     *
     * @param after the last account of the previous batch
     * @returns the marked connections, ordered by account. Fewer than `BATCH` mean that none is left.
     */
    async endSome(
      clientId: string,
      cause: EndingCause,
      after: string | undefined,
      inTransaction: InTransaction<readonly EndedConnection[]>,
    ): Promise<readonly EndedConnection[]> {
      const ended = await database.transaction(async (tx) => {
        const connections = await tx.query<EndedConnection>(
          // Lock the rows in the subquery that has the LIMIT. If another transaction has changed one of the rows,
          // PostgreSQL then takes the next row, so the batch is full.
          `WITH next AS (
              SELECT account_id FROM connections
              WHERE client_id = $1 AND ended_at IS NULL AND ($3::text IS NULL OR account_id > $3)
                AND client_generation < (SELECT ended_through FROM clients WHERE id = $1)
              ORDER BY account_id LIMIT $4 FOR UPDATE),
            ended AS (
              UPDATE connections n SET ${endedBy(tx, '$2')}
              FROM next
              WHERE n.client_id = $1 AND n.account_id = next.account_id AND n.ended_at IS NULL
                AND n.client_generation < (SELECT ended_through FROM clients WHERE id = $1)
              RETURNING n.account_id)
            SELECT account_id AS "accountId", c.id AS "clientId", c.name
            FROM ended JOIN clients c ON c.id = $1 ORDER BY account_id`,
          [clientId, cause, after ?? null, BATCH],
        );
        await inTransaction(tx, connections);
        return connections;
      });
      for (const connection of ended) people.forget('connections', connectionId(connection));
      return ended;
    },

    /**
     * Removes up to `BATCH` connections of a client, even ended ones, because one statement for all could take too
     * long. The client must be suspended, so that no connection is added.
     *
     * @param inTransaction receives the ids of the disconnected accounts
     * @returns how many users were disconnected; undefined if no connection was left
     */
    removeSome: (
      { id: clientId, ownerAccountId }: Pick<Client, 'id' | 'ownerAccountId'>,
      inTransaction: InTransaction<readonly string[]>,
    ): Promise<number | undefined> =>
      transactionOf(database, ownerAccountId, async (tx) => {
        // Order by client, so that PostgreSQL uses the index, and does not visit rows that earlier batches removed.
        const rows = await tx.query<{ account_id: string; has_ended: boolean }>(
          `DELETE FROM connections WHERE ctid = ANY (ARRAY(
              SELECT ctid FROM connections WHERE client_id BETWEEN $1 AND $1
              ORDER BY client_id LIMIT $2 FOR UPDATE))
            RETURNING account_id, ended_at IS NOT NULL AS has_ended`,
          [clientId, BATCH],
        );
        const people = rows.filter((row) => !row.has_ended).map((row) => row.account_id);
        await inTransaction(tx, people);
        return rows.length > 0 ? people.length : undefined;
      }),

    /**
     * Ends all authorizations in batches, but keeps the approvals. For use after a restore, because the restored
     * database lacks the latest revocations. If interrupted, it can be run again.
     *
     * @returns the number of connections
     */
    async endEveryAuthorization(onProgress: (done: number) => void): Promise<number> {
      let done = 0;
      let after: string | undefined;
      // First, raise the generation with which new connections begin. The lock waits for approvals in progress, and the
      // loop below raises the generations of their connections.
      await database.transaction(async (tx) => {
        await tx.query('LOCK TABLE connections IN SHARE ROW EXCLUSIVE MODE');
        await raise(tx, 'first_generation', beyondLost('first_generation'));
      });
      for (;;) {
        const rows = await database.query<{ account_id: string; connections: number }>(
          `WITH next AS (
              SELECT account_id FROM connections WHERE $1::text IS NULL OR account_id > $1
              ORDER BY account_id LIMIT $2),
            raised AS (
              UPDATE connections n SET generation = ${beyondLost('generation')}
              FROM (SELECT DISTINCT account_id FROM next) AS whose
              WHERE n.account_id = whose.account_id RETURNING n.account_id)
            SELECT account_id, count(*)::integer AS connections FROM raised
            GROUP BY account_id ORDER BY account_id`,
          [after ?? null, BATCH],
        );
        after = rows.at(-1)?.account_id;
        if (after === undefined) return done;
        for (const { connections } of rows) done += connections;
        onProgress(done);
      }
    },

    async endOf(accountId: string, clientId: string) {
      const [end] = await database.query<{ readonly at: Date; readonly cause: EndingCause }>(
        `SELECT ended_at AS at, ended_cause AS cause FROM connections
          WHERE account_id = $1 AND client_id = $2 AND ended_at IS NOT NULL`,
        [accountId, clientId],
      );
      return end;
    },
  };
}
