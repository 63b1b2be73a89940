/** Under load, one of two nodes behind each documented proxy restarts, and then serves alone: no request fails. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { nodeBehind, trusting } from '../doctor/behind-proxy.ts';
import { type NodeAddress, type RunningNode, startNode } from '../many-nodes/running-node.ts';
import { createOpened } from '../support/opened.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, openssl, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import type { TestService } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { caddyOnOneMachine, DOCUMENTED_PROXIES, type RunningProxy, startProxy } from './documented-proxies.ts';
import { type Failure, prepareLoad } from './rolling-load.ts';

const ROUNDS = repeated(1);
/** Requests per second: little for two cores that also run all other programs, and some in each second without a node. */
const RATE = 5;

interface LogLine {
  readonly msg: string;
  readonly path: string;
  readonly requestId: string;
}

/** Returns an empty list for an incomplete line, which a killed node may leave in the log that all nodes share. */
function parseLine(line: string): LogLine[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

for (const proxy of [...DOCUMENTED_PROXIES, caddyOnOneMachine]) {
  describeOn([postgresServer, redisServer, openssl, proxy], `two nodes behind ${proxy.name}`, () => {
    const opened = createOpened();
    let running: RunningProxy;
    let firstService: TestService;
    let seeded: Seed;
    let logFile: string;
    let nodes: RunningNode[];

    before(async () => {
      running = await startProxy(opened, proxy);
      firstService = await nodeBehind(opened, running.issuer);
      seeded = await seed(firstService);
      logFile = path.join(temporaryDirectory('log'), 'nodes.log');
      nodes = await Promise.all(running.nodes.map(start));
    });
    after(async () => {
      await Promise.all(nodes.map((node) => node.end('SIGKILL')));
      await opened.closeAll();
    });

    const start = (address: NodeAddress): Promise<RunningNode> => {
      const { host } = address;
      const server = { host, operators_host: host, proxy_hops: 1, ...proxy.serverSettings };
      const { issuer } = running;
      // Write JSON, which is valid YAML.
      return startNode({
        sharing: firstService,
        issuer,
        address,
        logFile,
        settings: JSON.stringify({ server }),
      });
    };

    /** Restarts a node. Resolves once it is ready and the documented pause has passed. */
    async function restart(index: 0 | 1): Promise<void> {
      const node = nodes[index];
      await node?.end('SIGTERM');
      expect(await node?.exitCode, node?.output()).to.equal(0);
      nodes[index] = await start(running.nodes[index]);
      await delay(proxy.pauseBetweenNodesMs);
    }

    /** The request ids of all token requests that the nodes logged. */
    function loggedTokenRequests(): string[] {
      const lines = readFileSync(logFile, 'utf8').split('\n').filter(Boolean);
      return lines
        .flatMap(parseLine)
        .filter(({ msg, path }) => msg === 'request' && path === '/oauth/token')
        .map(({ requestId }) => requestId);
    }

    // The proxy of one machine differs only in its health checks, which tell nothing about a node that was just killed.
    const signal = proxy.isOneMachine ? 'SIGTERM' : 'SIGKILL';
    const lost = proxy.isOneMachine ? 'none' : 'only those that a killed node processes';

    it(`while one node restarts and then the other ends, of the requests ${lost} fail, and each is answered once`, async () => {
      let [from, to] = [0, 0];
      const load = await trusting(running.certificate, async () => {
        const load = await prepareLoad(running.issuer, seeded);
        load.start(RATE);
        await delay(1_000);
        for (let round = 0; round < ROUNDS; round += 1) await restart(0);
        from = performance.now();
        await nodes[1]?.end(signal);
        to = performance.now();
        // Longer than a proxy may take to notice it. Only the node that has returned can answer now.
        await delay(3_000);
        await load.stop();
        await load.expectAllValid();
        return load;
      });
      const isInFlight = ({ begunAt, failedAt }: Failure): boolean =>
        signal === 'SIGKILL' && begunAt < to + proxy.failsRefusedPostsForMs && failedAt > from;
      const others = load.failures.filter((failure) => !isInFlight(failure));
      expect(others.map(({ what }) => what).join('\n')).to.equal('');
      // The node writes the remaining lines of its log when it shuts down.
      await nodes[0]?.end('SIGTERM');
      // Accept that: a request that a killed node completed but could not answer is not repeated.
      const answered = new Set(load.tokenAnswers);
      expect(answered.size, 'answered token requests').to.be.above(0);
      const unanswered = loggedTokenRequests().filter((id) => !answered.has(id));
      expect(unanswered.length).to.be.at.most(load.failures.length);
    });
  });
}
