/** Two node processes: requests that are lost when one of them stops or is killed under load. */
import { expect } from 'chai';
import { type PartnerTokens, partnerTokens } from '../provider/partner-tokens.ts';
import { freePort } from '../support/programs.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startsOn } from '../support/service.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import { mixedRequests } from './mixed-requests.ts';
import { refreshChain } from './refresh-chains.ts';
import { type NodeOptions, type RunningNode, startNode } from './running-node.ts';
import { startLoad } from './steady-load.ts';

const CHAINS = 10;

describeOn([postgresServer, redisServer], 'two nodes behind a load balancer', () => {
  const start = startsOn('postgres+redis');
  let seeded: Seed;
  let balancer: Balancer;
  let partner: PartnerTokens;
  let options: NodeOptions;
  const nodes: RunningNode[] = [];

  before(async () => {
    balancer = await startBalancer(await freePort());
    const { issuer } = balancer;
    const service = await start({ settings: { issuer } });
    seeded = await seed(service);
    // Use a longer delay than the balancer needs to notice a shutdown, even on a busy machine.
    options = { sharing: service, issuer, settings: 'server:\n  shutdown_delay: 2s\n' };
    nodes.push(...(await Promise.all([startNode(options), startNode(options)])));
    balancer.serve(nodes);
    partner = partnerTokens(issuer, seeded);
  });
  after(async () => {
    await Promise.all(nodes.map((node) => node.end('SIGKILL')));
    await balancer?.close();
  });

  it('no request is lost when one of two nodes receives SIGTERM', async () => {
    const { accessToken } = await partner.tokens(seeded.clients.confidential);
    const about = { accessToken, session: partner.browser };
    const load = startLoad(mixedRequests(balancer.issuer, seeded, about));
    await load.more(100);
    const [leaving] = nodes.splice(0, 1);
    await leaving?.end('SIGTERM');
    await load.more(100);
    await load.stop();
    expect(load.failures).to.deep.equal([]);
    expect(balancer.lost).to.equal(0);
    expect(await leaving?.exitCode, leaving?.output()).to.equal(0);
  });

  it('no chain of refreshes breaks when one of two nodes is killed', async () => {
    const client = seeded.clients.confidential;
    nodes.push(await startNode(options));
    balancer.serve(nodes);
    const chains = [];
    for (let number = 0; number < CHAINS; number += 1) {
      const { refreshToken } = await partner.tokens(client);
      chains.push(refreshChain(balancer.issuer, client, refreshToken));
    }
    const load = startLoad(chains.map((chain) => oneAfterTheOther(chain.next)));
    await load.more(100);
    const [killed] = nodes.splice(0, 1);
    await killed?.end('SIGKILL');
    await load.more(100);
    await load.stop();
    expect(load.failures).to.deep.equal([]);
    const unanswered = chains.reduce((sum, chain) => sum + chain.unanswered, 0);
    expect(unanswered, 'only requests in flight').to.be.at.most(CHAINS);
    expect(balancer.lost).to.equal(unanswered);
    // Every client can continue from its latest successful response.
    for (const chain of chains) {
      const { length, unanswered: before } = chain;
      await chain.next();
      expect(chain.length).to.equal(length + 1);
      expect(chain.unanswered).to.equal(before);
    }
  });
});

/** Runs one call of `work` at a time: a client waits for its token before it refreshes again. */
function oneAfterTheOther(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return () => {
    last = last.catch(() => {}).then(work);
    return last;
  };
}
