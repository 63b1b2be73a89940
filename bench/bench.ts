/**
 * What the service answers per second (`npm run bench`), and what it keeps in memory
 * (`npm run bench -- memory`), and how long a sign-in takes while somebody is in the way
 * (`npm run bench -- sign-in`).
 */
import { parseArgs } from 'node:util';
import { endRun } from '../test/support/end-of-run.ts';
import { postgresServer, redisServer } from '../test/support/requirements.ts';
import { startBareKoa, startDeployment } from './deployment.ts';
import type { Measurement } from './load.ts';
import { measureMemory } from './memory.ts';
import { runBareKoa, runScenarios, type Scale, type Scenario } from './scenarios.ts';
import { measureSignIn } from './sign-in.ts';
import { table } from './table.ts';

const HELP = `npm run bench                       requests per second, beside a bare Koa
npm run bench -- --seconds 10       each scenario for 10 seconds (default 5)
npm run bench -- --authorizations N how many codes are made, exchanged and revoked (default 4000)
npm run bench -- sign-in            sign-in of newcomers while one account at one address signs in
                                    at full speed, for 30 seconds or as long as --seconds says
npm run bench -- memory             Redis memory of 200,000 live tokens, per million
npm run bench -- memory --tokens 1000000
`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seconds: { type: 'string' },
      authorizations: { type: 'string', default: '4000' },
      tokens: { type: 'string', default: '200000' },
      help: { type: 'boolean', default: false },
    },
  });
  const [subject = 'requests'] = positionals;
  if (values.help) console.log(HELP);
  else if (subject === 'memory') await measureMemory(count(values.tokens));
  else if (subject === 'sign-in') await measureSignIn(count(values.seconds ?? '30'));
  else if (subject === 'requests') {
    await measureRequests({
      seconds: count(values.seconds ?? '5'),
      authorizations: count(values.authorizations),
    });
  } else throw new Error(`nothing is measured by the name of ${subject}\n${HELP}`);
}

async function measureRequests(scale: Scale): Promise<void> {
  const rows: string[][] = [];
  for (const kind of ['embedded', 'postgres+redis'] as const) {
    const needed = kind === 'embedded' ? [] : [postgresServer, redisServer];
    const missing = needed.filter(({ program }) => program === undefined);
    if (missing.length > 0) {
      rows.push([''], [`${kind}: not here, needs ${missing.map(({ remedy }) => remedy)}`]);
      continue;
    }
    // Before and after: a machine that others use too is never as fast for long.
    const before = await measureBareKoa(scale);
    const deployment = await startDeployment(kind);
    const scenarios = await runScenarios(deployment, scale);
    await deployment.stop();
    const after = await measureBareKoa(scale);
    const bare = (before.requestsPerSecond + after.requestsPerSecond) / 2;
    const all = [
      { name: 'bare Koa, before', measurement: before },
      ...scenarios,
      { name: 'bare Koa, after', measurement: after },
    ];
    rows.push([''], [`${kind}:`], ...all.map((one) => row(one, bare)));
  }
  console.log(table(['', 'requests/s', 'of bare Koa', 'p50 ms', 'p99 ms', 'failures'], rows));
}

async function measureBareKoa(scale: Scale): Promise<Measurement> {
  const koa = await startBareKoa();
  const measurement = await runBareKoa(koa.url, scale);
  await koa.stop();
  return measurement;
}

function row({ name, measurement }: Scenario, bare: number): string[] {
  const { requestsPerSecond, p50, p99, failures } = measurement;
  return [
    name,
    Math.round(requestsPerSecond).toLocaleString('en'),
    (requestsPerSecond / bare).toFixed(2),
    p50.toFixed(1),
    p99.toFixed(1),
    String(failures),
  ];
}

function count(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Error(`${text} is no number of anything\n${HELP}`);
}

try {
  await main();
} finally {
  await endRun();
}
