/** The log of each client's refused requests. *Problems* groups them, and owners get mails about new problems. */
import type { Logger } from 'pino';
import type { Clock } from '../base/clock.ts';
import { isClientId } from '../base/random-id.ts';
import { createBackgroundWriter } from '../storage/background-writer.ts';
import { expiryJob } from '../storage/cleaning.ts';
import type { Queries } from '../storage/queries.ts';
import type { ClientRegistry } from './client-registry.ts';
import { cut, withoutSecrets, withoutValues } from './storable-text.ts';

/** How the client tried to authenticate (RFC 6749 §2.3.1), even if it failed. */
export type SeenAuthMethod = 'basic' | 'body' | 'both' | 'none';

export interface ClientRequest {
  /** The id as it was sent. The request is dropped if the id is malformed or no client has it. */
  readonly clientId: string;
  readonly step: 'authorize' | 'token';
  readonly requestId: string;
  readonly grantType?: string | undefined;
  /** The error code that the client received. */
  readonly error: string;
  /** The exact cause, which the response may not have contained. */
  readonly cause: string;
  /** The URI as it was sent. `withoutValues` removes parameter values before the URI is stored. */
  readonly redirectUri?: string | undefined;
  readonly scope?: string | undefined;
  /** The authorization endpoint sets no method: clients do not authenticate there. */
  readonly authMethod?: SeenAuthMethod | undefined;
  /** True if the client authenticated, or if its registered redirect URI was sent, which any caller may know. */
  readonly isFromClient?: boolean;
}

/** Problems of one client that have the same remedy. Values in which they differ are those of the latest problem. */
export interface ClientProblemGroup extends Pick<ClientRequest, 'clientId' | 'step' | 'error' | 'cause' | 'requestId'> {
  readonly id: string;
  readonly at: Date;
  readonly clientName: string;
  readonly redirectUri: string | null;
  readonly scope: string | null;
  readonly authMethod: SeenAuthMethod | null;
  /** The number of stored problems. From `MAX_EQUAL` on, older ones may be gone; `first` is the oldest stored one. */
  readonly count: number;
  readonly first: Date;
  /** True if the stored data of the client show that the cause of the problem was removed. */
  readonly isMended: boolean;
  readonly isMailed: boolean;
}

/** Mails about requests with client authentication and about authorization requests have separate limits. */
export type MailedOwner = { readonly id: string } & Pick<ClientProblemGroup, 'step'>;

export type ClientRequests = ReturnType<typeof createClientRequests>;

/**
 * The kind of a stored request. Each kind has its own limits per step and client, so that callers displace only
 * requests of the same kind. `owner`: the client's request fails until the owner changes something.
 * `client`: another failure, for example an old code. `stranger`: the sender may be any caller.
 */
type Share = 'owner' | 'client' | 'stranger';
type WaitingRequest = ClientRequest & { readonly at: Date; readonly share: Share };

/** Maximum number of stored requests for each client, step and kind (`Share`). */
const MAX_KEPT = 100;
/** Maximum number of problems per minute, for each client, step and kind (`Share`). */
const MAX_PER_MINUTE = 60;
/** Maximum number of equal problems (`EQUAL`) per minute, so that equal problems do not displace others. */
export const MAX_EQUAL = 5;
const MINUTE_MS = 60_000;
const LIFETIME_MS = 7 * 86_400_000;
/** After this time since the first queued request, all queued requests are written together. */
const PAUSE_MS = 500;
/** Maximum number of requests that are queued for the database, for all clients together. */
const MAX_WAITING = 1_000;
/** Maximum number of client look-ups in progress. Requests of real clients cause few, because clients are cached. */
const MAX_LOOKED_UP = 2_000;
const MAX_URI_LENGTH = 2_000;
const MAX_CAUSE_LENGTH = 500;
const MAX_TEXT_LENGTH = 200;
const UNTIL_MENDED = /^(invalid_request|invalid_scope|unauthorized_client|unsupported_.+)$/;
/** Errors that are no problem: a user denied the approval, or `prompt=none` needed a page. */
const NO_PROBLEM = /^(access_denied|(account_selection|consent|interaction|login)_required)$/;

function shareOf({ error, isFromClient }: ClientRequest): Share {
  if (!isFromClient) return 'stranger';
  return UNTIL_MENDED.test(error) ? 'owner' : 'client';
}

export function createClientRequests(parts: {
  readonly database: Queries;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** Called with the owners of clients whose requests are now refused with an error that is new for the client. */
  readonly onNewProblems?: ((owners: readonly MailedOwner[]) => void) | undefined;
}) {
  const { database, clients, clock, log, onNewProblems } = parts;
  let minute = { number: 0, counts: new Map<string, number>() };
  let isClosed = false;

  const oldest = (): Date => new Date(clock() - LIFETIME_MS);

  function isFlood(problem: WaitingRequest): boolean {
    const number = Math.floor(problem.at.getTime() / MINUTE_MS);
    // If a problem of the previous minute arrives late, count it in the newer minute.
    if (number > minute.number) minute = { number, counts: new Map() };
    const { counts } = minute;
    const share = `${problem.clientId} ${problem.step} ${problem.share}`;
    const ofShare = counts.get(share) ?? 0;
    // Once a limit is reached, add no counter, so that the number of counters is bounded.
    if (ofShare >= MAX_PER_MINUTE) return true;
    const equal = JSON.stringify([share, problem.error, problem.cause, isOfUri(problem) && problem.redirectUri]);
    const ofEqual = counts.get(equal) ?? 0;
    if (ofEqual >= MAX_EQUAL) return true;
    counts.set(share, ofShare + 1).set(equal, ofEqual + 1);
    return false;
  }

  async function write(requests: readonly WaitingRequest[]): Promise<readonly WaitingRequest[]> {
    const batch = requests.map((request, place) => ({ ...request, place }));
    let lost = batch.length;
    try {
      const owners = await database.query<MailedOwner>(ADD, [JSON.stringify(batch), oldest()]);
      lost = 0;
      if (owners.length > 0 && !isClosed) onNewProblems?.(owners);
      const ids = [...new Set(requests.map(({ clientId }) => clientId))];
      await database.query(TRIM, [ids]);
    } catch (err) {
      log.warn({ err, lost }, 'the log of requests of clients could not be written or shortened');
    }
    return [];
  }

  const writer = createBackgroundWriter({ pauseMs: PAUSE_MS, maxWaiting: MAX_WAITING, write });
  const enqueuing = new Set<Promise<void>>();

  async function enqueue(request: WaitingRequest): Promise<void> {
    // Look up the client, because made-up ids could fill the queue of all clients. A cached client needs no query.
    if (!(await clients.find(request.clientId).catch(() => undefined))) return;
    if (writer.isFull()) return;
    const problem = withoutHarm(request);
    if (!isFlood(problem)) writer.add(problem);
  }

  const selecting = (clientId?: string, ownerId?: string, requestId?: string): unknown[] =>
    [oldest(), clientId, ownerId, requestId].map((value) => value ?? null);

  return {
    /**
     * Only enqueues the request, so that no caller waits for the log. The entry is written half a second later, and
     * lost if the database is unavailable.
     */
    record(request: ClientRequest): void {
      if (isClosed || !isClientId(request.clientId) || NO_PROBLEM.test(request.error)) return;
      // Limit the look-ups, because made-up client ids must not delay readers of the log, or the shutdown of a node.
      if (enqueuing.size >= MAX_LOOKED_UP) return;
      const waiting = { ...request, share: shareOf(request), at: new Date(clock()) };
      const enqueued = enqueue(waiting)
        .catch((err: unknown) => log.warn({ err }, 'a request of a client could not be recorded'))
        .finally(() => enqueuing.delete(enqueued));
      enqueuing.add(enqueued);
    },

    /** Stores queued requests, then returns a client's or owner's problem groups of the last 7 days, latest first. */
    async groups(clientId: string | undefined, ownerId?: string): Promise<ClientProblemGroup[]> {
      await Promise.all(enqueuing);
      await writer.flush();
      return database.query<ClientProblemGroup>(`${GROUPS} ORDER BY id DESC`, selecting(clientId, ownerId));
    },

    /** Counts stored groups of problems whose cause remains, by client id. A client without such a group is absent. */
    async openCounts(clientId?: string, ownerId?: string): Promise<ReadonlyMap<string, number>> {
      const query = `SELECT "clientId", count(*)::integer AS count FROM (${GROUPS}) g WHERE NOT "isMended" GROUP BY 1`;
      const rows = await database.query<ClientProblemGroup>(query, selecting(clientId, ownerId));
      return new Map(rows.map(({ clientId, count }) => [clientId, count]));
    },

    ofRequest: async (requestId: string): Promise<ClientProblemGroup | undefined> =>
      (await database.query<ClientProblemGroup>(GROUPS, selecting(undefined, undefined, requestId)))[0],

    removeExpired: expiryJob(parts, [{ table: 'client_requests', column: 'at' }], LIFETIME_MS),

    async close(): Promise<void> {
      isClosed = true;
      await Promise.all(enqueuing);
      await writer.close();
    },
  };
}

const cleaned = (text: string, maxLength: number): string => cut(withoutSecrets(text), maxLength);

/** Removes secrets and unstorable characters from the request, and cuts long texts. */
const withoutHarm = <Given extends ClientRequest>(request: Given): Given => ({
  ...request,
  grantType: request.grantType && cleaned(request.grantType, MAX_TEXT_LENGTH),
  error: cleaned(request.error, MAX_TEXT_LENGTH),
  cause: cleaned(request.cause, MAX_CAUSE_LENGTH),
  scope: request.scope && cleaned(request.scope, MAX_TEXT_LENGTH),
  redirectUri: request.redirectUri && cut(withoutValues(request.redirectUri), MAX_URI_LENGTH),
});

/**
 * SQL: true if the cause of problem `p` of client `c` was removed: the client is no longer suspended or restricted to
 * networks, its redirect URI is now registered, or the client has authenticated or got a new secret since. The last two
 * conditions never apply to a public client, which does not authenticate.
 */
const isMended = `coalesce(CASE
  WHEN p.cause = 'the client is suspended' THEN c.suspended_at IS NULL
  WHEN p.error = 'invalid_redirect_uri' THEN p.redirect_uri = ANY(c.redirect_uris)
  WHEN c.kind = 'public' THEN false
  WHEN p.auth_method = 'both' THEN c.last_used_at > p.at
  WHEN p.error = 'invalid_client' THEN c.last_used_at > p.at
    OR EXISTS (SELECT FROM client_secrets s WHERE s.client_id = c.id AND s.created_at > p.at)
END, false)`;

/** True if the redirect URI caused the problem. Then problems with different URIs differ, as in the SQL `EQUAL`. */
const isOfUri = ({ error, cause }: Pick<ClientRequest, 'error' | 'cause'>): boolean =>
  error === 'invalid_redirect_uri' || /redirect_uri/.test(cause);
const EQUAL = `step, error, cause,
  CASE WHEN error = 'invalid_redirect_uri' OR cause LIKE '%redirect_uri%' THEN redirect_uri END`;

const latest = (column: string): string => `(array_agg(${column} ORDER BY p.id DESC))[1]`;
const GROUPS = `
  SELECT c.id AS "clientId", c.name AS "clientName", step, error, cause,
      count(*)::integer AS count, min(at) AS first, max(at) AS at, max(p.id) AS id,
      ${latest('redirect_uri')} AS "redirectUri", ${latest('scope')} AS scope,
      ${latest('auth_method')} AS "authMethod", ${latest('request_id')} AS "requestId",
      bool_and(${isMended}) AS "isMended", bool_or(share = 'owner') AS "isMailed"
    FROM client_requests p JOIN clients c ON c.id = p.client_id
    WHERE at > $1 AND (p.client_id = $2 OR $2::text IS NULL)
      AND (c.owner_account_id = $3 OR $3::text IS NULL) AND (request_id = $4 OR $4::text IS NULL)
    GROUP BY c.id, ${EQUAL}`;

/**
 * SQL that stores the requests of existing clients. It returns owner and step of each request with the share `owner`,
 * unless the client already had an open problem with the same step and error. (This check does not see the added rows.)
 */
const ADD = `
  WITH noted AS (
    SELECT * FROM json_to_recordset($1) AS request (
      "clientId" text, at timestamptz, step text, "grantType" text, error text, cause text,
      "redirectUri" text, scope text, "authMethod" text, "requestId" text, share text, place integer)
  ), added AS (
    INSERT INTO client_requests
        (client_id, at, step, grant_type, error, cause, redirect_uri, scope, auth_method, request_id, share)
      SELECT "clientId", at, step, "grantType", error, cause, "redirectUri", scope, "authMethod", "requestId", share
      FROM noted WHERE EXISTS (SELECT FROM clients WHERE id = "clientId") ORDER BY at, place
  )
  SELECT DISTINCT c.owner_account_id AS id, noted.step
    FROM noted JOIN clients c ON c.id = noted."clientId"
    WHERE c.owner_account_id IS NOT NULL AND noted.share = 'owner' AND NOT EXISTS (
      SELECT FROM client_requests p WHERE (p.client_id, p.step, p.error, p.share) =
        (c.id, noted.step, noted.error, 'owner') AND p.at > $2 AND NOT ${isMended})`;

const TRIM = `
  WITH ranked AS (
    SELECT id, client_id, step, share,
        row_number() OVER (PARTITION BY client_id, share, ${EQUAL} ORDER BY id DESC) <= ${MAX_EQUAL} AS is_shown
      FROM client_requests WHERE client_id = ANY($1)
  ), placed AS (
    SELECT id, is_shown, row_number() OVER (PARTITION BY client_id, step, share, is_shown ORDER BY id DESC) AS place
      FROM ranked
  )
  DELETE FROM client_requests WHERE id = ANY(ARRAY(SELECT id FROM placed WHERE NOT is_shown OR place > ${MAX_KEPT}))`;
