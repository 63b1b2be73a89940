/** What is restored from a backup under running nodes: no notification says that it is different. */
import { expect } from 'chai';
import { clientCredentials } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';

describe('a database restored under a running node', () => {
  const on = startSeeded();

  it('is noticed by a reload at once', async () => {
    const { service, issuer } = on;
    const { machine } = on.clients;
    const tokenStatus = async () => (await clientCredentials(issuer, machine)).status;
    expect(await tokenStatus()).to.equal(200);
    await service.database.transaction(async (tx) => {
      // Without triggers, as pg_restore does it.
      await tx.query('SET LOCAL session_replication_role = replica');
      await tx.query('UPDATE clients SET suspended_at = now() WHERE id = $1', [machine.id]);
    });
    expect(await tokenStatus(), 'nobody told').to.equal(200);
    await service.reload();
    expect(await tokenStatus()).to.equal(401);
  });
});
