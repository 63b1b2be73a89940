/** A node is killed at a drawn step of each request of a client. For users, operators and other deployments see `crashes.slow.ts`. */
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { REQUESTS } from './crash-requests.ts';
import { CrashWorld } from './crash-world.ts';
import { crashAtCalls } from './crashes.ts';

describeOn([postgresServer, redisServer], 'a node killed after any call of a store', () => {
  let world: CrashWorld;
  before(async () => {
    world = await CrashWorld.open('postgres+redis');
  });
  after(() => world?.close());

  for (const [name, operation] of Object.entries(REQUESTS)) {
    it(`if a node is killed, ${name} is never half done, and never lost once it was answered`, async () => {
      await crashAtCalls(world, operation, 1);
    });
  }
});
