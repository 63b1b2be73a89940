/** Stores the user's approval in the connection. */
import type { ConnectionLimit } from '../accounts/access/access-limit.ts';
import type { People } from '../accounts/access/people.ts';
import { SESSION_GENERATION } from '../accounts/account.ts';
import { isCurrentSince } from '../clients/client-row.ts';
import { transactionOf } from '../storage/account-turns.ts';
import { createParameters, type Database, type InTransaction, type Queries } from '../storage/queries.ts';

export interface Connection {
  readonly accountId: string;
  readonly clientId: string;
}

/** Joins both ids with a space, which no id contains. V8 would store the result of a template as a tree of its parts. */
export const connectionId = ({ accountId, clientId }: Connection): string => [accountId, clientId].join(' ');

/** The client as the consent page showed it. If any value has changed since, the user is asked again. */
export interface RememberedConsent {
  readonly name: string;
  readonly hosts: readonly string[];
  /** When the current owner got the client (`Client.ownedSince`); null for the first owner. */
  readonly ownedSince?: Date | null | undefined;
}

interface NewConsent extends RememberedConsent, Connection {
  /** The limit that the user chose on the page; absent to keep the limit of an active connection. */
  readonly limit?: ConnectionLimit | undefined;
  /**
   * The state for which the page was rendered. An approval is refused if any part of it has changed. Absent if the
   * approval was not made on a page.
   */
  readonly page?: {
    /** The account's session generation, as stored in the session that requested the page. */
    readonly sessionGeneration: number;
    readonly sessionUid: string;
    readonly generation: number | undefined;
    readonly endedThrough: number;
    readonly limit: ConnectionLimit;
  };
}

/** `isNew` is false if the user was already connected. */
type Connected = { readonly generation: number; readonly clientGeneration: number; readonly isNew: boolean };

/** SQL condition: the connection `n` was ended, or `now` is after the end date that its user has set. */
export const hasEndedAt = (now: string, endedThrough?: string): string =>
  `(NOT ${isCurrentSince(endedThrough)} OR coalesce(n.limit_until <= ${now}, false))`;

export const isLimit = (places: string, isReadOnly: string, until: string): string =>
  `(n.limit_places IS NOT DISTINCT FROM ${places}::text[] AND n.limit_read_only = ${isReadOnly}
    AND n.limit_until IS NOT DISTINCT FROM ${until}::timestamptz)`;

const ENDED = hasEndedAt('excluded.connected_at');
const TAKES_LIMIT = `(${ENDED} OR (SELECT chooses_limit FROM given))`;

/** Locks the row of the session, so that the approval waits for a sign-out in progress, and then sees the sign-out. */
const ACTIVE_SESSION = `JOIN browser_sessions s ON s.uid = given.page_session AND s.account_id = accounts.id
  AND s.ended_at IS NULL AND suspended_at IS NULL AND ${SESSION_GENERATION} <= given.page_session_generation
  AND given.page_ended_through = given.ended_through`;

/**
 * SQL that stores an approval. An approval never lowers a connection's generation, which its end raises. The statement
 * locks the account's row. So a session of the account ends either before this statement, which sees the end, or after
 * it. A new membership, whose foreign key waits for the lock, then finds the connection.
 */
const insertAt = (now: string, isOfPage: boolean): string => `
  WITH given AS (
    SELECT ${now} AS now, c.generation AS client_generation, c.ended_through, given.* FROM json_to_record($1) AS given (
      account_id text, client_id text, name text, hosts text[],
      owned_since timestamptz, chooses_limit boolean, limit_places text[],
      limit_read_only boolean, limit_until timestamptz,
      page_session text, page_session_generation bigint, page_generation integer, page_ended_through integer,
      page_shows_limit boolean, page_places text[], page_read_only boolean, page_until timestamptz)
      JOIN clients c ON c.id = given.client_id
  )
  INSERT INTO connections AS n (account_id, client_id, connected_at, approved_at,
      consented_name, consented_hosts, consented_owned_since, client_generation,
      limit_places, limit_read_only, limit_until)
    SELECT given.account_id, given.client_id, given.now, given.now,
        given.name, given.hosts, given.owned_since, given.client_generation,
        given.limit_places, given.limit_read_only, given.limit_until
      FROM given JOIN accounts ON accounts.id = given.account_id ${isOfPage ? ACTIVE_SESSION : ''}
      FOR UPDATE OF accounts ${isOfPage ? ', s' : ''}
    ON CONFLICT (account_id, client_id) DO UPDATE
      -- A renewal is approved later than the connection began, so RETURNING recognizes it.
      SET approved_at = greatest(excluded.approved_at, CASE WHEN NOT ${ENDED} THEN
          n.connected_at + interval '1 microsecond' END),
        consented_name = excluded.consented_name,
        consented_hosts = excluded.consented_hosts,
        consented_owned_since = excluded.consented_owned_since,
        client_generation = excluded.client_generation,
        connected_at = CASE WHEN ${ENDED} THEN excluded.connected_at ELSE n.connected_at END,
        last_used_at = CASE WHEN ${ENDED} THEN NULL ELSE n.last_used_at END,
        ended_at = NULL,
        -- The connection has ended, but its row is not marked as ended yet: end its authorizations here.
        generation = n.generation + CASE WHEN ${ENDED} AND n.ended_at IS NULL THEN 1 ELSE 0 END,
        limit_places = CASE WHEN ${TAKES_LIMIT} THEN excluded.limit_places ELSE n.limit_places END,
        limit_read_only = CASE WHEN ${TAKES_LIMIT} THEN excluded.limit_read_only
          ELSE n.limit_read_only END,
        limit_until = CASE WHEN ${TAKES_LIMIT} THEN excluded.limit_until ELSE n.limit_until END
      WHERE (SELECT (page_session IS NULL OR n.generation = coalesce(page_generation, excluded.generation))
          AND (NOT page_shows_limit OR ${ENDED}
            OR ${isLimit('page_places', 'page_read_only', 'page_until')}) FROM given)
    RETURNING generation, client_generation AS "clientGeneration", approved_at = connected_at AS "isNew"`;

async function insert(
  database: Queries,
  { accountId, clientId, name, hosts, ownedSince, limit, page }: NewConsent,
): Promise<Connected | undefined> {
  const given = {
    account_id: accountId,
    client_id: clientId,
    name,
    hosts,
    owned_since: ownedSince,
    chooses_limit: limit !== undefined,
    limit_places: limit?.places,
    limit_read_only: limit?.isReadOnly ?? false,
    limit_until: limit?.until,
    page_session: page?.sessionUid,
    page_session_generation: page?.sessionGeneration,
    page_generation: page?.generation,
    page_ended_through: page?.endedThrough,
    page_shows_limit: page?.limit !== undefined,
    page_places: page?.limit?.places,
    page_read_only: page?.limit?.isReadOnly,
    page_until: page?.limit?.until,
  };
  const [row] = await database.query<Connected>(insertAt(database.now(), page !== undefined), [JSON.stringify(given)]);
  return row;
}

/** The kind of browser in which a code was issued without a click. `elsewhere`: the user has never signed in there. */
export type SilentPlace = 'known browser' | 'elsewhere';

const SILENT_COLUMNS: Readonly<Record<SilentPlace, string>> = {
  'known browser': 'silent_at',
  elsewhere: 'silent_elsewhere_at',
};

/** SQL for an array of each `SilentPlace` in which, within the last day, a code was issued without asking the user. */
export const recordedIn = (now: string): string =>
  `array_remove(ARRAY[${Object.entries(SILENT_COLUMNS).map(
    ([place, column]) => `CASE WHEN ${column} > ${now} - interval '1 day' THEN '${place}' END`,
  )}], NULL)`;

export const createConsents = ({
  database,
  people,
}: {
  readonly database: Database;
  readonly people: Pick<People, 'forget'>;
}) => ({
  /**
   * Connects the user and the client, or renews the approval.
   *
   * @returns the stored connection; undefined (and nothing is stored) if `page` is outdated. These changes make a page
   * outdated: the account is suspended, the session or the connection ends, the connection's limit changes, or all
   * authorizations of the client are revoked.
   */
  async rememberConsent(consent: NewConsent, inTransaction?: InTransaction): Promise<Connected | undefined> {
    const connected = await transactionOf(database, consent.accountId, async (tx) => {
      const stored = await insert(tx, consent);
      if (stored) await inTransaction?.(tx);
      return stored;
    });
    // Clear the cached connection now: the first token may be used before this node is notified of the new limit.
    if (consent.limit) people.forget('connections', connectionId(consent));
    return connected;
  },

  /**
   * At most once a day for each `place`, records that a code was issued without asking the user. One statement checks
   * and writes, so parallel requests leave only one record.
   *
   * @param entry see `Activity.partOf`
   */
  recordSilent: (
    { accountId, clientId }: Connection,
    place: SilentPlace,
    entry: (rows: string, use: (value: unknown) => string) => string,
  ): Promise<boolean> =>
    database.inTurn(accountId, async () => {
      const { values, use } = createParameters();
      const column = SILENT_COLUMNS[place];
      const now = database.now();
      const recorded = await database.query(
        `WITH recorded AS (
            UPDATE connections SET ${column} = ${now}
              WHERE account_id = ${use(accountId)} AND client_id = ${use(clientId)}
                AND (${column} IS NULL OR ${column} <= ${now} - interval '1 day')
              RETURNING '{}'::jsonb AS details),
          entry AS (${entry('recorded', use)})
          SELECT FROM recorded`,
        values,
      );
      return recorded.length > 0;
    }),
});
