/** The rules of names, on each form with a name: what is refused, and that nothing typed is lost. */
import { expect } from 'chai';
import { startSeeded } from '../support/seeded.ts';
import { type ClientOwner, LIST, REDIRECT_URI, signInOwner } from './client-owner.ts';

describe('a name typed into a form', () => {
  const on = startSeeded();
  let owner: ClientOwner;
  let client: string;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
    const { id } = await owner.createClient('Stock Sync');
    client = `${LIST}/${id}/settings`;
  });

  it('a client form refuses a name that speaks for the service, says why and what to do, and keeps what was typed', async () => {
    for (const path of [`${LIST}/new`, client]) {
      for (const [language, said] of [
        ['en', /id="name-problem">Leave out words and signs .* the operator can allow/],
        ['de', /id="name-problem">Lassen Sie Wörter und Zeichen weg, .* der Betreiber/],
      ] as const) {
        await owner.send('/language', { language });
        const fields = { name: 'Geprüft ✔ Sync', redirect_uris: REDIRECT_URI };
        const page = await owner.send(path, fields);
        expect(page.status, path).to.equal(422);
        expect(page.html).to.match(said);
        expect(page.html).to.include('value="Geprüft ✔ Sync"');
      }
    }
    await owner.send('/language', { language: 'en' });
  });

  it('a client keeps a name that is no longer accepted, until its owner changes it', async () => {
    const { id } = await owner.createClient('Storm');
    const operator = { naming: 'by the operator' } as const;
    await on.service.clients.edit(id, { name: 'Storm Support' }, undefined, operator);
    const page = await owner.get(`${LIST}/${id}/settings`);
    const kept = { name: 'Storm Support', redirect_uris: ['https://storm.example/cb'] };
    expect((await owner.submit(page, kept)).status).to.equal(303);
    const changed = await owner.get(`${LIST}/${id}/settings`);
    expect((await owner.submit(changed, { name: 'Storm Support 2' })).status).to.equal(422);
    expect(await on.service.clients.find(id)).to.deep.include({
      name: 'Storm Support',
      redirectUris: ['https://storm.example/cb'],
    });
  });
});
