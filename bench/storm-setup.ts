/** Two nodes behind nginx, with a Redis that can fail over, for `storm.ts`. */
import { createMemberships } from '../src/accounts/access/memberships.ts';
import { systemClock } from '../src/base/clock.ts';
import { DOCUMENTED_PROXIES, startProxy } from '../test/journeys/documented-proxies.ts';
import { type NodeAddress, startNode } from '../test/many-nodes/running-node.ts';
import { createOpened } from '../test/support/opened.ts';
import { freshMigratedDatabaseUrl } from '../test/support/postgres-server.ts';
import { freePort } from '../test/support/programs.ts';
import { untilMaster } from '../test/support/redis-groups.ts';
import { seed } from '../test/support/seed.ts';
import { startTestService } from '../test/support/service.ts';
import { connectPeople } from './connected-people.ts';
import { TOKEN_KEY } from './deployment.ts';
import { groupOf, startRedis } from './ends-setup.ts';
import { withoutPrecedence } from './processor.ts';

export type StormSetup = Awaited<ReturnType<typeof startStormSetup>>;

/**
 * @param people the number of users, each with an access token
 * @param streams the number of change streams that a node must be able to serve: during a restart
 *   the other node has all of them
 */
export async function startStormSetup({ people, streams }: { people: number; streams: number }) {
  const opened = createOpened();
  const [nginx] = DOCUMENTED_PROXIES;
  if (!nginx) throw new Error('no proxy is documented');
  const proxy = await startProxy(opened, nginx);
  const { issuer, certificate } = proxy;
  const redis = await startRedis('sentinel');
  const databaseUrl = await freshMigratedDatabaseUrl();
  const storage = { databaseUrl, redisUrl: redis.url };

  const server = { port: await freePort(), proxyHops: 1 };
  const first = await startTestService({ settings: { issuer, isLoopback: true, server, storage } });
  const { clients } = await seed(first);
  const places = { storage: { ...storage, dataDirectory: '' } };
  const connected = await connectPeople(places, clients.confidential, people);
  await first.close();
  const { database } = connected;
  const memberships = createMemberships({ database, clock: systemClock });

  const start = (address: NodeAddress) => {
    const { host } = address;
    const settings = {
      server: { host, operators_host: host, proxy_hops: 1 },
      limits: { change_streams_per_client: streams },
    };
    return withoutPrecedence(() =>
      startNode({
        sharing: first,
        issuer,
        address,
        environment: { GATEHOUSE_TOKEN_KEYS: TOKEN_KEY },
        // The log is written as in production, but not read here.
        logFile: '/dev/null',
        // JSON is valid YAML.
        settings: JSON.stringify(settings),
      }),
    );
  };
  const nodes = await Promise.all(proxy.nodes.map(start));
  await redis.untilReplicated();

  return {
    issuer,
    certificate,
    memberships,
    resourceServer: clients.resourceServer,
    people: connected,

    /** Resolves when the node has ended and another one is ready at the same address. */
    async restartNode(index: 0 | 1, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
      await nodes[index]?.end(signal);
      nodes[index] = await start(proxy.nodes[index]);
    },

    /**
     * Kills the master. Resolves when it follows the new one.
     *
     * @returns milliseconds until the Sentinel had made the replica the master, which it decides alone
     */
    async failOver(): Promise<number> {
      const { sentinel, replica } = groupOf(redis);
      const { master } = redis;
      await master.kill();
      const killedAt = performance.now();
      await untilMaster(sentinel, replica);
      const milliseconds = performance.now() - killedAt;
      redis.swap();
      await master.restart();
      await redis.follow();
      await redis.untilReplicated();
      return milliseconds;
    },

    async close(): Promise<void> {
      await connected.close();
      await Promise.all(nodes.map((node) => node.end('SIGTERM')));
      await opened.closeAll();
    },
  };
}
