/** Stores in a connection what the user approved. */
import type { Organization } from '../accounts/access/reach.ts';
import type { Queries } from '../storage/queries.ts';

/** What the consent page showed at the approval. If it has changed, the user is asked again. */
export interface RememberedConsent {
  readonly name: string;
  /** The result of `redirectHosts` for the client. */
  readonly hosts: readonly string[];
}

/** What the page was rendered for: an approval on it is valid only while this is current. */
interface ApprovedPage {
  /** The account's generation, as recorded in the session that saw the page. */
  readonly sessionGeneration: number;
  readonly sessionUid: string;
  /** The result of `Connections.generationOf`. */
  readonly generation: number | undefined;
}

export interface NewConsent extends RememberedConsent {
  readonly accountId: string;
  readonly clientId: string;
  /** The organizations that the user could access then. */
  readonly access?: readonly Organization[];
  /** Absent if the approval was not made on a page. */
  readonly page?: ApprovedPage;
}

const FIRST_GENERATION = 1;

/** See `Connections.rememberConsent`. */
export async function rememberConsent(
  database: Queries,
  now: Date,
  { accountId, clientId, name, hosts, access, page }: NewConsent,
): Promise<number | undefined> {
  const approved = access ? JSON.stringify(access) : null;
  const seen =
    page &&
    ([page.sessionGeneration, page.generation ?? FIRST_GENERATION, page.sessionUid] as const);
  const [sessionGeneration, generation, uid] = seen ?? [null, null, null];
  // An ended connection starts again with the generation that its end left. The account's row is
  // locked until this is written: an end of its sessions comes before, and is seen, or after.
  const [row] = await database.query<{ generation: number }>(
    `INSERT INTO connections AS n (account_id, client_id, connected_at, approved_at,
          consented_name, consented_hosts, approved_access)
        SELECT $1, $2, $3::timestamptz, $3::timestamptz, $4, $5::text[], $6::jsonb
          FROM accounts
          WHERE id = $1 AND ($7::int IS NULL
            OR (suspended_at IS NULL AND session_generation <= $7 AND $9::text <> ALL(ended_sessions)))
          FOR SHARE
        ON CONFLICT (account_id, client_id) DO UPDATE
          SET approved_at = excluded.approved_at,
            consented_name = excluded.consented_name,
            consented_hosts = excluded.consented_hosts,
            approved_access = excluded.approved_access,
            connected_at = CASE WHEN n.ended_at IS NULL THEN n.connected_at ELSE $3 END,
            last_used_at = CASE WHEN n.ended_at IS NULL THEN n.last_used_at END,
            ended_at = NULL
          WHERE $8::int IS NULL OR n.generation = $8
        RETURNING generation`,
    [accountId, clientId, now, name, hosts, approved, sessionGeneration, generation, uid],
  );
  return row?.generation;
}
