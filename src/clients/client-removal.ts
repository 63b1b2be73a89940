/** How a client ends, with everything that was issued to it. */
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
  database: Database,
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
    await database.query('DELETE FROM connection_grants WHERE grant_id = ANY($1)', [grantIds]);
  }
  let people = 0;
  let removed: readonly object[];
  do {
    removed = await database.query(
      `DELETE FROM connections WHERE (account_id, client_id) IN (
          SELECT account_id, client_id FROM connections WHERE client_id = $1 LIMIT $2)
        RETURNING 1`,
      [id, BATCH],
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
