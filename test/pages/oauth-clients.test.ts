import { expect } from 'chai';
import { createPerson } from '../support/person.ts';
import { addPerson, type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { type ClientOwner, LIST, signInOwner, textOf } from './client-owner.ts';

forEachDeployment('the list of OAuth clients', (start) => {
  let service: TestService;
  let seeded: Seed;
  let owner: ClientOwner;

  before(async () => {
    service = await start();
    seeded = await seed(service);
    owner = await signInOwner(service, seeded.other);
  });

  it('is for who is signed in, and leads there', async () => {
    const stranger = createPerson(service.issuer);
    const page = await stranger.get(LIST);
    expect(page).to.include({ status: 303 });
    expect(page.location?.pathname).to.equal('/login');
    expect(page.location?.searchParams.get('return_to')).to.equal(LIST);
  });

  it('says what to do while it is empty', async () => {
    const somebody = await signInOwner(service, seeded.person);
    const { status, html } = await somebody.get(LIST);
    expect(status).to.equal(200);
    expect(textOf(html)).to.include('You have no OAuth clients.');
    expect(html).to.include(`href="${LIST}/new"`);
  });

  it('shows own clients only, with the people connected and the last use', async () => {
    const { confidential, otherConfidential } = seeded.clients;
    const connect = (accountId: string) =>
      service.connections.rememberConsent({
        ...{ accountId, clientId: confidential.id, name: 'Route Planner', hosts: [] },
      });
    await connect(seeded.person.accountId);
    await connect(seeded.other.accountId);
    const before = textOf((await owner.get(LIST)).html);
    expect(before).to.match(/Route Planner gate_ci_\S+ Created .* People connected 2 .* Never/);
    service.lastUsed.note('client', confidential.id);
    await service.lastUsed.flush();
    const { html, headers } = await owner.get(LIST);
    expect(textOf(html)).to.match(/Last used \d+ \w+ 20\d\d/);
    expect(html).to.include(`href="${LIST}/${confidential.id}"`);
    expect(html).not.to.include(otherConfidential.id);
    expect(headers.get('cache-control')).to.equal('no-store');
  });

  it('shows a name as text, whatever it looks like', async () => {
    const names = ['<img src=x onerror=alert(1)>', '<%= 1 %>', '"><script>alert(1)</script>'];
    for (const name of names) {
      const { id } = await owner.createClient(name);
      for (const path of [LIST, `${LIST}/${id}`, `${LIST}/${id}/delete`]) {
        const { html } = await owner.get(path);
        expect(html).not.to.match(/<img|<script(?! src)|alert\(1\)<\/script>/);
        expect(html).to.include(
          name.replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&#34;'),
        );
      }
    }
  });

  it('has words for what was done, and none for a code that is not its own', async () => {
    const notice = /role="status">([^<]*)</;
    expect((await owner.get(`${LIST}?done=deleted`)).html).to.match(notice);
    for (const code of ['x', '__proto__', 'constructor', '<b>', 'saved', '']) {
      const { html } = await owner.get(`${LIST}?done=${encodeURIComponent(code)}`);
      expect(html, code).not.to.match(notice);
    }
  });
});

describe('the limit of OAuth clients', () => {
  it('answers with a message on the form, also when many are created at once', async () => {
    const service = await startTestService({ settings: { limits: { clientsPerPerson: 3 } } });
    try {
      const person = await addPerson(service, 'Ada', 'ada@example.test');
      const ada = await signInOwner(service, person);
      await ada.createClient('One');
      const fields = { name: 'Another', redirect_uris: 'https://partner.example/cb' };
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => ada.post(`${LIST}/new`, fields)),
      );
      expect(answers.map(({ status }) => status).sort()).to.deep.equal([
        ...[303, 303],
        ...[422, 422, 422, 422],
      ]);
      const refused = answers.find(({ status }) => status === 422)?.html ?? '';
      expect(textOf(refused)).to.include('3 is the most one person can have');
      expect(refused).to.include('value="Another"');
      expect(await service.clients.listByOwner(person.accountId)).to.have.length(3);
      const list = await ada.get(LIST);
      expect(list.html).not.to.include(`href="${LIST}/new"`);
      expect(textOf(list.html)).to.include('Delete one to create another.');
    } finally {
      await service.close();
    }
  });
});
