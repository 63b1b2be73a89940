/** How a client ends, with everything that was issued to it. */
import type { Clock } from '../clock.ts';
import type { Alongside, Database } from '../storage/queries.ts';
import { unknownClient } from './client-secrets.ts';

export interface RemovalOptions {
  /** Ends a grant in the token store. */
  readonly revokeGrant: (grantId: string) => Promise<void>;
  /** Told how many people had it connected. */
  readonly alongside?: Alongside<number>;
}

/** Connections and grants of one step: a request elsewhere waits for a step, never for all. */
const BATCH = 100;

/**
 * Removes a client that was suspended, so that nothing is issued to it meanwhile. A client may have
 * more connections than one statement may take time for; broken off in between, the removal can be
 * begun again, because a grant is only forgotten once it was revoked.
 *
 * @returns how many people had it connected.
 * @throws Refusal `client_unknown`
 */
export async function removeSuspendedClient(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  id: string,
  { revokeGrant, alongside }: RemovalOptions,
): Promise<number> {
  for (;;) {
    const grants = await database.query<{ grant_id: string }>(
      `SELECT grant_id FROM connections JOIN connection_grants USING (account_id, client_id)
        WHERE client_id = $1 LIMIT $2`,
      [id, BATCH],
    );
    if (grants.length === 0) break;
    const grantIds = grants.map((grant) => grant.grant_id);
    await Promise.all(grantIds.map(revokeGrant));
    await database.query(
      `WITH ended AS (
          DELETE FROM connection_grants WHERE grant_id = ANY($1)
          RETURNING grant_id, account_id, client_id)
        INSERT INTO revoked_grants (grant_id, at, cause, account_id, client_id)
          SELECT grant_id, $2, 'client_deleted', account_id, client_id FROM ended
          ON CONFLICT DO NOTHING`,
      [grantIds, new Date(clock())],
    );
  }
  let people = 0;
  let removed: readonly object[];
  do {
    removed = await database.query(
      `WITH removed AS (
          DELETE FROM connections WHERE (account_id, client_id) IN (
            SELECT account_id, client_id FROM connections WHERE client_id = $1 LIMIT $2)
          RETURNING account_id, client_id)
        INSERT INTO activity (at, account_id, actor, action, details)
          SELECT $3, account_id, 'service', 'disconnected', jsonb_build_object(
              'client_id', client_id, 'client_name', name, 'cause', 'client_deleted')
            FROM removed JOIN clients ON clients.id = client_id
        RETURNING 1`,
      [id, BATCH, new Date(clock())],
    );
    people += removed.length;
  } while (removed.length > 0);
  await database.transaction(async (tx) => {
    const gone = await tx.query('DELETE FROM clients WHERE id = $1 RETURNING 1', [id]);
    if (gone.length === 0) throw unknownClient(id);
    await alongside?.(tx, people);
  });
  return people;
}
