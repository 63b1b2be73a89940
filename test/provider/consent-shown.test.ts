/** An approval stands for what the page showed, to whom and for which request it was shown. */
import { expect } from 'chai';
import { fieldOf } from '../pages/signed-in-person.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import { createPerson, type Page, type Person } from '../support/person.ts';
import { addPerson, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { answerIn, outcomeOf } from './authorization-outcome.ts';

const SECOND = 'https://second.example/callback';

describe('an approval stands for what the page showed', () => {
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
    const draft = { kind: 'confidential', name: 'Shown Name', isNative: false } as const;
    const owner = { ownerAccountId: on.seeded.other.accountId };
    const added = await on.service.clients.add({
      ...{ ...draft, ...owner, redirectUris: [REDIRECT_URI] },
    });
    client = { id: added.client.id, redirectUri: REDIRECT_URI };
  });

  const open = async (parameters = {}): Promise<Page> =>
    person.follow(await person.get(authorizationUrl(on.issuer, client, parameters)));
  const approve = async (page: Page): Promise<Page> =>
    person.follow(await person.submit(page, { decision: 'approve' }));
  const edit = (name: string, redirectUris = [REDIRECT_URI]) =>
    on.service.clients.edit(client.id, { name, redirectUris });
  const remembered = () => on.service.connections.find(credentials.accountId, client.id);
  const connectedInLog = async (): Promise<number> => {
    const log = await on.service.activity.of(credentials.accountId, { limit: 20 });
    return log.filter(({ action }) => action === 'connected').length;
  };

  it('under another name and with another host it is asked anew, and says what changed', async () => {
    const page = await open();
    await edit('New Name', [REDIRECT_URI, SECOND]);
    const again = await approve(page);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(await remembered()).to.equal(undefined);
    expect(await connectedInLog()).to.equal(0);
    expect(again.html).to.include('New Name').and.include('“Shown Name”');
    expect(again.html).to.include('second.example');

    expect(answerIn(await approve(again))).to.have.property('code');
    expect(await remembered()).to.deep.include({
      ...{ name: 'New Name', hosts: ['partner.example', 'second.example'] },
    });
    expect(await connectedInLog()).to.equal(1);
  });

  it('changed between the answer and its arrival, it is asked anew as well', async () => {
    const answered = await person.submit(await open(), { decision: 'approve' });
    await edit('New Name');
    const again = await person.follow(answered);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(again.html).to.include('“Shown Name”');
    expect(await remembered()).to.equal(undefined);
  });

  it('a client that was connected before is not taken for approved either', async () => {
    await approve(await open());
    const page = await open({ prompt: 'consent' });
    await edit('New Name');
    expect(await outcomeOf(person, await approve(page))).to.equal('consent');
    expect(await remembered()).to.include({ name: 'Shown Name' });
  });

  it('a connection that was ended since is asked about anew', async () => {
    await approve(await open());
    const page = await open({ prompt: 'consent' });
    const whose = { accountId: credentials.accountId, clientId: client.id };
    await on.service.connections.end(whose, 'person_disconnected');
    const again = await approve(page);
    expect(await outcomeOf(person, again)).to.equal('consent');
    expect(again.html).to.include('It was disconnected');
    expect(await remembered()).to.equal(undefined);
    expect(answerIn(await approve(again))).to.have.property('code');
  });

  it('sessions that end between the answer and its arrival leave no consent', async () => {
    const answered = await person.submit(await open(), { decision: 'approve' });
    await on.service.accounts.endSessions(credentials.accountId);
    const signIn = await person.follow(answered);
    expect(await outcomeOf(person, signIn)).to.equal('sign-in');
    expect(await remembered()).to.equal(undefined);
    // Whoever signs in now was not asked yet.
    const { email, password } = credentials;
    const asked = await person.follow(await person.submit(signIn, { email, password }));
    expect(await outcomeOf(person, asked)).to.equal('consent');
    expect(await remembered()).to.equal(undefined);
  });

  it('two pages of one client may both be approved', async () => {
    const [first, second] = [await open(), await open()];
    expect(answerIn(await approve(first))).to.have.property('code');
    expect(answerIn(await approve(second))).to.have.property('code');
  });

  it('what another page showed, or nobody did, is asked', async () => {
    const [first, second] = [await open(), await open()];
    const own = fieldOf(first, 'shown');
    const [said = '', mac = ''] = own.split('.');
    const forged = Buffer.from(said, 'base64url').toString().replace('Shown', 'Known');
    const changed = `${Buffer.from(forged).toString('base64url')}.${mac}`;
    for (const shown of [
      fieldOf(second, 'shown'),
      changed,
      said,
      '',
      `${said}.${'A'.repeat(43)}`,
    ]) {
      const sent = await person.submit(first, { decision: 'approve', shown });
      expect(await outcomeOf(person, sent)).to.equal('consent');
    }
    expect(await remembered()).to.equal(undefined);
    expect(answerIn(await approve(first))).to.have.property('code');
  });
});
