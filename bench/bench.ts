/** `npm run bench`: measures what `HELP` lists. */
import { parseArgs } from 'node:util';
import { endRun } from '../test/support/end-of-run.ts';
import { postgresServer, redisServer } from '../test/support/requirements.ts';
import { type Comparison, comparisonTable, summarize } from './beside-koa.ts';
import { measureChanges } from './changes.ts';
import { type DeploymentKind, startBareKoa, startDeployment } from './deployment.ts';
import { endsTable, measureEnds } from './ends.ts';
import { measureFair } from './fair.ts';
import { measureLive } from './live.ts';
import { observeMachine } from './machine.ts';
import { measureMany } from './many.ts';
import { measureMemory, measureRows } from './memory.ts';
import { PINNING } from './processor.ts';
import { measureScale } from './scale.ts';
import { runScenarios, type Scale, type Scenario } from './scenarios.ts';

const HELP = `npm run bench                       processor time per request, compared with a bare Koa
npm run bench -- --seconds 16       each scenario for 16 seconds (default 8)
npm run bench -- --processes 1      on one process of the service instead of four
npm run bench -- --on embedded      on one of the two deployments
npm run bench -- --authorizations N how many codes are made, exchanged and revoked (default 16000)
npm run bench -- many               introspection of 30,000 people in turn, ten of whom change each second,
                                    or of as many as --people says
npm run bench -- live               an API that remembers its callers, compared with one that asks
npm run bench -- ends               revocations through each fault, 50 rounds of each or as many as --rounds says;
                                    --fault 'PostgreSQL' for those whose name contains that
npm run bench -- fair               one client's answers while another one refreshes over 500 connections
npm run bench -- changes            pushed changes until a live API of another node refuses, 1,000 times or as often as
                                    --rounds says, and lines a second; with --lines 1000000 also an import of so many
                                    lines and a deletion of 60,000 members, and pages during both
npm run bench -- scale              writes 1,000,000 authorizations, or as many as --authorizations says, and
                                    introspects and refreshes them, compared with a bare Koa;
                                    --on postgres without Redis, --on embedded in the embedded database
npm run bench -- memory             Redis memory of 200,000 live tokens, per million
npm run bench -- memory --tokens 1000000
npm run bench -- memory --on postgres  PostgreSQL rows of as many people as --people says
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string' },
      authorizations: { type: 'string' },
      tokens: { type: 'string', default: '200000' },
      people: { type: 'string', default: '30000' },
      rounds: { type: 'string' },
      lines: { type: 'string' },
      processes: { type: 'string', default: '4' },
      fault: { type: 'string' },
      on: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [subject = 'requests'] = positionals;
  const describeMachine = observeMachine();
  if (values.help) return console.log(HELP);
  if (subject === 'memory') {
    if (values.on === 'postgres') await measureRows(count(values.people));
    else await measureMemory(count(values.tokens));
  } else if (subject === 'many') {
    await measureMany({ seconds: count(values.seconds ?? '12'), people: count(values.people) });
  } else if (subject === 'live') await measureLive(count(values.seconds ?? '5'));
  else if (subject === 'ends') console.log(endsTable(await measureEnds(count(values.rounds ?? '50'), values.fault)));
  else if (subject === 'fair') await measureFair(count(values.seconds ?? '10'));
  else if (subject === 'changes') {
    await measureChanges(count(values.rounds ?? '1000'), values.lines === undefined ? undefined : count(values.lines));
  } else if (subject === 'scale') {
    await measureScale({
      kind: kindOf(values.on),
      authorizations: count(values.authorizations ?? '1000000'),
      seconds: count(values.seconds ?? '20'),
    });
  } else if (subject === 'requests') {
    await measureRequests({
      seconds: count(values.seconds ?? '8'),
      authorizations: count(values.authorizations ?? '16000'),
      processes: count(values.processes),
      on: values.on === undefined ? ['embedded', 'postgres+redis'] : [kindOf(values.on)],
    });
  } else throw new Error(`there is no measurement named ${subject}\n${HELP}`);
  console.log(`\n${describeMachine()}`);
}

function kindOf(on = 'postgres+redis'): DeploymentKind {
  if (on === 'postgres+redis' || on === 'postgres' || on === 'embedded') return on;
  throw new Error(`--on ${on} is not postgres+redis, postgres or embedded\n${HELP}`);
}

async function measureRequests({
  on,
  processes,
  ...scale
}: Scale & { on: readonly DeploymentKind[]; processes: number }): Promise<void> {
  const koa = await startBareKoa();
  const tables: string[] = [];
  for (const kind of on) {
    const needed = kind === 'embedded' ? [] : [postgresServer, redisServer];
    const missing = needed.filter(({ program }) => program === undefined);
    if (missing.length > 0) {
      tables.push(`${kind}: not here, needs ${missing.map(({ remedy }) => remedy)}`);
      continue;
    }
    const measured: Scenario[] = [];
    for (let process = 0; process < processes; process += 1) {
      const deployment = await startDeployment(kind);
      measured.push(...(await runScenarios(deployment, koa, scale)));
      await deployment.stop();
    }
    const byName = Map.groupBy(measured, ({ name }) => name);
    const rows = [...byName].map(([name, scenarios]): [string, Comparison] => {
      return [name, summarize(scenarios.map(({ comparison }) => comparison))];
    });
    tables.push(comparisonTable(kind, rows));
  }
  await koa.stop();
  console.log(`${ABOUT}\n${tables.join('\n\n')}`);
}

const ABOUT = `${PINNING}
Medians of several processes of the service, because V8 can make the same code dearer in some of them
for as long as they run; of each, the median of five rounds, in each of which a bare Koa was measured too. "of Koa"
is a ratio: what the Koa takes of the processor for a request, by what the service takes (of the processes, the least first).
Everything else is true of this machine at this time only.
`;

function count(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Error(`${text} is not a positive whole number\n${HELP}`);
}

try {
  await main();
} finally {
  await endRun();
}
