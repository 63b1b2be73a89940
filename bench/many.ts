/** Measures introspection of many users, whose rights change all the time. */
import { middle, withCpu } from './beside-koa.ts';
import { type ConnectedPeople, connectPeople } from './connected-people.ts';
import { bestKind, startDeployment } from './deployment.ts';
import { type Measurement, measure } from './load.ts';
import { residentMemory } from './processor.ts';
import { table } from './table.ts';
import { introspectionOf } from './token-requests.ts';

const CHANGES_PER_SECOND = 10;
const ROUNDS = 5;

interface ManyScale {
  readonly seconds: number;
  readonly people: number;
}

type Round = Measurement & { readonly cpu: number };

/**
 * Introspects one user repeatedly, all users with empty caches, and all users while memberships change. Alternates
 * between these, so that other load on the machine affects all three.
 *
 * @param scale the number of users, and the seconds of each turn
 */
export async function measureMany({ seconds, people: count }: ManyScale): Promise<void> {
  const deployment = await startDeployment(bestKind());
  const { issuer, seed } = deployment;
  const { confidential, resourceServer } = seed.clients;
  const people = await connectPeople(deployment, confidential, count);
  const { tokens, database } = people;

  function introspect(whose: readonly string[], limit: Parameters<typeof measure>[1]): Promise<Round> {
    let turn = 0;
    let inactive = 0;
    const load = async (): Promise<Measurement> => {
      const measured = await measure(issuer, limit, () => ({
        next: () => introspectionOf(resourceServer, whose[turn++ % whose.length] ?? ''),
        answered({ body }) {
          if (!body.startsWith('{"active":true')) inactive += 1;
        },
      }));
      return { ...measured, failures: measured.failures + inactive };
    };
    return withCpu(deployment, load);
  }

  const one: Round[] = [];
  const cold: Round[] = [];
  const many: Round[] = [];
  let changed = 0;
  // Warm-up, not measured: compiles the code, and reads every page of the stores once.
  await introspect(tokens, { requests: count });
  for (let round = 0; round < ROUNDS; round += 1) {
    one.push(await introspect(tokens.slice(0, 1), { seconds }));
    await database.query("SELECT pg_notify('gatehouse_named_changes', 'everything')");
    cold.push(await introspect(tokens, { requests: count }));
    const changes = changeMemberships(people);
    many.push(await introspect(tokens, { seconds }));
    changed += await changes.stop();
  }
  const resident = residentMemory(deployment.pid);
  await people.close();
  await deployment.stop();

  const ratio = (of: (round: Round) => number, rounds: readonly Round[]): string =>
    middle(rounds.map((round, index) => of(round) / of(one[index] ?? round))).toFixed(2);
  const row = (name: string, rounds: readonly Round[]): string[] => [
    name,
    Math.round(middle(rounds.map(({ requestsPerSecond }) => requestsPerSecond))).toLocaleString('en'),
    ratio(({ requestsPerSecond }) => requestsPerSecond, rounds),
    middle(rounds.map(({ cpu }) => cpu)).toFixed(0),
    ratio(({ cpu }) => cpu, rounds),
    middle(rounds.map(({ p99 }) => p99)).toFixed(1),
    String(rounds.reduce((sum, { failures }) => sum + failures, 0)),
  ];
  console.log(`Introspection, medians of ${ROUNDS} rounds. Ratios are to the one person of the same round.
${changed} memberships changed; the service has ${resident.toFixed(0)} MB in memory.
`);
  console.log(
    table(
      ['', '1/s', 'ratio', 'CPU us', 'ratio', 'p99 ms', 'failed'],
      [
        row('one person, remembered', one),
        row(`${count.toLocaleString('en')} people, none remembered`, cold),
        row(`${count.toLocaleString('en')} people, ${CHANGES_PER_SECOND} changes a second`, many),
      ],
    ),
  );
}

/** Changes a random user at each tick, from member to viewer or back. */
function changeMemberships({ database, accountIds }: ConnectedPeople) {
  let changed = 0;
  let failed: unknown;
  const timer = setInterval(() => {
    const id = accountIds[Math.floor(Math.random() * accountIds.length)];
    const change = `UPDATE organization_memberships
      SET role = CASE role WHEN 'member' THEN 'viewer' ELSE 'member' END WHERE account_id = $1`;
    database.query(change, [id]).then(
      () => (changed += 1),
      (error) => (failed = error),
    );
  }, 1_000 / CHANGES_PER_SECOND);
  return {
    /** @returns the number of changes. @throws the error of a change that failed */
    async stop(): Promise<number> {
      clearInterval(timer);
      await database.query('SELECT 1');
      if (failed) throw failed;
      return changed;
    },
  };
}
