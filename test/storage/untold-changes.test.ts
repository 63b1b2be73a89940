/** What is restored from a backup under running nodes: no notification says that it is different. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { clientCredentials } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';

const MINUTE = 60;

forEachDeployment('a database restored under a running node', (start) => {
  let service: TestService;
  let machine: Seed['clients']['machine'];
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    service = await start({ clock: time.clock });
    ({ machine } = (await seed(service)).clients);
  });
  after(() => time.restore());
  beforeEach('the client is good, and remembered so', async () => {
    await restore('suspended_at = NULL');
    await service.reload();
    expect(await tokenStatus()).to.equal(200);
  });

  const tokenStatus = async () => (await clientCredentials(service.issuer, machine)).status;

  /** Without triggers, as pg_restore does it. */
  async function restore(assignment: string): Promise<void> {
    await service.database.transaction(async (tx) => {
      await tx.query('SET LOCAL session_replication_role = replica');
      await tx.query(`UPDATE clients SET ${assignment} WHERE id = $1`, [machine.id]);
    });
  }

  it('is noticed by a reload at once', async () => {
    await restore('suspended_at = now()');
    expect(await tokenStatus(), 'nobody told').to.equal(200);
    await service.reload();
    expect(await tokenStatus()).to.equal(401);
  });

  it('is noticed after a minute without anybody doing anything', async () => {
    await restore('suspended_at = now()');
    time.advance(MINUTE - 1);
    expect(await tokenStatus(), 'nobody told').to.equal(200);
    time.advance(1);
    expect(await tokenStatus()).to.equal(401);
  });
});
