/**
 * `npm run bench` measures the processor time of requests; with `-- memory` the memory of tokens,
 * `-- sign-in` sign-ins during an attack, `-- many` introspection of many users, `-- live` an API
 * that remembers its callers, `-- ends` whether answered revocations stay in force through faults,
 * `-- changes` how soon a pushed change of a membership is in force, `-- million` a service on
 * millions of authorizations, `-- cost` the processor time of all processes for a million requests,
 * `-- storm` many live APIs while nodes restart and Redis fails over.
 */
import { parseArgs } from 'node:util';
import { endRun } from '../test/support/end-of-run.ts';
import { postgresServer, redisServer } from '../test/support/requirements.ts';
import { type Comparison, middle, summarize } from './beside-koa.ts';
import { measureChanges } from './changes.ts';
import { measureCost } from './cost.ts';
import { type DeploymentKind, startBareKoa, startDeployment } from './deployment.ts';
import { endsTable, measureEnds } from './ends.ts';
import { measureLive } from './live.ts';
import { measureMany } from './many.ts';
import { measureCluster, measureMemory, measureRows } from './memory.ts';
import { measureMillion } from './million.ts';
import { isPinned } from './processor.ts';
import { runScenarios, type Scale, type Scenario } from './scenarios.ts';
import { measureSignIn } from './sign-in.ts';
import { measureStorm } from './storm.ts';
import { table } from './table.ts';

const HELP = `npm run bench                       processor time per request, compared with a bare Koa
npm run bench -- --seconds 16       each scenario for 16 seconds (default 8)
npm run bench -- --processes 1       on one process of the service instead of four
npm run bench -- --on embedded      on one of the two deployments
npm run bench -- --authorizations N how many codes are made, exchanged and revoked (default 16000)
npm run bench -- sign-in            sign-in of newcomers while one account at one address signs in
                                    at full speed, for 30 seconds or as long as --seconds says
npm run bench -- many               introspection of 30,000 people in turn, ten of whom change each second,
                                    or of as many as --people says
npm run bench -- live               an API that remembers its callers, compared with one that asks
npm run bench -- ends               revocations through each fault, 50 rounds of each or as many as --rounds says;
                                    --fault 'PostgreSQL' for those whose name contains that
npm run bench -- changes            pushed changes until a live API of another node refuses, 1,000 times or as often as
                                    --rounds says, and lines a second
npm run bench -- million            a service on stores with 10,000,000 authorizations in Redis
npm run bench -- million --on postgres          with 1,000,000 in PostgreSQL, without Redis
npm run bench -- million --on embedded          with 100,000 in the embedded database
                                    --authorizations: how many; --seconds: each run of the open loop (default 180);
                                    --refreshes: how many before the size of the tables is measured (default 10 each)
npm run bench -- cost               CPU seconds of service, Redis and PostgreSQL for a million requests; --requests: how many
                                    are measured (default 200,000); --on redis, postgres or embedded
npm run bench -- storm              200 live APIs with 20,000 calls a second while both nodes restart and Redis fails over,
                                    for 60 seconds; --processes, --calls and --seconds for others;
                                    --kill: one node is killed instead
npm run bench -- memory             Redis memory of 200,000 live tokens, per million
npm run bench -- memory --tokens 1000000
npm run bench -- memory --on cluster   how authorizations spread over a Redis Cluster of three masters
npm run bench -- memory --on postgres  PostgreSQL rows of as many people as --people says
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string' },
      authorizations: { type: 'string' },
      requests: { type: 'string', default: '200000' },
      refreshes: { type: 'string' },
      tokens: { type: 'string', default: '200000' },
      people: { type: 'string', default: '30000' },
      rounds: { type: 'string' },
      processes: { type: 'string' },
      calls: { type: 'string', default: '20000' },
      fault: { type: 'string' },
      kill: { type: 'boolean', default: false },
      on: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [subject = 'requests'] = positionals;
  if (values.help) console.log(HELP);
  else if (subject === 'memory') {
    if (values.on === 'cluster') await measureCluster(count(values.tokens));
    else if (values.on === 'postgres') await measureRows(count(values.people));
    else await measureMemory(count(values.tokens));
  } else if (subject === 'sign-in') await measureSignIn(count(values.seconds ?? '30'));
  else if (subject === 'many')
    await measureMany({ seconds: count(values.seconds ?? '12'), people: count(values.people) });
  else if (subject === 'live') await measureLive(count(values.seconds ?? '5'));
  else if (subject === 'ends') console.log(endsTable(await measureEnds(count(values.rounds ?? '50'), values.fault)));
  else if (subject === 'changes') await measureChanges(count(values.rounds ?? '1000'));
  else if (subject === 'cost') await measureCost({ kind: kindOf(values.on), requests: count(values.requests) });
  else if (subject === 'million') {
    const kind = kindOf(values.on);
    const authorizations = count(values.authorizations ?? String(MILLIONS[kind]));
    await measureMillion({
      kind,
      authorizations,
      seconds: count(values.seconds ?? '180'),
      refreshes: values.refreshes === undefined ? 10 * authorizations : count(values.refreshes),
    });
  } else if (subject === 'storm') {
    await measureStorm({
      seconds: count(values.seconds ?? '60'),
      processes: count(values.processes ?? '200'),
      callsPerSecond: count(values.calls),
      kills: values.kill,
    });
  } else if (subject === 'requests') {
    await measureRequests({
      seconds: count(values.seconds ?? '8'),
      authorizations: count(values.authorizations ?? '16000'),
      processes: count(values.processes ?? '4'),
      on: DEPLOYMENTS.filter((kind) => kind === (values.on ?? kind)),
    });
  } else throw new Error(`there is no measurement named ${subject}\n${HELP}`);
}

/** How many authorizations `million` writes by default. */
const MILLIONS: Readonly<Record<DeploymentKind, number>> = {
  'postgres+redis': 10_000_000,
  postgres: 1_000_000,
  embedded: 100_000,
};

/** @param on the store of the tokens */
function kindOf(on = 'redis'): DeploymentKind {
  if (on === 'redis') return 'postgres+redis';
  if (on === 'postgres' || on === 'embedded') return on;
  throw new Error(`--on ${on} is not redis, postgres or embedded\n${HELP}`);
}

const DEPLOYMENTS = ['embedded', 'postgres+redis'] as const;

async function measureRequests({
  on,
  processes,
  ...scale
}: Scale & {
  on: readonly (typeof DEPLOYMENTS)[number][];
  processes: number;
}): Promise<void> {
  const rows: string[][] = [];
  const koa = await startBareKoa();
  for (const kind of on) {
    const needed = kind === 'embedded' ? [] : [postgresServer, redisServer];
    const missing = needed.filter(({ program }) => program === undefined);
    if (missing.length > 0) {
      rows.push([''], [`${kind}: not here, needs ${missing.map(({ remedy }) => remedy)}`]);
      continue;
    }
    const measured: Scenario[] = [];
    for (let process = 0; process < processes; process += 1) {
      const deployment = await startDeployment(kind);
      measured.push(...(await runScenarios(deployment, koa, scale)));
      await deployment.stop();
    }
    const byName = Map.groupBy(measured, ({ name }) => name);
    rows.push([''], [`${kind}:`]);
    for (const [name, scenarios] of byName)
      rows.push(row(name, summarize(scenarios.map(({ comparison }) => comparison))));
  }
  await koa.stop();
  console.log(isPinned ? PINNED : NOT_PINNED);
  console.log(ABOUT);
  console.log(table(HEAD, rows));
}

const PINNED = 'The service has one core to itself; load and stores are on the other.';
const NOT_PINNED = 'Service, load and stores share the cores (needs taskset and two of them).';
const ABOUT = `Medians of several processes of the service, because V8 can make the same code dearer in some of them
for as long as they run; of each, the median of five rounds, in each of which a bare Koa was measured too. "of Koa"
is a ratio: what the Koa takes of the processor for a request, by what the service takes (of the processes, the least first).
Everything else is true of this machine at this time only.
`;
const HEAD = ['', 'of Koa', 'from-to', 'CPU us', 'of Koa us', '1/s', 'p50 ms', 'p99 ms', 'MB', 'failed'];

function row(name: string, comparison: Comparison): string[] {
  const { ratios, cpu, cpuOfKoa, requestsPerSecond, p50, p99, resident, failures } = comparison;
  const [least = 0] = ratios;
  const most = ratios.at(-1) ?? 0;
  return [
    name,
    middle(ratios).toFixed(3),
    `${least.toFixed(3)}-${most.toFixed(3)}`,
    cpu.toFixed(0),
    cpuOfKoa.toFixed(0),
    Math.round(requestsPerSecond).toLocaleString('en'),
    p50.toFixed(1),
    p99.toFixed(1),
    resident.toFixed(0),
    String(failures),
  ];
}

function count(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Error(`${text} is not a positive whole number\n${HELP}`);
}

try {
  await main();
} finally {
  await endRun();
}
