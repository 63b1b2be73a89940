/** A node is killed at every step of every operation that changes something, on each deployment. */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import type { Deployment } from '../support/service.ts';
import { CHANGES } from './crash-changes.ts';
import { REQUESTS } from './crash-requests.ts';
import { CrashWorld } from './crash-world.ts';
import { crashAtEachCall } from './crashes.ts';

const DEPLOYMENTS = {
  // Kill after every third call only: here a restart takes a second, and no second node exists that
  // could see a partial result.
  embedded: { needed: [], every: 3 },
  postgres: { needed: [postgresServer], every: 1 },
  'postgres+redis': { needed: [postgresServer, redisServer], every: 1 },
} as const;

for (const [deployment, { needed, every }] of Object.entries(DEPLOYMENTS)) {
  describeOn(needed, `a node killed after any call of a store, ${deployment}`, () => {
    cheapPasswords();
    let world: CrashWorld;
    before(async () => {
      world = await CrashWorld.open(deployment as Deployment);
    });
    after(() => world?.close());

    for (const [name, operation] of Object.entries({ ...REQUESTS, ...CHANGES })) {
      it(`if a node is killed, ${name} is never half done, and never lost once it was answered`, async () => {
        // An import of two lines makes some 140 calls, of which every third is enough.
        const times = await crashAtEachCall(world, operation, name === 'a batch of an import' ? 3 : every);
        console.log(`      ${name}: killed ${times} times`);
      });
    }
  });
}
