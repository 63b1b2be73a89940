import { expect } from 'chai';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner, textOf } from '../client-owner.ts';

describe('the list of OAuth clients', () => {
  const on = startSeeded();
  let owner: ClientOwner;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.other);
  });

  it("the page of OAuth clients lists only the owner's clients, with connected users and last use", async () => {
    const { confidential, otherConfidential } = on.clients;
    const connect = (accountId: string) =>
      on.service.connections.rememberConsent({
        accountId,
        clientId: confidential.id,
        name: 'Route Planner',
        hosts: [],
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
});
