/** Recent problems of each client: shows its developers why its requests were refused. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { expiryJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';
import type { ClientRegistry } from './client-registry.ts';

/** How the client tried to authenticate (RFC 6749 §2.3.1), successfully or not. */
export type SeenAuthMethod = 'basic' | 'body' | 'both' | 'none';

export interface ClientProblem {
  readonly at: Date;
  readonly step: 'authorize' | 'token';
  /** The code that the client received. */
  readonly error: string;
  /** The exact cause, which the response may not have contained. */
  readonly cause: string;
  /** The URI that was sent, after `withoutValues`. */
  readonly redirectUri?: string | undefined;
  /** The scope that was sent, after `withoutSecrets`; absent if the request had none. */
  readonly scope?: string | undefined;
  /** Absent at the authorization endpoint, because clients do not authenticate there. */
  readonly authMethod?: SeenAuthMethod | undefined;
  readonly requestId: string;
}

/** Mails about what the client authenticated, and about authorization requests, are counted apart. */
export type MailedOwner = { readonly id: string } & Pick<ClientProblem, 'step'>;

/** Problems of one client with the same remedy. Other values are those of the latest problem. */
export interface ClientProblemGroup extends ClientProblem {
  readonly id: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly count: number;
  readonly first: Date;
  /** True if the cause is removed, as far as the stored client shows it; see `isMended`. */
  readonly isMended: boolean;
  /** True for problems about which owners get a mail: see `MAILED` and `isFromClient`. */
  readonly isMailed: boolean;
}

export type NewClientProblem = Omit<ClientProblem, 'at'> & {
  /** A problem is dropped if the client does not exist. */
  readonly clientId: string;
  /** True if the client authenticated, or its registered redirect URI, which anyone may know, was sent. */
  readonly isFromClient?: boolean;
};

type WaitingProblem = NewClientProblem & { readonly at: Date; readonly isMailed: boolean };

export type ClientProblems = ReturnType<typeof createClientProblems>;

/** Maximum number of problems per client, step and `isMailed`: callers displace only their own kind. */
const MAX_KEPT = 100;
/** Maximum number of problems of all clients together that are grouped: there may be any number. */
const MAX_GROUPED = 10_000;
const LIFETIME_MS = 7 * 86_400_000;
/** Time from the first problem to the write, which includes all later problems. */
const PAUSE_MS = 1_000;
/** Maximum number of problems recorded per minute, counted like `MAX_KEPT`. */
const MAX_PER_MINUTE = 60;
const MINUTE_MS = 60_000;
/** Maximum number of problems of all clients that wait to be written. */
const MAX_WAITING = 1_000;
const MAX_URI_LENGTH = 2_000;
const MAX_CAUSE_LENGTH = 500;
const MAX_SCOPE_LENGTH = 200;
/** The errors about which owners get a mail: requests like this fail until the owner acts. */
const MAILED = [
  'invalid_request',
  'invalid_scope',
  'unauthorized_client',
  'unsupported_grant_type',
  'unsupported_response_type',
  'unsupported_response_mode',
];

export function createClientProblems(parts: {
  readonly database: Queries;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** Called with the owners of clients whose requests began to be refused with another error. */
  readonly onNewProblems?: ((owners: readonly MailedOwner[]) => void) | undefined;
}) {
  const { database, clock, log, onNewProblems } = parts;
  let minute = { number: 0, counts: new Map<string, number>() };

  let isClosed = false;

  /** Counts a problem. Returns true if those with this key exceed the limit of this minute. */
  function isFlood(key: string): boolean {
    const number = Math.floor(clock() / MINUTE_MS);
    if (number !== minute.number) minute = { number, counts: new Map() };
    const count = (minute.counts.get(key) ?? 0) + 1;
    minute.counts.set(key, count);
    return count > MAX_PER_MINUTE;
  }

  async function write(problems: readonly WaitingProblem[]): Promise<readonly WaitingProblem[]> {
    const batch = problems.map((problem, place) => ({ ...problem, place }));
    try {
      const values = [JSON.stringify(batch), MAX_KEPT, new Date(clock() - LIFETIME_MS)];
      const owners = await database.query<MailedOwner>(KEEP, values);
      if (owners.length > 0 && !isClosed) onNewProblems?.(owners);
    } catch (err) {
      log.warn({ err, lost: batch.length }, 'recent problems of clients could not be written');
    }
    return [];
  }

  const writer = createBackgroundWriter({ pauseMs: PAUSE_MS, maxWaiting: MAX_WAITING, write });

  return {
    /**
     * Enqueues the problem and does nothing else, so a request never waits for it. The problem is
     * written a second later, and lost if the database is unavailable.
     */
    record({ redirectUri, scope, cause, ...problem }: NewClientProblem): void {
      const isMailed = problem.isFromClient === true && MAILED.includes(problem.error);
      const { clientId, step } = problem;
      if (isClosed || writer.isFull() || isFlood(`${clientId} ${step} ${isMailed}`)) return;
      writer.add({
        ...problem,
        isMailed,
        at: new Date(clock()),
        cause: cut(withoutSecrets(cause), MAX_CAUSE_LENGTH),
        scope: scope && cut(withoutSecrets(scope), MAX_SCOPE_LENGTH),
        redirectUri: redirectUri && cut(withoutValues(redirectUri), MAX_URI_LENGTH),
      });
    },

    /** Returns the number of open groups of each client; clients without any are left out. */
    async countsOf(clientIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
      await writer.flush();
      const rows = await database.query<{ clientId: string; count: number }>(
        `SELECT id AS "clientId", count(*)::integer AS count FROM (
            SELECT DISTINCT ${GROUPED_BY} ${FROM_PROBLEMS}
              WHERE c.id = ANY($1) AND at > $2 AND NOT ${isMended}
          ) AS open GROUP BY id`,
        [clientIds, new Date(clock() - LIFETIME_MS)],
      );
      return new Map(rows.map((row) => [row.clientId, row.count]));
    },

    /**
     * Groups the problems of the last 7 days of one client, one owner or all; the latest first. Of
     * all, only the latest `MAX_GROUPED` problems.
     */
    async groups(clientId?: string, ownerId?: string): Promise<ClientProblemGroup[]> {
      await writer.flush();
      const rows = await database.query<ProblemRow>(
        `${(clientId ?? ownerId) ? GROUPS : LATEST_GROUPS} WHERE at > $1
            AND (p.client_id = $2 OR $2::text IS NULL)
            AND (c.owner_account_id = $3 OR $3::text IS NULL)
          GROUP BY ${GROUPED_BY} ORDER BY max(p.id) DESC`,
        [new Date(clock() - LIFETIME_MS), clientId ?? null, ownerId ?? null],
      );
      return rows.map(problemFrom);
    },

    async ofRequest(requestId: string): Promise<ClientProblemGroup | undefined> {
      const query = `${GROUPS} WHERE request_id = $1 GROUP BY ${GROUPED_BY}`;
      const [row] = await database.query<ProblemRow>(query, [requestId]);
      return row && problemFrom(row);
    },

    removeExpired: expiryJob(parts, [{ table: 'client_problems', column: 'at' }], LIFETIME_MS),

    /** Writes the waiting problems and accepts no more. */
    close(): Promise<void> {
      isClosed = true;
      return writer.close();
    },
  };
}

/** Drops problems of made-up client ids, which could otherwise fill the queue of all clients. */
export const problemsOfKnown = (clients: Pick<ClientRegistry, 'find'>, problems: Pick<ClientProblems, 'record'>) => ({
  async record(problem: NewClientProblem): Promise<void> {
    // This costs no query if the request has just cached the client.
    if (await clients.find(problem.clientId).catch(() => undefined)) problems.record(problem);
  },
});

/**
 * Returns a redirect URI in a form that may be stored: without the values in its query, fragment and
 * user information, because a client may have put anything there, even a code. URIs that differ
 * only in such values become equal.
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

/** Replaces our own tokens and secrets, and characters that are invisible or cannot be stored. */
export const withoutSecrets = (text: string): string =>
  text.replace(/(gate_(?!ci_)[a-z]+_)[A-Za-z0-9_-]+/g, '$1…').replace(/\p{C}/gu, '\uFFFD');

/** Cuts a text, and replaces half of a surrogate pair at its end: PostgreSQL rejects that. */
export const cut = (text: string, maxLength: number): string => text.slice(0, maxLength).toWellFormed();

/**
 * True if the cause of problem `p` of client `c` is removed: what was missing is registered, or the
 * client was authenticated later, which is written as its last use. The last use of a public client
 * proves nothing, because a public client is not authenticated.
 */
const isMended = `coalesce(CASE
  WHEN p.cause = 'the client is suspended' THEN c.suspended_at IS NULL
  WHEN p.error = 'invalid_redirect_uri' THEN p.redirect_uri = ANY(c.redirect_uris)
  WHEN c.kind = 'public' THEN false
  WHEN p.auth_method = 'both' THEN c.last_used_at > p.at
  WHEN p.error = 'invalid_client' THEN c.last_used_at > p.at
    OR EXISTS (SELECT FROM client_secrets s WHERE s.client_id = c.id AND s.created_at > p.at)
END, false)`;

const latest = (column: string): string => `(array_agg(${column} ORDER BY p.id DESC))[1] AS ${column}`;

const JOIN_CLIENTS = 'JOIN clients c ON c.id = p.client_id';
const FROM_PROBLEMS = `FROM client_problems p ${JOIN_CLIENTS}`;
const GROUPED = `SELECT c.id AS "clientId", c.name AS "clientName", step, error, cause,
    count(*)::integer AS count, min(at) AS first, max(at) AS at, max(p.id) AS id,
    ${['redirect_uri', 'scope', 'auth_method', 'request_id'].map(latest).join()},
    bool_and(${isMended}) AS "isMended", bool_or(is_mailed) AS "isMailed"`;
const GROUPS = `${GROUPED} ${FROM_PROBLEMS}`;
const LATEST_GROUPS = `${GROUPED}
  FROM (SELECT * FROM client_problems ORDER BY id DESC LIMIT ${MAX_GROUPED}) p ${JOIN_CLIENTS}`;

/** Another redirect URI is another problem only if it is the cause. */
const GROUPED_BY = `c.id, step, error, cause,
  CASE WHEN error = 'invalid_redirect_uri' OR cause LIKE '%redirect_uri%' THEN redirect_uri END`;

/**
 * Adds the problems of clients that exist. The same statement deletes the oldest rows beyond each
 * client's limit; it does not see the new rows yet, so it leaves room for them. Returns the owners
 * of the clients whose new problems have a step and error that none of their open problems has.
 */
const KEEP = `
  WITH noted AS (
    SELECT * FROM json_to_recordset($1) AS problem (
      "clientId" text, at timestamptz, step text, error text, cause text,
      "redirectUri" text, scope text, "authMethod" text, "requestId" text, "isMailed" boolean,
      place integer)
  ), added AS (
    INSERT INTO client_problems
        (client_id, at, step, error, cause, redirect_uri, scope, auth_method, request_id, is_mailed)
      SELECT noted."clientId", noted.at, step, error, cause,
        "redirectUri", scope, "authMethod", "requestId", "isMailed"
      FROM noted JOIN clients ON clients.id = noted."clientId" ORDER BY place
      RETURNING client_id, step, is_mailed
  ), crowded AS (
    SELECT client_id, step, is_mailed, (
        SELECT id FROM client_problems kept WHERE (kept.client_id, kept.step, kept.is_mailed) =
          (fresh.client_id, fresh.step, fresh.is_mailed)
        ORDER BY id DESC OFFSET greatest($2 - fresh.count, 0) LIMIT 1) AS last_id
      FROM (SELECT client_id, step, is_mailed, count(*) FROM added GROUP BY 1, 2, 3) fresh
  ), removed AS (
    DELETE FROM client_problems p USING crowded
      WHERE (p.client_id, p.step, p.is_mailed) = (crowded.client_id, crowded.step, crowded.is_mailed)
        AND p.id <= crowded.last_id
  )
  SELECT DISTINCT c.owner_account_id AS id, noted.step
    FROM noted JOIN clients c ON c.id = noted."clientId"
    WHERE c.owner_account_id IS NOT NULL AND noted."isMailed" AND NOT EXISTS (
      SELECT FROM client_problems p WHERE (p.client_id, p.step, p.error) =
        (c.id, noted.step, noted.error) AND p.at > $3 AND p.is_mailed AND NOT ${isMended})`;

type ProblemRow = Omit<ClientProblemGroup, 'redirectUri' | 'authMethod' | 'requestId' | 'scope'> & {
  readonly redirect_uri: string | null;
  readonly scope: string | null;
  readonly auth_method: SeenAuthMethod | null;
  readonly request_id: string;
};

function problemFrom(row: ProblemRow): ClientProblemGroup {
  const { redirect_uri, scope, auth_method, request_id: requestId, ...same } = row;
  return {
    ...same,
    requestId,
    ...(redirect_uri !== null && { redirectUri: redirect_uri }),
    ...(scope !== null && { scope }),
    ...(auth_method !== null && { authMethod: auth_method }),
  };
}
