import { expect } from 'chai';
import type { TestClient } from '../../support/oauth.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner } from '../client-owner.ts';

describe('deleting an OAuth client', () => {
  const on = startSeeded({ settings: { limits: { clientsPerPerson: 100 } } });
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });
  beforeEach(async () => {
    client = await owner.createClient('Stock Sync');
    path = `${LIST}/${client.id}/delete`;
  });

  it('deleting a client requires entering its exact name', async () => {
    for (const confirm_name of ['', 'stock sync', 'Stock Sync!', client.id]) {
      const page = await owner.submit(await owner.get(path), { confirm_name });
      expect(page.status, confirm_name).to.equal(422);
      expect(page.html).to.include('id="name-problem"').and.include(`value="${confirm_name}"`);
    }
    expect((await owner.send(path)).status).to.equal(422);
    expect(await on.service.clients.find(client.id)).to.include({ isSuspended: false });
  });

  it('two parallel requests delete the client once, and both are answered', async () => {
    const fields = { confirm_name: 'Stock Sync' };
    const clicks = await Promise.all([owner.send(path, fields), owner.send(path, fields)]);
    for (const { status } of clicks) expect(status).to.be.oneOf([303, 404]);
    expect(clicks.map(({ status }) => status)).to.include(303);
    expect(await on.service.clients.find(client.id)).to.equal(undefined);
  });
});
