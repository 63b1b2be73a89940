/** A GraphQL API in Koa that protects itself with the resource server module. */
import { buildSchema } from 'graphql';
import { createHandler } from 'graphql-http/lib/use/koa';
import Koa from 'koa';
import { type Answer, ask } from '../../../test/support/oauth.ts';
import { type Caller, type Introspector, protect, requireRight, warehousesOf } from '../src/resource-server.ts';
import { listen } from './stand-in.ts';

export interface WarehouseApi {
  readonly url: URL;
  /** Sends one GraphQL request with this access token. */
  query(token: string, query: string): Promise<Answer>;
}

export const SCHEMA = buildSchema(`
  type Caller { method: String!, subject: String!, accountId: ID, clientId: ID, username: String }
  type Warehouse { id: ID!, name: String!, rights: [String!]! }
  type Query { caller: Caller!, warehouses(right: String!): [Warehouse!]! }
`);

const OPERATIONS = {
  caller: (_: object, { caller }: Context) => caller,
  warehouses: ({ right }: { right: 'read' }, { caller }: Context) => warehousesOf(caller, right),
};

type Context = { caller: Caller };

/** Starts the API, which is closed after the file. */
export async function startWarehouseApi(introspector: Introspector): Promise<WarehouseApi> {
  const app = new Koa();
  app.use(protect(introspector));
  app.use(async (ctx, next) => {
    if (ctx.path !== '/stock') return next();
    requireRight(ctx.state.caller, String(ctx.query.warehouse), 'manage');
    ctx.body = 'stock';
  });
  app.use(
    createHandler({
      schema: SCHEMA,
      rootValue: OPERATIONS,
      context: ({ context }) => ({ caller: context.res.ctx.state.caller }),
    }),
  );
  const url = new URL('/graphql', await listen(app.callback()));
  return {
    url,
    query: (token, query) =>
      ask(url, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      }),
  };
}
