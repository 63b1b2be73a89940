/** An approval counts only for what the page showed, to that user and for that request. */
import { expect } from 'chai';
import { said, textOf } from '../pages/client-owner.ts';
import { fieldOf } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, addTestClient, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';

const SECOND = 'https://second.example/callback';

describe('an approval counts only for what the page showed', () => {
  const on = startSeeded();
  let credentials: SeededPerson;
  let person: Person;
  let client: TestClient;
  let people = 0;

  beforeEach(async () => {
    people += 1;
    credentials = await addPerson(on.service, 'Pat Reader', `reader-${people}@example.test`);
    person = createPerson(on.issuer);
    await person.signIn(credentials);
    const owner = { ownerAccountId: on.seeded.other.accountId };
    client = await addTestClient(on.service, 'Shown Name', owner);
  });

  const open = async (parameters = {}): Promise<Page> => person.open(authorizationUrl(on.issuer, client, parameters));
  const approve = async (page: Page): Promise<Page> =>
    person.follow(await person.submit(page, { decision: 'approve' }));
  const edit = (name: string, redirectUris = [REDIRECT_URI]) =>
    on.service.clients.edit(client.id, { name, redirectUris });
  const remembered = () => on.service.connections.find(credentials.accountId, client.id);
  const connectedInLog = async (): Promise<number> => {
    const log = await on.service.activity.of(credentials.accountId, { limit: 20 });
    return log.filter(({ action }) => action === 'connected').length;
  };

  it('a client with a new name or redirect host needs consent again, and the page says what changed', async () => {
    const page = await open();
    await edit('New Name', [REDIRECT_URI, SECOND]);
    const again = await approve(page);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(await remembered()).to.equal(undefined);
    expect(await connectedInLog()).to.equal(0);
    expect(again.html).to.include('New Name').and.include('“<bdi>Shown Name</bdi>”');
    expect(again.html).to.include('second.example');

    expect(answerIn(await approve(again))).to.have.property('code');
    expect(await remembered()).to.deep.include({
      name: 'New Name',
      hosts: ['partner.example', 'second.example'],
    });
    expect(await connectedInLog()).to.equal(1);
  });

  it('a client that changes while an approval is being resumed needs consent again', async () => {
    const answered = await person.submit(await open(), { decision: 'approve' });
    await edit('New Name');
    const again = await person.follow(answered);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(again.html).to.include('“<bdi>Shown Name</bdi>”');
    expect(await remembered()).to.equal(undefined);
  });

  it('an earlier approval does not cover a client that changes while the consent page is open', async () => {
    await approve(await open());
    const page = await open({ prompt: 'consent' });
    await edit('New Name');
    expect(await outcomeOf(person, await approve(page))).to.equal('consent');
    expect(await remembered()).to.include({ name: 'Shown Name' });
  });

  it('a connection that ends while the consent page is open needs consent again', async () => {
    await approve(await open());
    const page = await open({ prompt: 'consent' });
    const whose = { accountId: credentials.accountId, clientId: client.id };
    await on.service.connections.end(whose, 'person_disconnected');
    const again = await approve(page);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(again.html).to.include(said('consent.disconnected'));
    expect(await remembered()).to.equal(undefined);
    expect(answerIn(await approve(again))).to.have.property('code');
  });

  for (const isConnected of [true, false]) {
    for (const isMarked of isConnected ? [true, false] : [false]) {
      const state = `${isConnected ? 'connected' : 'new'} person${isMarked ? ', whose connection is marked already' : ''}`;
      it(`a consent page that was open when the operator ended everything of the client is asked again: ${state}`, async () => {
        if (isConnected) await approve(await open());
        const page = await open({ prompt: 'consent' });
        await on.service.clients.revoke(client.id);
        if (isMarked) await on.service.connections.endSome(client.id, 'operator_revoked', undefined, async () => {});
        const again = await approve(page);
        expect(await outcomeOf(person, again)).to.equal('consent');
        expect(again.html).to.include(said('consent.not-approved'));
        expect(again.html.includes(said('consent.disconnected'))).to.equal(isMarked);
        expect(await remembered()).to.equal(undefined);
        expect(answerIn(await approve(again))).to.have.property('code');
      });
    }
  }

  it('no consent is saved if the user’s sessions end while an approval is being resumed', async () => {
    const answered = await person.submit(await open(), { decision: 'approve' });
    await on.service.accounts.endSessions(credentials.accountId);
    const signIn = await person.follow(answered);
    expect(await outcomeOf(person, signIn)).to.equal('sign-in');
    expect(await remembered()).to.equal(undefined);
    // A user who signs in now has not been asked yet.
    const { email, password } = credentials;
    const asked = await person.follow(await person.submit(signIn, { email, password }));
    expect(await outcomeOf(person, asked)).to.equal('consent');
    expect(await remembered()).to.equal(undefined);
  });

  it('two open consent pages of one client can both be approved', async () => {
    const [first, second] = [await open(), await open()];
    expect(answerIn(await approve(first))).to.have.property('code');
    expect(answerIn(await approve(second))).to.have.property('code');
  });

  it('an approval with a forged hidden field, or that of another page, needs consent again', async () => {
    const [first, second] = [await open(), await open()];
    const own = fieldOf(first, 'shown');
    const [data = '', mac = ''] = own.split('.');
    const forged = Buffer.from(data, 'base64url').toString().replace('Shown', 'Known');
    const changed = `${Buffer.from(forged).toString('base64url')}.${mac}`;
    for (const shown of [fieldOf(second, 'shown'), changed, data, '', `${data}.${'A'.repeat(43)}`]) {
      const sent = await person.submit(first, { decision: 'approve', shown });
      expect(await outcomeOf(person, sent)).to.equal('consent');
    }
    expect(await remembered()).to.equal(undefined);
    expect(answerIn(await approve(first))).to.have.property('code');
  });

  it('the next consent page lists what changed', async () => {
    await approve(await open());
    await edit('Stock Sync');
    const text = textOf((await open({ prompt: 'consent' })).html);
    expect(text).to.include('The name was Shown Name , now it is Stock Sync');
    await approve(await open());
    const calm = textOf((await open({ prompt: 'consent' })).html);
    expect(calm).to.include(said('consent.again')).and.not.include('The name was');
  });

  it('a change of owner, or of the name of the owner, needs consent again', async () => {
    const page = await open();
    expect(textOf(page.html)).to.include('Made by Oscar Other');
    await on.service.clients.transfer(client.id, on.seeded.person.accountId);
    const again = await approve(page);
    expect(textOf(again.html)).to.include('It was made by Oscar Other .').and.include('Made by Grace Person');
    await on.service.accounts.rename(on.seeded.person.accountId, 'Gail Person');
    await eventually(async () => {
      expect(await on.service.clients.find(client.id)).to.include({ ownerName: 'Gail Person' });
    });
    expect(await outcomeOf(person, await approve(again))).to.equal('consent');
    expect(await remembered()).to.equal(undefined);
    await on.service.accounts.rename(on.seeded.person.accountId, 'Grace Person');
  });

  it('the consent page lists an organization that blocks the client as blocking, not as accessible', async () => {
    const { memberships, organizations, database } = on.service;
    const another = await organizations.add({ name: 'Open Storage' });
    const closed = await organizations.add({ name: 'Closed Storage' });
    const { accountId } = credentials;
    await memberships.setRole({ accountId }, closed.id, 'owner');
    on.service.access.forget(accountId);
    const block = 'INSERT INTO barred_clients VALUES ($1, $2, now())';
    await database.query(block, [closed.id, client.id]);
    const reached = ({ html }: Page): string => /<ul class="reach">.*?<\/ul>/s.exec(html)?.[0] ?? '';
    const alone = await open();
    expect(textOf(alone.html)).to.include('Blocked in Closed Storage by an owner or admin');
    expect(reached(alone)).to.equal('');
    await memberships.setRole({ accountId }, another.id, 'owner');
    on.service.access.forget(accountId);
    const both = await open();
    expect(reached(both)).to.include('Open Storage').and.not.include('Closed Storage');
    expect(textOf(both.html)).to.include('Blocked in Closed Storage');
  });

  it('a client whose verification mark or links change needs consent again', async () => {
    const links = { homepage: 'https://sync.example/', privacy: 'https://sync.example/privacy' };
    const shown = { name: 'Stock Sync', redirectUris: [REDIRECT_URI] };
    await on.service.clients.edit(client.id, { ...shown, links });
    await on.service.clients.verify(client.id, true);
    const page = await open();
    expect(textOf(page.html)).to.include('Verified');
    await on.service.clients.verify(client.id, false);
    const again = await approve(page);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(textOf(again.html)).to.include(said('consent.not-verified-now'));
    // An edit removes the verification mark.
    await on.service.clients.verify(client.id, true);
    const marked = await open();
    await on.service.clients.edit(client.id, {
      ...shown,
      links: { homepage: 'https://b.example/' },
    });
    const last = await approve(marked);
    expect(textOf(last.html)).to.include('no longer marked as verified. Its links were changed.');
    expect(last.html).to.not.include('>Verified<');
  });
});
