/** Two nodes, their stores and an API, with every connection that a fault of `ends.ts` breaks. */
import { bearer, introspectorOf } from '../modules/node/test/stand-in.ts';
import { isMachineToken } from '../src/authorizations/token-formats.ts';
import { createLifeline, type Lifeline } from '../test/many-nodes/lifeline.ts';
import { partnerTokens, tokensOf } from '../test/provider/partner-tokens.ts';
import { startTcpProxy } from '../test/storage/tcp-proxy.ts';
import { eventually } from '../test/support/eventually.ts';
import { clientCredentials, introspect, postForm } from '../test/support/oauth.ts';
import { startPostgresServer } from '../test/support/postgres-server.ts';
import { freePort } from '../test/support/programs.ts';
import { ask, askSentinel, portOf, type Sentinel, startSentinel } from '../test/support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../test/support/redis-server.ts';
import { seed } from '../test/support/seed.ts';
import { type Overrides, startTestService, type TestService } from '../test/support/service.ts';

/** `volatile`: a single Redis that stores nothing on a disk. */
export type RedisKind = 'single' | 'volatile' | 'sentinel';
export type Setup = Awaited<ReturnType<typeof startSetup>>;

const YEAR = 365 * 86_400;

export interface RedisGroup {
  master: RedisServer;
  replica: RedisServer | undefined;
  readonly sentinel: Sentinel | undefined;
  readonly url: string;
  /** Swaps `master` and `replica`, after a failover. */
  swap(): void;
  /** Makes the former master a replica. Sentinel would do so, too, but only after 8 to 20 seconds. */
  follow(): Promise<void>;
  untilReplicated(): Promise<void>;
}

export function groupOf({ sentinel, replica }: RedisGroup) {
  if (!sentinel || !replica) throw new Error('this Redis has no replica');
  return { sentinel, replica };
}

/** Starts a Redis, or a master with a replica and a Sentinel. */
export async function startRedis(kind: RedisKind): Promise<RedisGroup> {
  const settings = { 'repl-diskless-sync-delay': '0' };
  const more = kind === 'volatile' ? { appendonly: 'no' } : { 'enable-debug-command': 'local' };
  const master = await startRedisServer({ ...settings, ...more });
  if (kind !== 'sentinel') {
    const { url } = master;
    const none = { swap: () => {}, follow: async () => {}, untilReplicated: async () => {} };
    return { master, replica: undefined, sentinel: undefined, url, ...none };
  }
  const replicaof = `127.0.0.1 ${portOf(master)}`;
  const replica = await startRedisServer({ ...settings, replicaof });
  const sentinel = await startSentinel(master);
  const group = {
    master,
    replica,
    sentinel,
    url: `redis+sentinel://127.0.0.1:${sentinel.port}/warehouse`,
    swap() {
      [group.master, group.replica] = [group.replica, group.master];
    },
    async follow() {
      await ask(group.replica, 'REPLICAOF', '127.0.0.1', `${portOf(group.master)}`);
    },
    untilReplicated: () =>
      eventually(async () => {
        const said = String(await ask(group.master, 'INFO', 'replication'));
        if (!/slave0:.*state=online/.test(said)) {
          // Repeat this, because a Sentinel may change the role of a restarted server meanwhile.
          await group.follow();
          throw new Error('the replica does not follow');
        }
        // A Sentinel fails over only to a server that it knows as a replica.
        const facts = (await askSentinel(sentinel, 'replicas', 'warehouse')) as string[][];
        const flags = facts.map((one) => one[one.indexOf('flags') + 1]);
        if (flags.join() !== 'slave') throw new Error(`the Sentinel sees ${flags}`);
      }),
  };
  return group;
}

/**
 * Starts a node to which revocations are sent, and a second node with an API that caches its callers.
 *
 * @param more settings of both nodes
 */
export async function startSetup(kind: RedisKind, more: Overrides = {}) {
  const postgres = await startPostgresServer();
  const redis = await startRedis(kind);
  const links = await Promise.all([1, 2].map(() => startTcpProxy(Number(new URL(postgres.url).port))));
  const [nodeUrl = '', feedUrl = ''] = links.map(({ port }) => postgres.url.replace(/:\d+(?=\/|$)/, `:${port}`));
  // Use the timeouts of production, because the result depends on them.
  const timeoutFactor = 1;
  const other = await startTestService({
    timeoutFactor,
    settings: {
      storage: { databaseUrl: feedUrl, redisUrl: redis.url },
      // Tokens must not expire: in a long run the clock of the API is advanced by hours.
      tokens: { accessTokenSeconds: YEAR, machineAccessTokenSeconds: YEAR, ...more.tokens },
      limits: { ...more.limits },
    },
  });
  const port = await freePort();
  const reached = { issuer: `http://localhost:${port}`, databaseUrl: nodeUrl };
  const lifeline: Lifeline & { urls: Partial<typeof reached> & { redisUrl?: string } } = await createLifeline(
    kind === 'sentinel' ? reached : { ...reached, redisUrl: redis.url },
  );
  const { issuer = '', ...storage } = lifeline.urls;
  const settings = { issuer, server: { port }, storage };
  let node: TestService = await startTestService({ sharing: other, timeoutFactor, settings });
  const seeded = await seed(other);
  const { confidential: client, machine, resourceServer } = seeded.clients;
  const partner = partnerTokens(other.issuer, seeded);
  const stream = await startTcpProxy(other.settings.server.port);
  let ahead = 0;
  const api = introspectorOf(resourceServer, {
    issuer: other.issuer,
    live: true,
    clock: () => Date.now() + ahead,
    timeoutMs: 1_000,
    introspectionEndpoint: `http://127.0.0.1:${stream.port}/oauth/introspect`,
    onFailure: () => {},
  });
  const isAccepted = async (token: string): Promise<boolean> =>
    (await api.identify(bearer(token))).caller !== undefined;

  async function machineToken(): Promise<string> {
    const answer = await clientCredentials(other.issuer, machine);
    if (answer.status !== 200) throw new Error(`a machine was answered ${answer.status}`);
    return tokensOf(answer).accessToken;
  }

  const untilReady = (): Promise<void> =>
    eventually(async () => {
      for (const { database, store } of [node, other]) {
        await database.ping();
        await store.ping();
      }
    });

  return {
    postgres,
    redis,
    /** The connections of each node to PostgreSQL; an API uses the second node. */
    links,
    stream,
    lifeline,
    isAccepted,
    issuers: [issuer, other.issuer],
    client,
    resourceServer,
    partner,

    async restartNode() {
      await node.close();
      lifeline.restart();
      node = await startTestService({ settings: node.settings, sharing: other, timeoutFactor });
    },

    /** @returns the status; undefined if there was no answer. */
    revoke: async (token: string): Promise<number | undefined> => {
      const by = isMachineToken(token) ? machine : client;
      const answer = await postForm(issuer, '/oauth/revoke', { token }, { client: by }).catch(() => {});
      return answer?.status;
    },

    /** Creates access tokens, the last of a machine, and calls the API until it accepts them from its cache. */
    async rememberedTokens(count: number): Promise<readonly string[]> {
      const tokens: string[] = [];
      await eventually(async () => {
        while (tokens.length < count - 1) tokens.push((await partner.tokens(client)).accessToken);
        tokens.push(await machineToken());
      });
      await eventually(async () => {
        // The module caches no answers in the first seconds after a change.
        ahead += 10_000;
        for (const token of tokens) await isAccepted(token);
        for (const token of tokens) {
          const { caller, decidedBy } = await api.identify(bearer(token));
          if (!caller || decidedBy !== 'memory') throw new Error('not remembered yet');
        }
      });
      return tokens;
    },

    /** Waits until both nodes reach their stores. */
    untilReady,

    /** Counts the tokens that are active at a node, after the task that each node runs every minute. */
    async countActive(tokens: readonly string[]): Promise<number> {
      await untilReady();
      const nodes = [node, other];
      let active = 0;
      for (const one of nodes) await one.clean();
      for (const token of tokens) {
        const answers = await Promise.all(
          nodes.map((one) =>
            eventually(async () => {
              const { status, body } = await introspect(one.issuer, resourceServer, token);
              if (status !== 200) throw new Error(`introspection was answered ${status}`);
              return body.active === true;
            }),
          ),
        );
        if (answers.includes(true)) active += 1;
      }
      return active;
    },

    async close() {
      api.close();
      await node.close();
      await lifeline.close();
      await other.close();
      for (const proxy of [...links, stream]) await proxy.close();
      for (const server of [redis.master, redis.replica]) await server?.stop();
      await postgres.stop();
    },
  };
}
