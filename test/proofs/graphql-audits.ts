/**
 * Audits each GraphQL server of the guide by GraphQL over HTTP, with the module in front. What such a server does not
 * pass alone either is its own; anything else is a finding.
 */
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';
import fastify from 'fastify';
import { buildSchema } from 'graphql';
import { serverAudits } from 'graphql-http';
import mercurius from 'mercurius';
import { SERVERS } from '../../modules/node/test/servers.ts';
import { API, bearer, introspectorOf, startService, TOKEN } from '../../modules/node/test/stand-in.ts';
import { startWarehouseApi } from '../../modules/node/test/warehouse-api.ts';
import { atEndOfFile, endRun } from '../support/end-of-run.ts';

const schema = buildSchema('type Query { subject: String }');

/** The servers that do not pass all, without the module. */
const ALONE: Readonly<Record<string, () => Promise<string>>> = {
  'Apollo Server 5': async () => {
    const server = new ApolloServer({ schema, allowBatchedHttpRequests: true });
    atEndOfFile(() => server.stop());
    const { url } = await startStandaloneServer(server, { listen: { port: 0, host: '127.0.0.1' } });
    return String(new URL('/graphql', url));
  },
  'Mercurius (Fastify 5)': async () => {
    const app = fastify();
    await app.register(mercurius, { schema, allowBatchedQueries: true });
    atEndOfFile(() => app.close());
    return `${await app.listen({ port: 0, host: '127.0.0.1' })}/graphql`;
  },
};

/** @returns how many audits there are, and a line for each that the server does not pass */
async function audit(url: string): Promise<{ readonly all: number; readonly failed: readonly string[] }> {
  const withToken = (input: string, { headers, ...rest }: RequestInit = {}) =>
    fetch(input, { ...rest, headers: { ...headers, ...bearer(TOKEN).headers } });
  const results = await Promise.all(serverAudits({ url, fetchFn: withToken }).map(({ fn }) => fn()));
  const failed = results.flatMap((one) => (one.status === 'ok' ? [] : [`${one.status} ${one.name}: ${one.reason}`]));
  return { all: results.length, failed };
}

try {
  const caller = { token_type: 'Bearer', client_id: 'gate_ci_a', sub: 'acc_a', organizations: [] };
  const service = await startService(() => caller);
  const introspector = introspectorOf(API, { issuer: service.origin });
  const servers: typeof SERVERS = { ...SERVERS, Koa: async () => (await startWarehouseApi(introspector)).url };
  for (const [name, start] of Object.entries(servers)) {
    const { all, failed } = await audit(String(await start(schema, introspector)));
    const alone = ALONE[name];
    const own = alone ? (await audit(await alone())).failed : [];
    const added = failed.filter((line) => !own.includes(line));
    console.log(
      `${name}: ${all - failed.length} of ${all}; ${failed.length - added.length} fail without the module, too`,
    );
    for (const line of failed) console.log(`  ${added.includes(line) ? 'FINDING' : 'its own'}: ${line}`);
    if (added.length > 0) process.exitCode = 1;
  }
} finally {
  await endRun();
}
