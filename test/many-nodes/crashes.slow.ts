/** A node is killed after the changes of every operation: of clients, of users on pages, and of operators. */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { CHANGES } from './crash-changes.ts';
import { REQUESTS } from './crash-requests.ts';
import { CrashWorld } from './crash-world.ts';
import { crashAtCalls } from './crashes.ts';

// With the tokens in PostgreSQL a revocation is one statement, and a change is the same transaction as with Redis.
const IN_POSTGRES = Object.fromEntries(Object.entries(REQUESTS).filter(([name]) => !name.startsWith('a revocation')));
for (const [deployment, needed, operations] of [
  ['postgres', [postgresServer], IN_POSTGRES],
  ['postgres+redis', [postgresServer, redisServer], { ...REQUESTS, ...CHANGES }],
] as const) {
  describeOn(needed, `a node killed after any call of a store, ${deployment}`, () => {
    cheapPasswords();
    let world: CrashWorld;
    before(async () => {
      world = await CrashWorld.open(deployment);
    });
    after(() => world?.close());

    for (const [name, operation] of Object.entries(operations)) {
      it(`if a node is killed, ${name} is never half done, and never lost once it was answered`, async () => {
        const times = await crashAtCalls(world, operation);
        console.log(`      ${name}: killed ${times} times`);
      });
    }
  });
}
