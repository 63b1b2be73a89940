/**
 * A node is killed after the changes of every operation, with Redis or without it, apart from what `crashes.test.ts`
 * does. Of operations that another deployment runs in full, each run draws some; `REPEAT=4` runs all.
 */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Deployment } from '../support/service.ts';
import { CHANGES } from './crash-changes.ts';
import { REQUESTS } from './crash-requests.ts';
import { CrashWorld } from './crash-world.ts';
import { crashAtCalls, type Operation } from './crashes.ts';

type Operations = Readonly<Record<string, Operation>>;

/** Draws this many operations for the run. */
function drawn(operations: Operations, count: number): Operations {
  const all = Object.entries(operations).map((entry) => ({ entry, place: Math.random() }));
  const chosen = all.sort((one, other) => one.place - other.place).slice(0, count);
  return Object.fromEntries(chosen.map(({ entry }) => entry));
}

const DEPLOYMENTS = {
  // Few: here a restart takes a second, and no second node exists that could see a partial result.
  embedded: { needed: [], kills: 1, operations: drawn({ ...REQUESTS, ...CHANGES }, repeated(3)) },
  // A change is the same transaction on either deployment, and with Redis it has further steps.
  postgres: { needed: [postgresServer], kills: 1, operations: REQUESTS },
  'postgres+redis': { needed: [postgresServer, redisServer], kills: undefined, operations: CHANGES },
} as const;

for (const [deployment, { needed, kills, operations }] of Object.entries(DEPLOYMENTS)) {
  describeOn(needed, `a node killed after any call of a store, ${deployment}`, () => {
    cheapPasswords();
    let world: CrashWorld;
    before(async () => {
      world = await CrashWorld.open(deployment as Deployment);
    });
    after(() => world?.close());

    for (const [name, operation] of Object.entries(operations)) {
      it(`if a node is killed, ${name} is never half done, and never lost once it was answered`, async () => {
        const times = await crashAtCalls(world, operation, kills);
        console.log(`      ${name}: killed ${times} times`);
      });
    }
  });
}
