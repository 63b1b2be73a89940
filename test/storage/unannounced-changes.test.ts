/** A database that is restored while nodes run: no notification announces the changes. */
import { expect } from 'chai';
import { changeUnheard } from '../support/databases.ts';
import { clientCredentials } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';

describe('a database restored under a running node', () => {
  const on = startSeeded();

  it('after a restore of the database under a running node, a reload makes the node use the restored data', async () => {
    const { service, issuer } = on;
    const { machine } = on.clients;
    const tokenStatus = async () => (await clientCredentials(issuer, machine)).status;
    expect(await tokenStatus()).to.equal(200);
    // As pg_restore does.
    await changeUnheard(service.database, 'UPDATE clients SET suspended_at = now() WHERE id = $1', [machine.id]);
    expect(await tokenStatus(), 'no change was announced').to.equal(200);
    await service.reload();
    expect(await tokenStatus()).to.equal(401);
  });
});
