/** Common GraphQL servers, each started as its own documentation says. */
import type { RequestListener } from 'node:http';
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import express from 'express';
import fastify from 'fastify';
import type { GraphQLSchema } from 'graphql';
import { createHandler as overExpress } from 'graphql-http/lib/use/express';
import { createHandler as overHttp } from 'graphql-http/lib/use/http';
import mercurius from 'mercurius';
import { atEndOfFile } from '../../../test/support/end-of-run.ts';
import {
  type Caller,
  callerContext,
  callerFrom,
  type Introspector,
  requireCaller,
  useCaller,
} from '../src/resource-server.ts';
import { listen } from './stand-in.ts';

/** Starts a server, which is closed after the file. @returns the URL of its GraphQL endpoint */
type StartServer = (schema: GraphQLSchema, introspector: Introspector) => Promise<URL>;

export const SERVERS: Readonly<Record<string, StartServer>> = {
  'graphql-http': async (schema, introspector) => serve(overHttp({ schema, context: callerContext(introspector) })),

  Express: async (schema, introspector) => {
    const app = express().set('env', 'test');
    app.use(overExpress({ schema, context: callerContext(introspector) }));
    return serve(app);
  },

  'Yoga 5': async (schema, introspector) => {
    // Import it without its types, which would add browser types. rows.slow.ts checks our types.
    const { createYoga } = await import('graphql-yoga' as string);
    const plugins = [useCaller(introspector)];
    return serve(createYoga({ schema, plugins, batching: true, logging: false }));
  },

  'Apollo Server 5': async (schema, introspector) => {
    const server = new ApolloServer<{ caller: Caller }>({
      schema,
      allowBatchedHttpRequests: true,
      // Include no stack traces, as in production.
      includeStacktraceInErrorResponses: false,
    });
    const { url } = await startStandaloneServer(server, {
      listen: { port: 0, host: '127.0.0.1' },
      context: async ({ req }) => ({ caller: await callerFrom(introspector, req) }),
    });
    atEndOfFile(() => server.stop());
    return new URL('/graphql', url);
  },

  'Mercurius (Fastify 5)': async (schema, introspector) => {
    const app = fastify();
    app.addHook('onRequest', requireCaller(introspector));
    await app.register(mercurius, {
      schema,
      allowBatchedQueries: true,
      context: (request) => ({ caller: (request as { caller?: Caller }).caller }),
    });
    atEndOfFile(() => app.close());
    return new URL('/graphql', await app.listen({ port: 0, host: '127.0.0.1' }));
  },
};

const serve = async (handler: RequestListener): Promise<URL> => new URL('/graphql', await listen(handler));
