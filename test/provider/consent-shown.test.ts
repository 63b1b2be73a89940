/** An approval counts only for what the page showed, to that user and for that request, and gives one code. */
import { expect } from 'chai';
import { said, textOf } from '../pages/client-owner.ts';
import { fieldOf, signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, type TestClient } from '../support/oauth.ts';
import type { Page, Person } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addPerson, addTestClient, REDIRECT_URI, type SeededPerson } from '../support/seed.ts';
import { startAndSeed, startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
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
    person = await signedIn(on, credentials);
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

  interface Change {
    /** What is so before the page is opened. */
    readonly given?: () => Promise<unknown>;
    /** True if the person has approved the client before. */
    readonly isConnected?: true;
    /** True if the page that is open shows the mark. */
    readonly isVerified?: true;
    readonly make: () => Promise<unknown>;
    /** What the next page says about it. */
    readonly says: readonly string[];
  }

  const revoke = () => on.service.clients.revoke(client.id);
  const ownedByGrace = () => on.service.clients.transfer(client.id, on.seeded.person.accountId);
  const relink = (homepage: string) => on.service.clients.edit(client.id, { name: 'Shown Name', links: { homepage } });
  let owner: SeededPerson;
  const CHANGES: Readonly<Record<string, Change>> = {
    'a new name and redirect host': {
      make: () => edit('New Name', [REDIRECT_URI, SECOND]),
      says: ['New Name', '“ Shown Name ”', 'second.example'],
    },
    'a new owner': { make: ownedByGrace, says: ['The app was made by Oscar Other .', 'Made by Grace Person'] },
    'a new name of the owner': {
      // An owner of its own: the name stays changed.
      async given() {
        owner = await addPerson(on.service, 'Gerda Person', 'gerda@example.test');
        await on.service.clients.transfer(client.id, owner.accountId);
      },
      async make() {
        await on.service.accounts.rename(owner.accountId, 'Gail Person');
        const renamed = async () => (await on.service.clients.find(client.id))?.ownerName;
        await eventually(async () => expect(await renamed()).to.equal('Gail Person'));
      },
      says: ['Made by Gail Person'],
    },
    'the end of the verification': {
      given: () => on.service.clients.verify(client.id, true),
      isVerified: true,
      make: () => on.service.clients.verify(client.id, false),
      says: [said('consent.not-verified-now')],
    },
    'a change of the links, which also ends the verification': {
      async given() {
        await relink('https://sync.example/');
        await on.service.clients.verify(client.id, true);
      },
      isVerified: true,
      make: () => relink('https://b.example/'),
      says: ['no longer marked as verified. The links of the app were changed.', 'b.example'],
    },
    'the end of the connection': {
      isConnected: true,
      make: () =>
        on.service.connections.end({ accountId: credentials.accountId, clientId: client.id }, 'person_disconnected'),
      says: [said('consent.disconnected')],
    },
    'the end of everything of a client that the person has not connected': {
      make: revoke,
      says: [said('consent.not-approved')],
    },
    'the end of everything of a connected client': {
      isConnected: true,
      make: revoke,
      says: [said('consent.not-approved')],
    },
    'the end of everything of a connected client, whose connection is marked already': {
      isConnected: true,
      async make() {
        await revoke();
        await on.service.connections.endSome(client.id, 'operator_revoked', undefined, async () => {});
      },
      says: [said('consent.not-approved'), said('consent.disconnected')],
    },
  };
  for (const [what, { given, isConnected, isVerified, make, says }] of Object.entries(CHANGES)) {
    it(`after ${what}, an approval on the open page has no effect, and the next page says why and can be approved`, async () => {
      await given?.();
      if (isConnected) await approve(await open());
      const page = await open({ prompt: 'consent' });
      expect(page.html.includes('>Verified<')).to.equal(isVerified === true);
      await make();
      const again = await approve(page);
      expect(await outcomeOf(person, again)).to.equal('consent');
      for (const text of says) expect(textOf(again.html)).to.include(text);
      expect(again.html).not.to.include('>Verified<');
      const disconnected = said('consent.disconnected');
      expect(again.html.includes(disconnected)).to.equal(says.includes(disconnected));
      expect(await remembered()).to.equal(undefined);
      expect(await connectedInLog()).to.equal(isConnected ? 1 : 0);
      expect(answerIn(await approve(again))).to.have.property('code');
      expect(await connectedInLog()).to.equal(isConnected ? 2 : 1);
      const { name } = (await on.service.clients.find(client.id)) ?? {};
      expect(await remembered()).to.include({ name });
    });
  }

  it('a client that changes after the user clicked Approve and before the code is issued needs consent again', async () => {
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

  it('no consent is saved if the sessions of the user end after the click on Approve and before the code is issued', async () => {
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

  it('an approval with a forged hidden field, or with the hidden field of another page, needs consent again', async () => {
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

  it('an approval that cannot be recorded does not connect the client, and the next request asks again', async () => {
    const consent = await open();
    await on.service.database.query(
      `ALTER TABLE activity ADD CONSTRAINT disk_full CHECK (action <> 'connected') NOT VALID`,
    );
    try {
      expect((await approve(consent)).status).to.be.at.least(500);
      expect(await remembered()).to.equal(undefined);
    } finally {
      await on.service.database.query('ALTER TABLE activity DROP CONSTRAINT disk_full');
    }
    expect(answerIn(await approve(await open()))).to.have.property('code');
    expect(await connectedInLog()).to.equal(1);
  });
});

// In PostgreSQL; that no store recreates a record which was taken is in its contract.
describeOn([postgresServer], 'two approvals of one consent page', () => {
  const start = startsOn('postgres');

  it('a second approval of one request gets no code while the first approval is being processed', async () => {
    const { service, seeded } = await startAndSeed(start);
    const slow = await start({ sharing: service });
    const person = await signedIn(service, seeded.person);
    const consent = await person.open(authorizationUrl(service.issuer, seeded.clients.confidential));

    const first = await person.submit(consent, { decision: 'approve' });
    const resumption = cookiesOf(person, first.location);
    const second = await service.database.transaction(async (tx) => {
      // The record that marks the interaction as answered is written first: the other node waits for it.
      await tx.query(`SELECT 1 FROM token_records WHERE data->>'restart' IS NOT NULL FOR UPDATE`);
      const answered = approveAt(slow, person, consent);
      await eventually(async () => {
        expect(await service.database.query('SELECT 1 FROM pg_locks WHERE NOT granted')).to.have.length(1);
      });
      expect(answerIn(await person.follow(first))).to.have.property('code');
      return { answered };
    });

    const { status, location } = await second.answered;
    expect(status).to.equal(303);
    expect(location?.pathname).to.equal(consent.url.pathname);
    // The browser has deleted the interaction's cookie by now; a copy of it must be useless.
    const session = person.cookieHeader('/');
    const again = await fetch(first.location ?? '', {
      headers: { cookie: `${session}; ${resumption}`, accept: 'text/html' },
      redirect: 'manual',
    });
    expect(again.status).to.equal(410);
    expect(again.headers.get('location')).to.equal(null);
  });
});

/** Returns the cookies of the interaction, without those of the session. */
function cookiesOf(person: Person, url: URL | undefined): string {
  const session = person.cookieHeader('/').split('; ');
  const all = person.cookieHeader(url?.pathname ?? '').split('; ');
  return all.filter((cookie) => !session.includes(cookie)).join('; ');
}

/** Sends the same approval to another node. */
async function approveAt(node: TestService, person: Person, consent: Page) {
  const fields = consent.forms.flatMap(({ values }) => values);
  const url = new URL(consent.url.pathname, node.issuer);
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      cookie: person.cookieHeader(consent.url.pathname),
      origin: node.issuer,
      'sec-fetch-site': 'same-origin',
    },
    body: new URLSearchParams(Object.fromEntries([...fields, ['decision', 'approve']])),
    redirect: 'manual',
  });
  const location = response.headers.get('location');
  return { status: response.status, location: location === null ? null : new URL(location, url) };
}
