/** The rules of names, on each form with a name: what is refused, and that nothing typed is lost. */
import { expect } from 'chai';
import { randomId } from '../../src/base/random-id.ts';
import { startSeeded } from '../support/seeded.ts';
import { type ClientOwner, LIST, REDIRECT_URI, signInOwner, textOf } from './client-owner.ts';
import { addMember } from './organization-members.ts';
import { addPasskey } from './passkeys/soft-passkey.ts';

describe('a form refuses names that look like a secret or a statement of the service', () => {
  const on = startSeeded();
  const SECRET = `gate_rt_${randomId('', 66)}`;
  let owner: ClientOwner;
  let client: string;
  /** The path of each form with a name, and the field of the name. */
  let forms: readonly (readonly [path: string, field: string, more?: Record<string, string>])[];

  before(async () => {
    const { organization } = on.seeded;
    const olga = await addMember(on, 'Olga', 'owner');
    owner = await signInOwner(on.service, olga);
    const { id } = await owner.createClient('Stock Sync');
    client = `${LIST}/${id}/settings`;
    await addPasskey(on.issuer, owner);
    const [passkey] = await on.service.passkeys.of(olga.accountId);
    const asked = on.clients.confidential;
    await on.partner.tokens(asked);
    await owner.send(`/profile/organizations/${organization.id}/policy`, { clients: 'ask', api_keys: 'allow' });
    forms = [
      [`${LIST}/new`, 'name', { redirect_uris: REDIRECT_URI }],
      [client, 'name', { redirect_uris: REDIRECT_URI }],
      ['/profile/api-keys', 'name', { expires_in_days: '30' }],
      [`/profile/security/passkeys/${passkey?.id}`, 'name'],
      [`/profile/organizations/${organization.id}/clients/${asked.id}`, 'sentence', { decision: 'decline' }],
    ];
  });

  const SAID = {
    en: 'This looks like a secret. If it is one, it should be revoked',
    de: 'Das sieht wie ein geheimer Wert aus. Wenn es einer ist, sollte er widerrufen werden',
  };

  for (const language of ['en', 'de'] as const) {
    it(`every form says in its language (${language}) that a name looks like a secret, and the name is not recorded`, async () => {
      await owner.send('/language', { language });
      for (const [path, field, more] of forms) {
        const typed = `Key ${SECRET}`;
        const page = await owner.send(path, { ...more, [field]: typed });
        expect(page.status, path).to.equal(422);
        expect(textOf(page.html), path).to.include(SAID[language]);
        expect(page.html, path).to.include(typed);
      }
      const { database } = on.service;
      for (const table of ['activity', 'clients', 'api_keys', 'passkeys', 'client_decisions']) {
        const rows = await database.query(`SELECT t::text AS row FROM ${table} t`);
        expect(JSON.stringify(rows), table).not.to.include('gate_rt_');
      }
    });
  }

  it('a client form refuses a name that seems to speak for the service, says why and what to do, and keeps the input', async () => {
    for (const path of [`${LIST}/new`, client]) {
      const said = {
        en: /id="name-problem">Leave out words that could .* the operator can allow/,
        de: /id="name-problem">Lassen Sie Wörter weg, .* der Betreiber/,
      };
      for (const language of ['en', 'de'] as const) {
        await owner.send('/language', { language });
        const fields = { name: 'Geprüft ✔ Sync', redirect_uris: REDIRECT_URI };
        const page = await owner.send(path, fields);
        expect(page.status, path).to.equal(422);
        expect(page.html).to.match(said[language]);
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
