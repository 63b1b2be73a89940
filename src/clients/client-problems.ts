/** Recent problems of each client: why its requests were refused, for whoever develops it. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { expiryJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';

/** How the client tried to authenticate (RFC 6749 §2.3.1), whatever came of it. */
export type SeenAuthMethod = 'basic' | 'body' | 'both' | 'none';

export interface ClientProblem {
  readonly at: Date;
  readonly step: 'authorize' | 'token';
  /** The code the client was answered. */
  readonly error: string;
  /** The exact cause, which the answer may have kept back. */
  readonly cause: string;
  /** As it was sent, by `withoutValues`. */
  readonly redirectUri?: string | undefined;
  /** As it was sent, without our own values; absent where none was. */
  readonly scope?: string | undefined;
  /** Absent at the authorize step, where no client authenticates. */
  readonly authMethod?: SeenAuthMethod | undefined;
  readonly requestId: string;
}

interface ClientName {
  readonly clientId: string;
  readonly clientName: string;
}

/** Equal problems of one client, counted. `at` and `requestId` are those of the latest one. */
export interface ClientProblemGroup extends ClientProblem, ClientName {
  readonly id: string;
  readonly count: number;
  readonly first: Date;
}

export type NewClientProblem = Omit<ClientProblem, 'at'> & {
  /** Unverified: that of a client nobody knows is dropped. */
  readonly clientId: string;
};

type WaitingProblem = NewClientProblem & { readonly at: Date };

export type ClientProblems = ReturnType<typeof createClientProblems>;

const MOST_KEPT = 100;
/** All times are milliseconds. */
const LIFETIME = 7 * 86_400_000;
/** From the first problem to the write that takes along those that came after it. */
const PAUSE = 1_000;
/** A flood of bad requests costs a client's owner nothing but the sight of the later ones. */
const MOST_PER_MINUTE = 60;
const MINUTE = 60_000;
/** Of all clients, while they wait to be written. */
const MOST_WAITING = 1_000;
const LONGEST_URI = 2_000;
const LONGEST_CAUSE = 500;
const LONGEST_SCOPE = 200;

export function createClientProblems(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
}) {
  const { database, clock, log } = parts;
  let minute = { number: 0, counts: new Map<string, number>() };

  let isClosed = false;

  /** Counts the problem, and says whether its client has had its share of this minute. */
  function isFlood(clientId: string): boolean {
    const number = Math.floor(clock() / MINUTE);
    if (number !== minute.number) minute = { number, counts: new Map() };
    const count = (minute.counts.get(clientId) ?? 0) + 1;
    minute.counts.set(clientId, count);
    return count > MOST_PER_MINUTE;
  }

  async function write(problems: readonly WaitingProblem[]): Promise<readonly WaitingProblem[]> {
    const batch = problems.map((problem, place) => ({ ...problem, place }));
    await database.query(KEEP, [JSON.stringify(batch), MOST_KEPT]).catch((err: unknown) => {
      log.warn({ err, lost: batch.length }, 'recent problems of clients could not be written');
    });
    return [];
  }

  const writer = createBackgroundWriter({ pauseMs: PAUSE, maxWaiting: MOST_WAITING, write });

  return {
    /**
     * To be called on the request's path: remembers the problem and does nothing else. It is written
     * a moment later, and lost when the database is away.
     */
    note({ redirectUri, scope, cause, ...problem }: NewClientProblem): void {
      if (isClosed || writer.isFull() || isFlood(problem.clientId)) return;
      writer.add({
        ...problem,
        at: new Date(clock()),
        cause: cut(withoutSecrets(cause), LONGEST_CAUSE),
        scope: scope && cut(withoutSecrets(scope), LONGEST_SCOPE),
        redirectUri: redirectUri && cut(withoutValues(redirectUri), LONGEST_URI),
      });
    },

    /** The last 100 of the last 7 days, newest first. */
    async of(clientId: string): Promise<ClientProblem[]> {
      await writer.flush();
      const rows = await database.query<ProblemRow>(
        `SELECT at, step, error, cause, redirect_uri, scope, auth_method, request_id
          FROM client_problems WHERE client_id = $1 AND at > $2
          ORDER BY id DESC LIMIT $3`,
        [clientId, new Date(clock() - LIFETIME), MOST_KEPT],
      );
      return rows.map(problemFrom);
    },

    /** How many there are of each of these; 0 is left out. */
    async countsOf(clientIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
      await writer.flush();
      const rows = await database.query<{ client_id: string; count: number }>(
        `SELECT client_id, count(*)::integer AS count FROM client_problems
          WHERE client_id = ANY($1) AND at > $2 GROUP BY client_id`,
        [clientIds, new Date(clock() - LIFETIME)],
      );
      return new Map(rows.map((row) => [row.client_id, row.count]));
    },

    /** Those of one client or of all in the last 7 days, equal ones as one; the latest first. */
    async groups(clientId?: string): Promise<ClientProblemGroup[]> {
      const rows = await database.query<ProblemRow & ClientName & GroupRow>(
        `SELECT p.client_id AS "clientId", c.name AS "clientName", step, error, cause, redirect_uri,
            scope, auth_method, count(*)::integer AS count, min(at) AS first, max(at) AS at,
            max(p.id) AS id, (array_agg(request_id ORDER BY p.id DESC))[1] AS request_id
          FROM client_problems p JOIN clients c ON c.id = p.client_id
          WHERE at > $1 AND (p.client_id = $2 OR $2::text IS NULL)
          GROUP BY p.client_id, c.name, step, error, cause, redirect_uri, scope, auth_method
          ORDER BY id DESC`,
        [new Date(clock() - LIFETIME), clientId ?? null],
      );
      return rows.map((row) => {
        const { id, clientId, clientName, count, first } = row;
        return { id, clientId, clientName, count, first, ...problemFrom(row) };
      });
    },

    async ofRequest(requestId: string): Promise<(ClientProblem & ClientName) | undefined> {
      const [row] = await database.query<ProblemRow & ClientName>(
        `SELECT p.*, p.client_id AS "clientId", c.name AS "clientName"
          FROM client_problems p JOIN clients c ON c.id = p.client_id WHERE request_id = $1`,
        [requestId],
      );
      return row && { ...problemFrom(row), clientId: row.clientId, clientName: row.clientName };
    },

    removeExpired: expiryJob(parts, [{ table: 'client_problems', column: 'at' }], LIFETIME),

    /** Writes what was noted, and stops. */
    close(): Promise<void> {
      isClosed = true;
      return writer.close();
    },
  };
}

/**
 * A redirect URI as it may be kept: without the values of its query, its fragment and its user
 * information, where a client may have put anything, a code among it. Two that differ in such a
 * value only look alike.
 */
export function withoutValues(uri: string): string {
  const [beforeFragment = '', ...fragment] = withoutSecrets(uri).split('#');
  const [beforeQuery = '', ...query] = beforeFragment.split('?');
  const parameters = query.join('?').split('&').map(withoutValue).join('&');
  return (
    beforeQuery.replace(/(:\/\/)[^/]*@/, '$1…@') +
    (query.length > 0 ? `?${parameters}` : '') +
    (fragment.length > 0 ? '#…' : '')
  );
}

function withoutValue(parameter: string): string {
  const [name = '', ...value] = parameter.split('=');
  if (value.length === 0) return name && '…';
  return value.join('=') === '' ? `${name}=` : `${name}=…`;
}

/** Without our own tokens and secrets, and without characters that do not show or cannot be kept. */
export const withoutSecrets = (text: string): string =>
  text.replace(/(gate_(?!ci_)[a-z]+_)[A-Za-z0-9_-]+/g, '$1…').replace(/\p{C}/gu, '\uFFFD');

/** Cut inside a character of two units, half of it would stay, which PostgreSQL refuses. */
export const cut = (text: string, longest: number): string => text.slice(0, longest).toWellFormed();

/**
 * Adds the problems of clients that exist, and deletes in the same step what each of these then has
 * too many of. The deletion sees the rows from before the addition, so it leaves room for it.
 */
const KEEP = `
  WITH noted AS (
    SELECT * FROM json_to_recordset($1) AS problem (
      "clientId" text, at timestamptz, step text, error text, cause text,
      "redirectUri" text, scope text, "authMethod" text, "requestId" text, place integer)
  ), added AS (
    INSERT INTO client_problems
        (client_id, at, step, error, cause, redirect_uri, scope, auth_method, request_id)
      SELECT noted."clientId", noted.at, step, error, cause,
        "redirectUri", scope, "authMethod", "requestId"
      FROM noted JOIN clients ON clients.id = noted."clientId" ORDER BY place
      RETURNING client_id
  ), crowded AS (
    SELECT client_id, (
        SELECT id FROM client_problems kept WHERE kept.client_id = fresh.client_id
        ORDER BY id DESC OFFSET greatest($2 - fresh.count, 0) LIMIT 1) AS last_id
      FROM (SELECT client_id, count(*) FROM added GROUP BY client_id) fresh
  )
  DELETE FROM client_problems USING crowded
    WHERE client_problems.client_id = crowded.client_id AND client_problems.id <= crowded.last_id`;

type GroupRow = Pick<ClientProblemGroup, 'id' | 'count' | 'first'>;

interface ProblemRow {
  readonly at: Date;
  readonly step: ClientProblem['step'];
  readonly error: string;
  readonly cause: string;
  readonly redirect_uri: string | null;
  readonly scope: string | null;
  readonly auth_method: SeenAuthMethod | null;
  readonly request_id: string;
}

function problemFrom(row: ProblemRow): ClientProblem {
  const { redirect_uri: redirectUri, auth_method: authMethod, request_id: requestId } = row;
  return {
    at: row.at,
    step: row.step,
    error: row.error,
    cause: row.cause,
    requestId,
    ...(redirectUri !== null && { redirectUri }),
    ...(row.scope !== null && { scope: row.scope }),
    ...(authMethod !== null && { authMethod }),
  };
}
