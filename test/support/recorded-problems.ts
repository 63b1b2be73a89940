/** The recorded problems of a client, each request on its own: the service shows only groups. */
import type { ClientRequest, ClientRequests } from '../../src/clients/client-requests.ts';
import type { Queries } from '../../src/storage/queries.ts';

/** A refused request as it is stored, without the values that were not known. */
export type ClientProblem = Omit<ClientRequest, 'clientId' | 'isFromClient'> & { readonly at: Date };

/** Waits for the background writes, and returns the problems, newest first. */
export async function recordedProblems(
  on: { readonly clientRequests: Pick<ClientRequests, 'groups'>; readonly database: Queries },
  clientId: string,
): Promise<ClientProblem[]> {
  await on.clientRequests.groups(clientId);
  const rows = await on.database.query<ClientProblem>(
    `SELECT at, step, error, cause, redirect_uri AS "redirectUri", scope,
        auth_method AS "authMethod", request_id AS "requestId"
      FROM client_requests WHERE client_id = $1 ORDER BY id DESC`,
    [clientId],
  );
  return rows.map((row) => {
    const present = Object.entries(row).filter(([, value]) => value !== null);
    return Object.fromEntries(present) as unknown as ClientProblem;
  });
}
