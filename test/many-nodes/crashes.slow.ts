/** A node is killed after the changes of every operation: of clients, of users on pages, and of operators. */
import { cheapPasswords } from '../support/cheap-passwords.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { CHANGES } from './crash-changes.ts';
import { REQUESTS } from './crash-requests.ts';
import { CrashWorld } from './crash-world.ts';
import { crashAtCalls } from './crashes.ts';

// With the tokens in PostgreSQL each of these changes is one statement or one transaction.
describeOn([postgresServer, redisServer], 'a node killed after any call of a store', () => {
  cheapPasswords();
  let world: CrashWorld;
  before(async () => {
    world = await CrashWorld.open();
  });
  after(() => world?.close());

  for (const [name, operation] of Object.entries({ ...REQUESTS, ...CHANGES })) {
    it(`if a node is killed during ${name}, the change is never half done, and never lost once it was answered`, async () => {
      const times = await crashAtCalls(world, operation);
      console.log(`      ${name}: killed ${times} times`);
    });
  }
});
