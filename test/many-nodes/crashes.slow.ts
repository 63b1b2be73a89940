/** A node is killed after the changes of every operation, on each deployment, without what `crashes.test.ts` does. */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Deployment } from '../support/service.ts';
import { CHANGES } from './crash-changes.ts';
import { REQUESTS } from './crash-requests.ts';
import { CrashWorld } from './crash-world.ts';
import { crashAtCalls } from './crashes.ts';

const DEPLOYMENTS = {
  // Kill less often: here a restart takes a second, and no second node exists that could see a partial result.
  embedded: { needed: [], kills: 1, operations: { ...REQUESTS, ...CHANGES } },
  postgres: { needed: [postgresServer], kills: undefined, operations: { ...REQUESTS, ...CHANGES } },
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
