/** A GraphQL API of warehouses and their stock, protected by the resource server module. */
import type { ServerResponse } from 'node:http';
import { printSchema } from 'graphql';
import { createHandler } from 'graphql-http/lib/use/http';
import { callerContext, type Introspector } from '../resource-server/resource-server.ts';
import { listen } from './listening.ts';
import { createStock, SCHEMA } from './stock.ts';

export interface WarehouseApi {
  /** Where it takes GraphQL requests. */
  readonly url: URL;
  close(): Promise<void>;
}

export const apiUrlAt = (port: number): string => `http://127.0.0.1:${port}/graphql`;

export async function startWarehouseApi({
  introspector,
  port = 0,
}: {
  readonly introspector: Introspector;
  readonly port?: number;
}): Promise<WarehouseApi> {
  const graphql = createHandler({
    schema: SCHEMA,
    rootValue: createStock(),
    context: callerContext(introspector),
  });
  const listening = await listen(
    (request, response) => {
      const [path] = (request.url ?? '').split('?');
      if (path === '/graphql') graphql(request, response);
      else if (path === '/') describe(response);
      else response.writeHead(404).end();
    },
    { host: '127.0.0.1', port },
  );
  return {
    url: new URL(apiUrlAt(listening.port)),
    close: listening.close,
  };
}

/** For whoever opens the address in a browser. */
function describe(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(
    `The warehouse API of the Gatehouse sandbox. POST GraphQL as JSON to /graphql, with
Authorization: Bearer <access token or API key>.\n\n${printSchema(SCHEMA)}\n`,
  );
}
