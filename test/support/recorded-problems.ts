/** The stored problems of a client, each request on its own: the service shows only groups. */
import type { ClientProblem, ClientProblems } from '../../src/clients/client-problems.ts';
import type { Queries } from '../../src/storage/queries.ts';

/** Waits for the background writes, and returns the problems, newest first. */
export async function recordedProblems(
  on: { readonly clientProblems: Pick<ClientProblems, 'countsOf'>; readonly database: Queries },
  clientId: string,
): Promise<ClientProblem[]> {
  await on.clientProblems.countsOf([clientId]);
  const rows = await on.database.query<ClientProblem>(
    `SELECT at, step, error, cause, redirect_uri AS "redirectUri", scope,
        auth_method AS "authMethod", request_id AS "requestId"
      FROM client_problems WHERE client_id = $1 ORDER BY id DESC`,
    [clientId],
  );
  return rows.map((row) => {
    const present = Object.entries(row).filter(([, value]) => value !== null);
    return Object.fromEntries(present) as unknown as ClientProblem;
  });
}
