/** Measures the time until a pushed change takes effect at an API, and the lines per second. */
import { setTimeout as delay } from 'node:timers/promises';
import { bearer, introspectorOf } from '../modules/node/test/stand-in.ts';
import { push, SENDERS } from '../test/import/pushing.ts';
import { partnerTokens } from '../test/provider/partner-tokens.ts';
import { eventually } from '../test/support/eventually.ts';
import { seed } from '../test/support/seed.ts';
import { startTestService } from '../test/support/service.ts';
import { table } from './table.ts';

const YEAR = 365 * 86_400;
/** Pause between two calls of the API. */
const POLL_MS = 1;
const LINES_PER_REQUEST = 1_000;
const REQUESTS = 20;

/** @param rounds how many changes are sent, one after the other */
export async function measureChanges(rounds: number): Promise<void> {
  const settings = {
    senders: SENDERS,
    import: { removalsPerHour: '1000000' },
    // The API's clock is advanced by hours below, and the access token must not expire.
    tokens: { accessTokenSeconds: YEAR },
  };
  // Use the time limits of production, not the longer limits of tests.
  const near = await startTestService({ timeoutFactor: 1, settings });
  const far = await startTestService({ timeoutFactor: 1, sharing: near });
  const { clients, person, organization } = await seed(near);
  const { accessToken } = await partnerTokens(near.issuer, { clients, person }).tokens(clients.confidential);
  let ahead = 0;
  const api = introspectorOf(clients.resourceServer, {
    issuer: far.issuer,
    live: true,
    clock: () => Date.now() + ahead,
  });
  const ask = () => api.identify(bearer(accessToken));
  const isMember = async (): Promise<boolean> =>
    (await ask()).caller?.organizations.some(({ id }) => id === organization.id) ?? false;
  const line = {
    type: 'membership',
    account_id: person.accountId,
    organization_id: organization.id,
    role: 'member',
  };

  const untilRefusedMs: number[] = [];
  const untilAnsweredMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await push(near, [line]);
    await eventually(async () => {
      // The module caches no answers in the first seconds after a change.
      ahead += 10_000;
      await isMember();
      const { decidedBy } = await ask();
      if (decidedBy !== 'memory' || !(await isMember())) throw new Error('the answer is not cached yet');
    });
    const start = performance.now();
    const sending = push(near, [{ ...line, removed: true }]).then(({ results }) => {
      untilAnsweredMs.push(performance.now() - start);
      if (results.join() !== 'ok') throw new Error(`a change was answered ${results}`);
    });
    while (await isMember()) await delay(POLL_MS);
    untilRefusedMs.push(performance.now() - start);
    await sending;
  }

  const rows = [
    ['', 'p50 ms', 'p99 ms', 'p99.9 ms', 'longest'],
    ['refused by the API of the other node', ...percentiles(untilRefusedMs)],
    ['answered', ...percentiles(untilAnsweredMs)],
  ];
  const [head = [], ...body] = rows;
  console.log(`${rounds} changes, one after the other:\n${table(head, body)}\n`);
  console.log(table(['lines in requests of 1,000', '1/s'], await linesPerSecond(near)));
  api.close();
  await far.close();
  await near.close();
}

async function linesPerSecond(service: Parameters<typeof push>[0]): Promise<string[][]> {
  const people = Array.from({ length: REQUESTS * LINES_PER_REQUEST }, (_, at) => `A${at}`);
  await push(service, [{ type: 'organization', external_id: 'O1', name: 'Bench' }]);
  const accounts = people.map((id) => {
    return { type: 'account', external_id: id, email: `${id}@example.test`, name: id };
  });
  const members = people.map((account) => {
    return { type: 'membership', account, organization: 'O1', role: 'member' };
  });
  const rows: string[][] = [];
  for (const [name, lines] of [
    ['new people', accounts],
    ['new memberships', members],
    ['memberships that are already so', members],
    ['removed memberships', members.map((line) => ({ ...line, removed: true }))],
  ] as const) {
    const start = performance.now();
    for (let begin = 0; begin < lines.length; begin += LINES_PER_REQUEST) {
      const { status } = await push(service, lines.slice(begin, begin + LINES_PER_REQUEST));
      if (status !== 200) throw new Error(`a request was answered ${status}`);
    }
    const perSecond = (lines.length * 1_000) / (performance.now() - start);
    rows.push([name, Math.round(perSecond).toLocaleString('en')]);
  }
  return rows;
}

function percentiles(times: readonly number[]): string[] {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
  return [at(0.5), at(0.99), at(0.999), sorted.at(-1) ?? 0].map((time) => time.toFixed(1));
}
