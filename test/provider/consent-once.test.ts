/** A consent page gives one code: a second approval, sent while the first is resumed, gets none. */
import { expect } from 'chai';
import { signedIn } from '../pages/signed-in-person.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createOpened } from '../support/opened.ts';
import type { Page, Person } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { seed } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { answerIn } from './authorization-outcome.ts';

// In PostgreSQL; that no store recreates a record which was taken is in its contract.
describeOn([postgresServer], 'two approvals of one consent page', () => {
  const opened = createOpened();
  after(opened.closeAll);

  it('a second approval of one request gets no code while the first approval is being processed', async () => {
    const close = (node: TestService): Promise<void> => node.close();
    const service = await opened.add(startTestService({ deployment: 'postgres' }), close);
    const slow = await opened.add(startTestService({ sharing: service }), close);
    const seeded = await seed(service);
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

describe('an approval that cannot be recorded', () => {
  const on = startSeeded();

  it('connects nothing, and the next request asks again', async () => {
    const { accountId } = on.seeded.person;
    const { id } = on.clients.confidential;
    const recorded = () => on.service.database.query(`SELECT FROM activity WHERE action = 'connected'`);
    const person = await signedIn(on.service, on.seeded.person);
    const request = authorizationUrl(on.issuer, on.clients.confidential);
    const consent = await person.open(request);
    await on.service.database.query(`ALTER TABLE activity ADD CONSTRAINT disk_full CHECK (action <> 'connected')`);
    const failed = await person.follow(await person.submit(consent, { decision: 'approve' }));
    expect(failed.status).to.be.at.least(500);
    expect(await on.service.connections.find(accountId, id)).to.equal(undefined);
    await on.service.database.query('ALTER TABLE activity DROP CONSTRAINT disk_full');
    const again = await person.open(request);
    const done = await person.follow(await person.submit(again, { decision: 'approve' }));
    expect(answerIn(done)).to.have.property('code');
    expect(await recorded()).to.have.length(1);
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
