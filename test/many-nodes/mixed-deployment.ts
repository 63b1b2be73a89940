/** The suites of an upgrade: one deployment whose nodes run the previous or the present version. */
import { writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { operatorWith, type RunOperator } from '../operator/run-operator.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { freePort } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { startUpstream, type Upstream } from '../support/upstream.ts';
import { CARRIED_OVER, type World } from './carried-over/carried-over.ts';
import { setUpWorld, startAll, type Unfinished } from './carried-over/world.ts';
import { HAS_WAY_BACK, PREVIOUS_VERSION } from './previous-version.ts';
import { type RunningNode, startNode } from './running-node.ts';

export type Version = 'previous' | 'present';

/**
 * One deployment whose nodes run either version, behind one issuer and on the same stores.
 *
 * @param storesOf creates empty stores. Returns the variables that name them.
 */
export function mixedDeployment(storesOf: () => Promise<Readonly<Record<string, string>>>) {
  const parts = {} as {
    balancer: Awaited<ReturnType<typeof startBalancer>>;
    upstream: Upstream;
    environment: Readonly<Record<string, string>>;
    settings: string;
    world: World;
  };
  const nodes = new Map<Version, RunningNode>();

  before('create the stores', async () => {
    parts.balancer = await startBalancer(await freePort());
    atEndOfFile(parts.balancer.close);
    parts.upstream = await startUpstream(parts.balancer.issuer);
    parts.settings = settingsFor(parts.upstream);
    parts.environment = await storesOf();
  });
  after('end the nodes', async () => {
    await Promise.all([...nodes.values()].map((node) => node.end('SIGKILL')));
  });

  const running = (version: Version): RunningNode => {
    const node = nodes.get(version);
    if (!node) throw new Error(`the ${version} version is not running`);
    return node;
  };

  return {
    get world() {
      return parts.world;
    },
    running,

    /** Adds accounts and clients with the operator command of the previous version. */
    async setUp(): Promise<void> {
      const { upstream, balancer } = parts;
      parts.world = await setUpWorld(this.operator('previous'), {
        upstream,
        issuer: balancer.issuer,
      });
    },

    /** Starts a node of this version, which receives all requests from then on. */
    async start(version: Version): Promise<void> {
      const { settings, environment, balancer } = parts;
      const { issuer } = balancer;
      const main = version === 'previous' ? { main: PREVIOUS_VERSION.main } : {};
      // Kill the former node, which a failed hook may have left running.
      await nodes.get(version)?.end('SIGKILL');
      nodes.set(version, await startNode({ settings, environment, issuer, ...main }));
      this.serveBy(version);
    },

    async stop(version: Version): Promise<void> {
      const node = running(version);
      parts.balancer.serve();
      nodes.delete(version);
      await node.end('SIGTERM');
      expect(await node.exitCode, node.output()).to.equal(0);
    },

    /** Sends all requests to the node of this version. */
    serveBy: (version: Version): void => parts.balancer.serve(running(version)),

    operator(version: Version): RunOperator {
      const { environment } = running(version);
      return version === 'present'
        ? operatorWith(environment)
        : operatorWith(environment, PREVIOUS_VERSION.runOperator);
    },
  };
}

type MixedDeployment = ReturnType<typeof mixedDeployment>;

/** Starts a proxy that stands for a load balancer: it passes all requests to the node that is to answer them. */
async function startBalancer(port: number) {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 32 });
  let target: RunningNode | undefined;

  const server = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming;
    const refuse = (): void => void outgoing.writeHead(502).end('no node answered');
    if (!target) return refuse();
    const { connection: _, ...kept } = headers;
    const options = { host: 'localhost', port: target.port, method, path, headers: kept, agent };
    const asking = request(options, async (response) => {
      const { connection: __, 'keep-alive': ___, 'transfer-encoding': ____, ...others } = response.headers;
      outgoing.writeHead(response.statusCode ?? 0, others).end(await text(response));
    });
    asking.on('error', refuse);
    incoming.pipe(asking);
  });
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve));

  return {
    issuer: `http://localhost:${port}`,
    /** Passes further requests to this node; without one they are answered 502. */
    serve(node?: RunningNode) {
      target = node;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      agent.destroy();
    },
  };
}

/** Returns the settings file, which is the same for both versions. */
export function settingsFor({ settings }: Upstream): string {
  const { id, label, issuer, clientId: client_id, clientSecret = '' } = settings();
  const client_secret_file = path.join(temporaryDirectory('provider'), 'secret');
  writeFileSync(client_secret_file, clientSecret);
  const match = 'external_id';
  const provider = { id, label, issuer, client_id, client_secret_file, match };
  // Write JSON, which is valid YAML.
  return JSON.stringify({ limits: { sign_in_failures: 2 }, sign_in: { providers: [provider] } });
}

/** Defines a test for each unfinished thing, so the title of a failing test says what was lost. */
export function testFinishing(unfinished: () => Unfinished, change: string): void {
  for (const { what } of [...CARRIED_OVER].reverse()) {
    it(`${change} does not break ${what}`, async () => {
      const finish = unfinished().get(what);
      if (!finish) throw new Error('it was not started');
      await finish();
    });
  }
}

/**
 * Two suites: things started on the previous version are finished on the present one, and the other
 * way round if the versions differ.
 */
export function testUpgradeAndRollback(on: MixedDeployment): void {
  let unfinished: Unfinished;

  describe('upgrade to the present version', () => {
    before(async () => {
      await on.start('previous');
      await on.setUp();
      unfinished = await startAll(on.world, on.operator('previous'));
      await on.stop('previous');
      await on.start('present');
    });
    testFinishing(() => unfinished, `an upgrade from ${PREVIOUS_VERSION.name}`);
  });

  if (!HAS_WAY_BACK) return;

  describe('rollback to the previous version', () => {
    before(async () => {
      unfinished = await startAll(on.world, on.operator('present'));
      await on.stop('present');
      await on.start('previous');
    });
    testFinishing(() => unfinished, `a rollback to ${PREVIOUS_VERSION.name}`);
  });
}
