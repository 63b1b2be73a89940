/** How a client ends, with everything that was issued to it. */
import type { Clock } from '../clock.ts';
import type { Alongside, Database } from '../storage/queries.ts';
import { unknownClient } from './client-secrets.ts';

/** Connections of one step: a request elsewhere waits for a step, never for all. */
const BATCH = 1_000;

/**
 * Removes a client that was suspended, so that nothing is issued to it meanwhile. What was issued
 * counts only while the client is there. It may have more connections than one statement may take
 * time for; broken off in between, the removal can be begun again.
 *
 * @returns how many people had it connected.
 * @throws Refusal `client_unknown`
 */
export async function removeSuspendedClient(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  id: string,
  alongside?: Alongside<number>,
): Promise<number> {
  let people = 0;
  let removed: readonly object[];
  do {
    removed = await database.query(
      `WITH removed AS (
          DELETE FROM connections WHERE (account_id, client_id) IN (
            SELECT account_id, client_id FROM connections
              WHERE client_id = $1 AND ended_at IS NULL LIMIT $2)
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
