/** Measures the time until a pushed change takes effect at an API, lines per second, and pages during an import. */
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { bearer, introspectorOf } from '../modules/node/test/stand-in.ts';
import { createOrganizationEndings } from '../src/authorizations/organization-endings.ts';
import { bodyOf, fileOf, line } from '../test/import/import-file.ts';
import { push, SENDERS } from '../test/import/pushing.ts';
import { OPERATOR_PROGRAM, storesOf } from '../test/operator/run-operator.ts';
import { partnerTokens } from '../test/provider/partner-tokens.ts';
import { eventually } from '../test/support/eventually.ts';
import { startProgram } from '../test/support/programs.ts';
import { seed } from '../test/support/seed.ts';
import { startTestService, type TestService } from '../test/support/service.ts';
import { measurementOf } from './load.ts';
import { residentMemory } from './processor.ts';
import { table } from './table.ts';

const YEAR = 365 * 86_400;
/** Pause between two calls of the API. */
const POLL_MS = 1;
const LINES_PER_REQUEST = 1_000;
const REQUESTS = 20;

/** @param rounds how many changes are sent, one by one @param lines of a file to import, if any */
export async function measureChanges(rounds: number, lines?: number): Promise<void> {
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
  const member = { type: 'membership', account_id: person.accountId, organization_id: organization.id, role: 'member' };

  const untilRefusedMs: number[] = [];
  const untilAnsweredMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await push(near, [member]);
    await eventually(async () => {
      // The module caches no answers in the first seconds after a change.
      ahead += 10_000;
      await isMember();
      const { decidedBy } = await ask();
      if (decidedBy !== 'memory' || !(await isMember())) throw new Error('the answer is not cached yet');
    });
    const start = performance.now();
    const sending = push(near, [{ ...member, removed: true }]).then(({ results }) => {
      untilAnsweredMs.push(performance.now() - start);
      if (results.join() !== 'ok') throw new Error(`a change was answered ${results}`);
    });
    while (await isMember()) await delay(POLL_MS);
    untilRefusedMs.push(performance.now() - start);
    await sending;
  }

  api.close();
  await far.close();

  const times = ['p50 ms', 'p99 ms', 'p99.9 ms', 'longest'];
  const rows = [
    ['refused by the API of the other node', ...percentiles(untilRefusedMs)],
    ['answered', ...percentiles(untilAnsweredMs)],
  ];
  console.log(`${rounds} changes, one after the other:\n${table(['', ...times], rows)}\n`);
  console.log(table(['lines in requests of 1,000', '1/s'], await linesPerSecond(near)));
  if (lines !== undefined) {
    const head = ['a policy set every 20 ms during', 'seconds', 'refused', ...times, 'MB of the import'];
    console.log(`\n${table(head, await duringLarge(near, organization.id, lines))}`);
  }
  await near.close();
}

async function linesPerSecond(service: TestService): Promise<string[][]> {
  const people = Array.from({ length: REQUESTS * LINES_PER_REQUEST }, (_, at) => `A${at}`);
  await push(service, [line.organization('O1')]);
  const accounts = people.map((id) => line.account(id));
  const members = people.map((id) => line.membership(id, 'O1'));
  const rows: string[][] = [];
  for (const [name, lines] of [
    ['new people', accounts],
    ['new memberships', members],
    ['memberships that are already so', members],
    ['removed memberships', members.map((one) => ({ ...one, removed: true }))],
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

/** Members of the organization that is deleted in steps. */
const MEMBERS = 60_000;

/** Imports a file twice and deletes an organization, while the policy of another organization is set as by a page. */
async function duringLarge(service: TestService, organizationId: string, lines: number): Promise<string[][]> {
  const endings = createOrganizationEndings(service);
  const by = { organization: { id: organizationId, name: 'Any' } };
  const file = fileOf(line.organization('O2'), line.organization('O3'));
  for (let at = 2; at < lines; at += 2) {
    appendFileSync(file, bodyOf([line.account(`P${at}`), line.membership(`P${at}`, at < 2 * MEMBERS ? 'O2' : 'O3')]));
  }
  async function during(name: string, work: Promise<unknown>, pid = 0): Promise<string[]> {
    const [waits, sizes]: [number[], number[]] = [[], []];
    const [started, ended] = [performance.now(), work.then(() => true)];
    let refused = 0;
    do {
      const [begin, policy] = [performance.now(), { asksFirst: waits.length % 2 === 0, allowsApiKeys: true }];
      await endings.setPolicy(by, policy).catch(() => (refused += 1));
      waits.push(performance.now() - begin);
      sizes.push(residentMemory(pid) || 0);
    } while (!(await Promise.race([ended, delay(20, false)])));
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    return [name, seconds, `${refused}`, ...percentiles(waits), Math.max(...sizes).toFixed(0)];
  }
  const rows: string[][] = [];
  for (const name of ['an import of new people', 'the same file again']) {
    const environment = { ...process.env, ...storesOf(service) };
    const words = ['--max-semi-space-size=8', OPERATOR_PROGRAM, 'import', file];
    const program = startProgram(process.execPath, words, { cwd: '.', environment });
    rows.push(await during(`${name}, ${lines.toLocaleString('en')} lines`, program.exitCode, program.pid));
    if ((await program.exitCode) !== 0) throw new Error(program.output());
  }
  const [large] = await service.database.query<{ id: string }>("SELECT id FROM organizations WHERE external_id = 'O2'");
  const deletion = service.organizations.remove('organization', `${large?.id}`);
  return [...rows, await during('a deletion of its 60,000 members', deletion)];
}

function percentiles(times: readonly number[]): string[] {
  const { p50, p99, p999, longest } = measurementOf(times, { milliseconds: 0, failures: 0 });
  return [p50, p99, p999, longest].map((time) => time.toFixed(1));
}
