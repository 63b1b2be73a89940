/** Measures the processor time of all processes together for a million requests and decisions. */
import { loadBareKoa } from './beside-koa.ts';
import { type DeploymentKind, prepareDeployment, startBareKoa } from './deployment.ts';
import { openStores } from './filled-stores.ts';
import { identify, rememberCallers } from './live.ts';
import { observeMachine } from './machine.ts';
import type { Call } from './open-loop.ts';
import { isPinned, onIdleCore, processorTimeOfTree } from './processor.ts';
import { storeProcesses } from './store-processes.ts';
import { table } from './table.ts';
import { closedLoop, createTokenCalls } from './token-calls.ts';

const AUTHORIZATIONS = 20_000;
/** Fewer than a node caches by default. */
const PEOPLE = 5_000;
const ROUNDS = 5;
/** These rounds are not measured: V8 recompiles code that runs ten thousand times. */
const WARM_UP_ROUNDS = 3;

/** Microseconds of each process for one request, which are seconds for a million. */
interface Cost {
  readonly requests: number;
  readonly parts: Readonly<Record<Part, number>>;
  readonly koa: number;
}

const PARTS = ['api', 'service', 'redis', 'postgres'] as const;
type Part = (typeof PARTS)[number];

/** @param requests how many of each kind are measured */
export async function measureCost({
  kind,
  requests,
}: {
  readonly kind: DeploymentKind;
  readonly requests: number;
}): Promise<void> {
  const describe = observeMachine();
  const scale = { authorizations: AUTHORIZATIONS, people: PEOPLE };
  const deployment = await prepareDeployment(kind);
  const { issuer, seed } = deployment;
  const filling = await openStores(deployment, seed.clients.confidential, scale);
  await onIdleCore(() => filling.fill());
  // Close them before the service starts: an embedded database belongs to one process at a time.
  await filling.close();
  const service = await deployment.start();
  const koa = await startBareKoa();
  const stores = await openStores(deployment, seed.clients.confidential, scale);
  const processes = {
    service: service.pid,
    ...(await storeProcesses(deployment, stores.database)),
  };
  const calls = createTokenCalls(deployment, stores, AUTHORIZATIONS);
  const each = Math.ceil(requests / ROUNDS);
  const rows: string[][] = [];

  /** @param load returns the number of requests */
  async function measureRounds(
    name: string,
    load: () => Promise<number>,
    { api, prepare }: { api?: number; prepare?: () => Promise<void> } = {},
  ): Promise<void> {
    const pids: Partial<Record<Part, number>> = { ...processes, ...(api !== undefined && { api }) };
    const rounds: Cost[] = [];
    for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
      await prepare?.();
      const bare = await processorTimes({ service: koa.pid }, async () => {
        return (await loadBareKoa(koa)).requests;
      });
      const measured = await processorTimes(pids, load);
      if (round >= 0) rounds.push({ ...measured, koa: bare.parts.service });
    }
    rows.push(rowOf(name, rounds));
  }
  let failed = 0;
  const requestsOf = (next: () => Call) => async () => {
    const { requests: answered, failures } = await closedLoop(issuer, { requests: each }, next);
    failed += failures;
    return answered;
  };

  await measureRounds('introspection', requestsOf(calls.introspect));
  await measureRounds('refresh', requestsOf(calls.refresh));
  const prepare = () => calls.makeCodes(each);
  await measureRounds('exchange', requestsOf(calls.exchange), { prepare });

  const tokens = Array.from({ length: PEOPLE }, (_, person) => {
    return stores.tokensOf((person * AUTHORIZATIONS) / PEOPLE).accessToken;
  });
  const { api, next, rememberAll } = await rememberCallers({ issuer, seed, tokens });
  const decide = async (): Promise<number> => (await identify(api, next, { calls: each })).calls;
  await measureRounds('decision in the process of the API', decide, {
    api: process.pid,
    prepare: rememberAll,
  });
  api.close();
  await stores.close();
  await koa.stop();
  await service.stop();
  console.log(`${ABOUT}${table(HEAD, rows)}\n${failed} requests failed.\n${isPinned ? '' : NOT_PINNED}${describe()}`);
}

const HEAD = [
  'CPU seconds for a million',
  'measured',
  'API',
  'service',
  'Redis',
  'PostgreSQL',
  'together',
  'from-to',
  'bare Koa',
  'together of Koa',
];
const ABOUT = `Computed from the measured number of requests, in ${ROUNDS} rounds. The bare Koa answered in each round, too.
${PEOPLE.toLocaleString('en')} people with ${AUTHORIZATIONS.toLocaleString('en')} authorizations. The load is not included, but for the API its own calls.
`;
const NOT_PINNED = 'The service shares its core with the load and the stores.\n';

function rowOf(name: string, rounds: readonly Cost[]): string[] {
  const requests = rounds.reduce((sum, round) => sum + round.requests, 0);
  const mean = (of: (cost: Cost) => number): number =>
    rounds.reduce((sum, cost) => sum + of(cost) * cost.requests, 0) / requests;
  const together = ({ parts }: Cost): number => PARTS.reduce((sum, part) => sum + parts[part], 0);
  const sorted = rounds.map(together).sort((a, b) => a - b);
  const seconds = (value: number): string => value.toFixed(value < 10 ? 2 : 0);
  return [
    name,
    requests.toLocaleString('en'),
    ...PARTS.map((part) => seconds(mean(({ parts }) => parts[part]))),
    seconds(mean(together)),
    `${seconds(sorted[0] ?? 0)}-${seconds(sorted.at(-1) ?? 0)}`,
    seconds(mean(({ koa }) => koa)),
    (mean(together) / mean(({ koa }) => koa)).toFixed(2),
  ];
}

/** Runs the load. A process that is not named has used no time. */
async function processorTimes(
  pids: Partial<Record<Part, number>>,
  load: () => Promise<number>,
): Promise<Omit<Cost, 'koa'>> {
  const times = () => PARTS.map((part) => (pids[part] === undefined ? 0 : processorTimeOfTree(pids[part])));
  const before = times();
  const requests = await load();
  const [api = 0, service = 0, redis = 0, postgres = 0] = times().map(
    (time, place) => (time - (before[place] ?? 0)) / requests,
  );
  return { requests, parts: { api, service, redis, postgres } };
}
