/** A program in TypeScript for each row of the guide's table of servers. */

/** The beginning of each program; `start` returns the server and the path of the API. */
const HEAD = `
import { createServer } from 'node:http';
import { buildSchema } from 'graphql';
import * as gatehouse from 'gatehouse/resource-server';
const introspector = gatehouse.createIntrospector({
  issuer: process.env.ISSUER ?? '',
  clientId: process.env.CLIENT_ID ?? '',
  clientSecret: process.env.CLIENT_SECRET ?? '',
});
const schema = buildSchema('type Query { subject: String! }');
type Context = { readonly caller: gatehouse.Caller };
const rootValue = { subject: (_: unknown, { caller }: Context) => caller.subject };
const listen = (handler: import('node:http').RequestListener) => createServer(handler).listen(0);
void [schema, rootValue, listen];
`;

export interface Row {
  /** The texts of the guide that the program contains unchanged. */
  readonly guide: readonly string[];
  readonly code: string;
}

const koa = (app: string): string => `
import Koa from 'koa';
const { protect } = gatehouse;
type Caller = gatehouse.Caller;
const app = ${app};
app.use(protect(introspector));
app.use((ctx) => {
  ctx.body = { data: { subject: ctx.state.caller.subject } };
});
export const server = app.listen(0);`;

export const ROWS: Readonly<Record<string, Row>> = {
  'graphql-http on Node': {
    guide: ['context: callerContext(introspector)'],
    code: `
import { createHandler } from 'graphql-http/lib/use/http';
const { callerContext } = gatehouse;
export const server = listen(createHandler({
  schema, rootValue,
  context: callerContext(introspector),
}));`,
  },
  'graphql-http on Express': {
    guide: ['context: callerContext(introspector)'],
    code: `
import express from 'express';
import { createHandler } from 'graphql-http/lib/use/express';
const { callerContext } = gatehouse;
const app = express();
app.use(createHandler({ schema, rootValue, context: callerContext(introspector) }));
export const server = app.listen(0);`,
  },
  Yoga: {
    guide: ['plugins: [useCaller(introspector)]'],
    code: `
import { createSchema, createYoga, type YogaInitialContext } from 'graphql-yoga';
const { useCaller } = gatehouse;
export const server = listen(createYoga<object, Context>({
  schema: createSchema<Context & YogaInitialContext>({
    typeDefs: 'type Query { subject: String! }',
    resolvers: { Query: { subject: (_root, _parameters, { caller }) => caller.subject } },
  }),
  logging: false,
  plugins: [useCaller(introspector)],
}));`,
  },
  Apollo: {
    guide: ['context: async ({ req }) => ({ caller: await callerFrom(introspector, req) })'],
    code: `
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
const { callerFrom } = gatehouse;
const apollo = new ApolloServer<Context>({
  typeDefs: 'type Query { subject: String! }',
  resolvers: { Query: { subject: (_root: unknown, _: unknown, { caller }: Context) => caller.subject } },
  includeStacktraceInErrorResponses: false,
});
const { url } = await startStandaloneServer(apollo, {
  listen: { port: 0 },
  context: async ({ req }) => ({ caller: await callerFrom(introspector, req) }),
});
export const server = { address: () => new URL(url), close: () => apollo.stop() };`,
  },
  Fastify: {
    guide: ["app.addHook('onRequest', requireCaller(introspector))", 'request.caller'],
    code: `
import fastify from 'fastify';
const { requireCaller } = gatehouse;
const app = fastify();
app.addHook('onRequest', requireCaller(introspector));
app.all('/graphql', async (request) => ({ data: { subject: request.caller.subject } }));
await app.listen({ port: 0 });
export const server = app.server;`,
  },
  Mercurius: {
    guide: ["app.addHook('onRequest', requireCaller(introspector))"],
    code: `
import fastify from 'fastify';
import mercurius from 'mercurius';
const { requireCaller } = gatehouse;
const app = fastify();
app.addHook('onRequest', requireCaller(introspector));
app.register(mercurius, {
  schema,
  resolvers: { Query: { subject: (_root: unknown, _: unknown, context: unknown) => (context as Context).caller.subject } },
  context: ({ caller }) => ({ caller }),
});
await app.listen({ port: 0 });
export const server = app.server;`,
  },
  Koa: {
    guide: ['app.use(protect(introspector))', 'ctx.state.caller', 'new Koa<{ caller: Caller }>()'],
    code: koa('new Koa<{ caller: Caller }>()'),
  },
  'Koa without a type': {
    guide: ['app.use(protect(introspector))'],
    code: koa('new Koa()'),
  },
  Express: {
    guide: ['app.use(protectExpress(introspector))', 'request.caller'],
    code: `
import express from 'express';
const { protectExpress, answerRefusals } = gatehouse;
const app = express();
app.use(protectExpress(introspector));
app.all('/graphql', (request, response) => {
  response.json({ data: { subject: request.caller.subject } });
});
app.use(answerRefusals);
export const server = app.listen(0);`,
  },
  fetch: {
    guide: ['const { caller, refusal } = await introspector.identify(request)', 'new Response(refusal.body, refusal)'],
    code: `
async function answer(request: Request): Promise<Response> {
  const { caller, refusal } = await introspector.identify(request);
  if (refusal) return new Response(refusal.body, refusal);
  return Response.json({ data: { subject: caller.subject } });
}
export const server = listen(async ({ headers: { authorization } }, response) => {
  const headers = new Headers();
  if (authorization !== undefined) headers.set('authorization', authorization);
  const answered = await answer(new Request('http://localhost/graphql', { headers }));
  response.setHeaders(answered.headers).writeHead(answered.status).end(await answered.text());
});`,
  },
};

export const programOf = ({ code }: Row): string => `${HEAD}${code}\n`;
