import { expect } from 'chai';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner, textOf } from '../client-owner.ts';

describe('the list of OAuth clients', () => {
  const on = startSeeded({ settings: { limits: { clientsPerPerson: 3 } } });
  let owner: ClientOwner;
  let newcomer: ClientOwner;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.other);
    newcomer = await signInOwner(on.service, on.seeded.person);
  });

  it("the page of OAuth clients lists only the owner's clients, with connected users and last use", async () => {
    const { confidential, otherConfidential } = on.clients;
    const connect = (accountId: string) =>
      on.service.connections.rememberConsent({
        accountId,
        clientId: confidential.id,
        name: 'Route Planner',
        hosts: [],
        access: [],
      });
    await connect(on.seeded.person.accountId);
    await connect(on.seeded.other.accountId);
    const before = textOf((await owner.get(LIST)).html);
    expect(before).to.match(/Route Planner gate_ci_\S+ Created .* People connected 2 .* Never/);
    on.service.lastUsed.record('client', confidential.id);
    await on.service.lastUsed.flush();
    const { html, headers } = await owner.get(LIST);
    expect(textOf(html)).to.match(/Last used \d+ \w+ 20\d\d/);
    expect(html).to.include(`href="${LIST}/${confidential.id}"`);
    expect(html).not.to.include(otherConfidential.id);
    expect(headers.get('cache-control')).to.equal('no-store');
  });

  it('the form for a client states the maximum number of clients, which also holds for parallel requests', async () => {
    await newcomer.createClient('One');
    const fields = { name: 'Another', redirect_uris: 'https://partner.example/cb' };
    const answers = await Promise.all(Array.from({ length: 6 }, () => newcomer.send(`${LIST}/new`, fields)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).to.deep.equal([303, 303, 422, 422, 422, 422]);
    const refused = answers.find(({ status }) => status === 422)?.html ?? '';
    expect(textOf(refused)).to.include('limit of 3');
    expect(refused).to.include('value="Another"');
    const { accountId } = on.seeded.person;
    expect(await on.service.clients.listByOwner(accountId)).to.have.length(3);
    const list = await newcomer.get(LIST);
    expect(list.html).not.to.include(`href="${LIST}/new"`);
    expect(textOf(list.html)).to.include('Delete one to create another.');
  });
});
