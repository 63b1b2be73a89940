/** Starts the sandbox's GraphQL API for a service, and configures it as the API of its clients. */
import { startWarehouseApi } from '../../examples/sandbox/warehouse-api.ts';
import { createIntrospector } from '../../modules/node/src/resource-server.ts';
import { atEndOfFile } from './end-of-run.ts';
import type { Seeded } from './seeded.ts';

/** A query that every caller may send. */
const QUERY = '{ caller { username } }';

/** Starts the API, and applies settings that name it. @returns its URL */
export async function nameWarehouseApi({ service, issuer, clients }: Seeded): Promise<string> {
  const { id: clientId, secret: clientSecret = '' } = clients.resourceServer;
  const introspector = createIntrospector({ issuer, clientId, clientSecret });
  const api = await startWarehouseApi({ introspector });
  atEndOfFile(async () => {
    await api.close();
    await introspector.close();
  });
  const { href: graphqlUrl } = api.url;
  await service.apply({ ...service.settings, api: { graphqlUrl, exampleQuery: QUERY } });
  return graphqlUrl;
}
