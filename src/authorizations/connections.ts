/** Which person connected which client: what they approved, and until when its authorizations count. */
import { createPeople, type People, type Person } from '../accounts/access/people.ts';
import type { Organization } from '../accounts/access/reach.ts';
import type { EndingCause } from '../accounts/activity/activity-words.ts';
import type { Clock } from '../base/clock.ts';
import type { Client } from '../clients/client.ts';
import { transactionOf } from '../storage/account-turns.ts';
import type { ChangeFeed } from '../storage/change-feed.ts';
import type { WriteUses } from '../storage/last-used.ts';
import type { Page, PageRequest } from '../storage/pages.ts';
import { type Alongside, BEYOND_LOST, type Database, type Queries } from '../storage/queries.ts';
import {
  type ConnectedClient,
  type ListedConnection,
  listConnectedClients,
  listConnections,
} from './connected-clients.ts';
import { type NewConsent, type RememberedConsent, rememberConsent } from './consents.ts';

export interface Connections {
  /** What the person last approved for this client; undefined when they are not connected. */
  find(accountId: string, clientId: string): Promise<ConnectedConsent | undefined>;
  /**
   * Connects the person and the client, or renews what was approved.
   *
   * @returns the generation of the connection; undefined, with nothing remembered, where `page` no
   *   longer counts: the account is suspended, or its sessions or the connection were ended since.
   */
  rememberConsent(consent: NewConsent): Promise<number | undefined>;
  /** Every client a person has connected now, the latest first. */
  listOf(accountId: string): Promise<ConnectedClient[]>;
  /** What is connected now of a person, of a client, or of both; the latest first. */
  listBoth(
    whose: Parameters<typeof listConnections>[1],
    page?: PageRequest,
  ): Promise<Page<ListedConnection>>;
  /** To be noted with `connectionId` as the id. */
  readonly writeUses: WriteUses;
  /**
   * The generation that an authorization must have to count; undefined for strangers.
   *
   * @param seen one that the asker has: what is remembered and behind it is asked for again, for
   *   another node may have connected them a moment ago.
   */
  generationOf(accountId: string, clientId: string, seen?: number): Promise<number | undefined>;
  countOf(clientId: string): Promise<number>;
  /**
   * Ends connections, and with them every authorization of theirs, wherever it is kept: one
   * statement raises their generations. It needs no list of authorizations and no token store.
   *
   * @param whose all of a person, all of a client, or the one of both.
   * @param alongside runs in the same transaction, also where there was nothing to end.
   * @param within a transaction of the caller's, instead of one of its own.
   * @returns what was connected.
   */
  end(
    whose: Whose,
    cause: EndingCause,
    alongside?: Alongside<readonly EndedConnection[]>,
    within?: Queries,
  ): Promise<readonly EndedConnection[]>;
  /**
   * Ends some connections of a client, as `end` does: as many as one statement has time for.
   *
   * @param after the account whose connection was ended last; absent for the first of them.
   * @returns what was connected, by account; less than `BATCH` when none is left.
   */
  endSome(
    clientId: string,
    cause: EndingCause,
    after: string | undefined,
    alongside: Alongside<readonly EndedConnection[]>,
  ): Promise<readonly EndedConnection[]>;
  /**
   * Removes connections of a client that was suspended, so that there will be no further ones: as
   * many as one statement has time for.
   *
   * @param alongside runs in the same transaction, with whom they connected.
   * @returns the same; nobody when all are removed.
   */
  removeSome(
    client: Pick<Client, 'id' | 'ownerAccountId'>,
    alongside: Alongside<readonly string[]>,
  ): Promise<readonly string[]>;
  /**
   * Ends every authorization there is, some connections at a time, and leaves what people approved:
   * for a database that was restored from before some of them were ended. Broken off, it can be
   * begun again.
   *
   * @param tell is told after each step of how many connections.
   * @returns of how many connections.
   */
  endEveryAuthorization(tell?: (done: number) => void): Promise<number>;
  /** How the connection ended; undefined while it stands, and where there never was one. */
  endOf(accountId: string, clientId: string): Promise<ConnectionEnd | undefined>;
}

export interface Connection {
  readonly accountId: string;
  readonly clientId: string;
}

export type Whose =
  | Connection
  | { readonly accountId: string; readonly clientId?: undefined }
  | { readonly accountId?: undefined; readonly clientId: string };

/** What the person approved, and the generation of what is issued by that. */
export interface ConnectedConsent extends RememberedConsent {
  /** What they reached then; null for an approval older than this record. */
  readonly access: readonly Organization[] | null;
  readonly generation: number;
}

export interface EndedConnection extends Connection {
  readonly name: string;
}

interface ConnectionEnd {
  readonly at: Date;
  readonly cause: EndingCause;
}

/** Connections of one step: a request elsewhere waits for a step, never for all. */
export const BATCH = 1_000;

/** The connection in one text. Neither id has a space. */
export const connectionId = ({ accountId, clientId }: Connection): string =>
  `${accountId} ${clientId}`;

/** The generation that an authorization of this person and client must have to count. */
export const generationIn = ({ connections }: Person, clientId: string): number | undefined =>
  connections.find(([id]) => id === clientId)?.[1];

/** For `find` of people: another node may have connected them a moment ago. */
export const hasGeneration =
  (clientId: string, seen: number) =>
  (person: Person): boolean =>
    (generationIn(person, clientId) ?? 0) >= seen;

export function createConnections(parts: {
  readonly database: Database;
  readonly changes: ChangeFeed;
  readonly clock: Clock;
  readonly people?: People;
}): Connections {
  const { database, clock, people = createPeople(parts) } = parts;

  return {
    async find(accountId, clientId) {
      const [row] = await database.query<ConnectedConsent>(
        `SELECT consented_name AS name, consented_hosts AS hosts, approved_access AS access, generation
          FROM connections WHERE account_id = $1 AND client_id = $2 AND ended_at IS NULL`,
        [accountId, clientId],
      );
      return row;
    },

    rememberConsent: (consent) =>
      database.inTurn(consent.accountId, () =>
        rememberConsent(database, new Date(clock()), consent),
      ),

    listOf: (accountId) => listConnectedClients(database, accountId),
    listBoth: (whose, page = {}) => listConnections(database, whose, page),

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

    async generationOf(accountId, clientId, seen = 0) {
      const person = await people.find(accountId, hasGeneration(clientId, seen));
      return person && generationIn(person, clientId);
    },

    async countOf(clientId) {
      const [row] = await database.query<{ count: string }>(
        'SELECT count(*) FROM connections WHERE client_id = $1 AND ended_at IS NULL',
        [clientId],
      );
      return Number(row?.count);
    },

    async end(whose, cause, alongside, within) {
      const { accountId = null, clientId = null } = whose;
      const end = async (tx: Queries): Promise<EndedConnection[]> => {
        const connections = await tx.query<EndedConnection>(
          `UPDATE connections n SET generation = generation + 1, ended_at = $3, ended_cause = $4
            FROM clients c
            WHERE n.ended_at IS NULL AND c.id = n.client_id
              AND (n.account_id = $1 OR $1::text IS NULL)
              AND (n.client_id = $2 OR $2::text IS NULL)
              AND ($1::text IS NOT NULL OR $2::text IS NOT NULL)
            RETURNING n.account_id AS "accountId", n.client_id AS "clientId", c.name`,
          [accountId, clientId, new Date(clock()), cause],
        );
        await alongside?.(tx, connections);
        return connections;
      };
      const ended = within
        ? await end(within)
        : await transactionOf(database, whose.accountId, end);
      // For whoever ended them: the notification takes a moment longer.
      for (const connection of ended) people.forget('connections', connectionId(connection));
      return ended;
    },

    async endSome(clientId, cause, after, alongside) {
      const ended = await database.transaction(async (tx) => {
        const connections = await tx.query<EndedConnection>(
          `WITH next AS (
              SELECT account_id FROM connections
              WHERE client_id = $1 AND ended_at IS NULL AND ($4::text IS NULL OR account_id > $4)
              ORDER BY account_id LIMIT $5),
            ended AS (
              UPDATE connections n SET generation = generation + 1, ended_at = $2, ended_cause = $3
              FROM next
              WHERE n.client_id = $1 AND n.account_id = next.account_id AND n.ended_at IS NULL
              RETURNING n.account_id)
            SELECT account_id AS "accountId", c.id AS "clientId", c.name
            FROM ended JOIN clients c ON c.id = $1 ORDER BY account_id`,
          [clientId, new Date(clock()), cause, after ?? null, BATCH],
        );
        await alongside(tx, connections);
        return connections;
      });
      for (const connection of ended) people.forget('connections', connectionId(connection));
      return ended;
    },

    removeSome: ({ id: clientId, ownerAccountId }, alongside) =>
      transactionOf(database, ownerAccountId, async (tx) => {
        const rows = await tx.query<{ account_id: string }>(
          `DELETE FROM connections WHERE (account_id, client_id) IN (
              SELECT account_id, client_id FROM connections
                WHERE client_id = $1 AND ended_at IS NULL LIMIT $2)
            RETURNING account_id`,
          [clientId, BATCH],
        );
        const people = rows.map((row) => row.account_id);
        await alongside(tx, people);
        return people;
      }),

    async endEveryAuthorization(tell) {
      let done = 0;
      let after: string | undefined;
      for (;;) {
        const rows = await database.query<{ account_id: string; connections: number }>(
          `WITH next AS (
              SELECT account_id FROM connections WHERE $1::text IS NULL OR account_id > $1
              ORDER BY account_id LIMIT $2),
            raised AS (
              UPDATE connections n SET generation = generation + ${BEYOND_LOST}
              FROM (SELECT DISTINCT account_id FROM next) AS whose
              WHERE n.account_id = whose.account_id RETURNING n.account_id)
            SELECT account_id, count(*)::integer AS connections FROM raised
            GROUP BY account_id ORDER BY account_id`,
          [after ?? null, BATCH],
        );
        after = rows.at(-1)?.account_id;
        if (after === undefined) return done;
        for (const { connections } of rows) done += connections;
        tell?.(done);
      }
    },

    async endOf(accountId, clientId) {
      const [end] = await database.query<ConnectionEnd>(
        `SELECT ended_at AS at, ended_cause AS cause FROM connections
          WHERE account_id = $1 AND client_id = $2 AND ended_at IS NOT NULL`,
        [accountId, clientId],
      );
      return end;
    },
  };
}
