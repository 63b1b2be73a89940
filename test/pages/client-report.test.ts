/** Reports that users send about clients: the operator sees them, the owner of the client does not. */
import { expect } from 'chai';
import { createClientReports } from '../../src/clients/client-reports.ts';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { counted, scrape } from '../support/metrics.ts';
import { authorizationUrl, pkce, type TestClient } from '../support/oauth.ts';
import { addPerson, addTestClient, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { signInOwner, textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const MARKUP = `<script>alert(1)</script>"'&<%= 1 %>`;
const DAY_MS = 86_400_000;

describe('a report about a client', () => {
  const on = startSeeded({ clock: true });
  let person: SignedInPerson;
  let reporter: SeededPerson;
  let client: TestClient;
  let people = 0;

  beforeEach(async () => {
    people += 1;
    reporter = await addPerson(on.service, 'Rita Reporter', `rita-${people}@example.test`);
    person = await signedIn(on.service, reporter);
    const owner = { ownerAccountId: on.seeded.other.accountId };
    client = await addTestClient(on.service, 'Free Maps', owner);
  });

  const pathOf = (id = client.id): string => `/profile/connections/${id}/report`;
  const report = (fields: Readonly<Record<string, string>>, id?: string, who = person) =>
    who.send(pathOf(id), fields);
  const reports = () =>
    createClientReports({ database: on.service.database, clock: on.clock.clock });
  const stored = async () => {
    const { items } = await reports().list(client.id, {});
    return items.map(({ accountId, reason, sentence }) => ({ accountId, reason, sentence }));
  };

  it("a report about a client reaches the operator with its reason, and is in the sender's activity", async () => {
    const page = await person.fillIn(pathOf(), {
      reason: 'misuse',
      sentence: ' It \n moves stock ',
    });
    expect(page.url.pathname).to.equal('/profile/connections');
    expect(textOf(page.html)).to.include('Your report was sent to the operator');
    const { accountId } = reporter;
    expect(await stored()).to.deep.equal([
      { accountId, reason: 'misuse', sentence: 'It moves stock' },
    ]);
    const activity = textOf((await person.get('/profile/activity')).html);
    expect(activity).to.include('report about Free Maps');
  });

  it('a metric counts reports about clients by reason', async () => {
    const count = async () => counted(await scrape(on.service), 'gatehouse_client_reports_total');
    const before = await count();
    await report({ reason: 'impersonation', sentence: '' });
    await report({ reason: 'nothing of ours' });
    const label = '{reason="impersonation"}';
    expect(await count()).to.deep.equal({ ...before, [label]: (before[label] ?? 0) + 1 });
  });

  it('the owner of a client cannot see reports about the client', async () => {
    const { accountId } = on.seeded.other;
    const log = () => on.service.activity.of(accountId, { limit: 100 });
    const owner = await signInOwner(on.service, on.seeded.other);
    const pages = ['', '/problems', '/settings'].map((part) => {
      return `/profile/oauth-clients/${client.id}${part}`;
    });
    const before = await log();
    await report({ reason: 'misuse', sentence: 'It moves stock' });
    expect(await log()).to.deep.equal(before);
    for (const path of [...pages, '/profile/activity']) {
      const { html } = await owner.get(path);
      expect(html, path).to.not.include('Rita').and.not.include('It moves stock');
    }
  });

  it('a second report by the same user replaces the first; reports by other users stay', async () => {
    await report({ reason: 'unexpected', sentence: 'once' });
    await report({ reason: 'other', sentence: 'twice' });
    const own = { accountId: reporter.accountId, reason: 'other', sentence: 'twice' };
    expect(await stored()).to.deep.equal([own]);
    const another = await signedIn(on.service, on.seeded.person);
    await report({ reason: 'misuse' }, undefined, another);
    const theirs = { accountId: on.seeded.person.accountId, reason: 'misuse', sentence: null };
    expect(await stored()).to.have.deep.members([own, theirs]);
  });

  it('a report with an unknown reason or too long a text is refused, and the form keeps the values', async () => {
    for (const [fields, problem] of [
      [{ sentence: 'typed' }, 'Choose what is wrong.'],
      [{ reason: '', sentence: 'typed' }, 'Choose what is wrong.'],
      [{ reason: 'constructor', sentence: 'typed' }, 'Choose what is wrong.'],
      [{ reason: MARKUP, sentence: 'typed' }, 'Choose what is wrong.'],
      [{ reason: 'misuse', sentence: 'x'.repeat(301) }, 'Write at most 300 characters.'],
    ] as const) {
      const answer = await report(fields);
      expect(answer.status).to.equal(422);
      expect(textOf(answer.html)).to.include(problem);
      expect(answer.html).to.include(fields.sentence).and.not.include('<script>alert');
    }
    expect(await stored()).to.deep.equal([]);
    expect((await report({ reason: 'misuse', sentence: 'x'.repeat(300) })).status).to.equal(303);
  });

  it('markup in a report is shown as text, and no token, NUL or line break is stored', async () => {
    const refused = await report({ sentence: MARKUP });
    expect(refused.html).to.include('&lt;script&gt;').and.not.include('<script>alert');
    const secret = `gate_cs_${'x'.repeat(43)}`;
    await report({ reason: 'other', sentence: `${MARKUP}\r\n${secret}\0` });
    const [{ sentence } = { sentence: '' }] = await stored();
    expect(sentence).to.equal(`${MARKUP} gate_cs_…\uFFFD`);
  });

  it('only a client that asks users for approval can be reported; for any other id the page is 404', async () => {
    const { machine, resourceServer } = on.clients;
    for (const id of [
      machine.id,
      resourceServer.id,
      'gate_ci_none',
      `${client.id}x`,
      '%00',
      '..%2f',
    ]) {
      expect((await person.get(pathOf(id))).status, id).to.equal(404);
      expect((await report({ reason: 'misuse' }, id)).status, id).to.equal(404);
    }
    expect((await report({ reason: 'misuse' }, on.clients.public.id)).status).to.equal(303);
  });

  it('after ten reports within an hour, further reports by the same user are refused', async () => {
    for (let sent = 0; sent < 10; sent += 1) {
      expect((await report({ reason: 'other' })).status).to.equal(303);
    }
    const answer = await report({ reason: 'misuse', sentence: 'the eleventh' });
    expect(answer.status).to.equal(429);
    expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 3_600);
    expect(textOf(answer.html)).to.include('You have sent many reports');
    expect(answer.html).to.include('the eleventh');
    expect((await stored())[0]).to.include({ reason: 'other' });
    const another = await signedIn(on.service, on.seeded.person);
    expect((await report({ reason: 'other' }, undefined, another)).status).to.equal(303);
  });

  it('a report is deleted with its client, with its sender, and after 90 days', async () => {
    await report({ reason: 'other' });
    const second = await addPerson(on.service, 'Rob', `rob-${people}@example.test`);
    await report({ reason: 'misuse' }, undefined, await signedIn(on.service, second));
    await on.service.database.query('DELETE FROM accounts WHERE id = $1', [second.accountId]);
    expect(await stored()).to.have.lengthOf(1);
    on.clock.advance(90 * 86_400 - 60);
    expect(await reports().removeExpired(100)).to.equal(0);
    expect(await stored()).to.have.lengthOf(1);
    on.clock.advance(61);
    expect(await stored()).to.deep.equal([]);
    expect(await reports().removeExpired(100)).to.be.above(0);
    const rows = await on.service.database.query(
      'SELECT FROM client_reports WHERE client_id = $1',
      [client.id],
    );
    expect(rows).to.deep.equal([]);
    person = await signedIn(on.service, reporter);
    await report({ reason: 'other' });
    await on.service.clients.remove(client.id);
    const left = 'SELECT FROM client_reports WHERE account_id = $1';
    expect(await on.service.database.query(left, [reporter.accountId])).to.deep.equal([]);
  });

  describe('the link to report a client', () => {
    const request = (parameters = {}): URL =>
      authorizationUrl(on.issuer, client, { ...pkce().parameters, ...parameters });

    it('the consent page links to the report form, which does not end the pending authorization', async () => {
      const consent = await person.open(request());
      const [, link = ''] =
        /<a href="([^"]*)" target="_blank"[^>]*>Something wrong/.exec(consent.html) ?? [];
      expect(link).to.equal(pathOf());
      const sent = await person.fillIn(link, { reason: 'unexpected' });
      expect(textOf(sent.html)).to.include('Your report was sent to the operator');
      const approved = await person.follow(await person.submit(consent, { decision: 'approve' }));
      expect(approved.location?.searchParams.has('code')).to.equal(true);
    });

    it('the page of a connection links to the report form', async () => {
      await person.authorize(request(), reporter);
      const { html } = await person.get(`/profile/connections/${client.id}`);
      expect(html).to.include(`href="${pathOf()}"`);
      expect(textOf((await person.get(pathOf())).html))
        .to.include('What is wrong with Free Maps ?')
        .and.include('Oscar Other , who made the app, does not learn who sent it.');
    });
  });
});

describe('the facts about a client', () => {
  const on = startSeeded({ clock: true });
  let person: SignedInPerson;
  let client: TestClient;

  before(async () => {
    person = await signedIn(on.service, on.seeded.person);
    const owner = { ownerAccountId: on.seeded.other.accountId };
    client = await addTestClient(on.service, 'Free Maps', owner);
  });

  const consentText = async (of = client): Promise<string> => {
    const request = authorizationUrl(on.issuer, of, pkce().parameters);
    return textOf((await person.open(new URL(`${request}&prompt=consent`))).html);
  };
  const connectionText = async (): Promise<string> =>
    textOf((await person.get(`/profile/connections/${client.id}`)).html);

  it('the consent page warns of a new client, but not of a client of the operator', async () => {
    expect(await consentText()).to.include(
      'Do you know this app? Approve it only if you expected it to ask you. ' +
        'Registered today · connected by no one yet · not checked by the operator',
    );
    const provided = await consentText(on.clients.otherConfidential);
    expect(provided).to.include('Registered today · connected by no one yet');
    expect(provided).to.not.include('Do you know').and.not.include('checked by');
  });

  it('the consent page shows facts but no warning for a client that is a week old and has five users', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const one = await addPerson(on.service, name, `${name}@example.test`);
      const subject = { accountId: one.accountId };
      if (name === 'a') {
        await on.service.memberships.setRole(subject, on.seeded.organization.id, 'viewer');
      }
      await partnerTokens(on.issuer, { ...on.seeded, person: one }).code(client);
    }
    const line = 'connected by 5 people, some in your organization · not checked by the operator';
    expect(await consentText())
      .to.include(`Do you know this app?`)
      .and.include(line);
    on.clock.advance((7 * DAY_MS) / 1_000);
    person = await signedIn(on.service, on.seeded.person);
    const text = await consentText();
    expect(text).to.include(`Registered 7 days ago · ${line}`).and.not.include('Do you know');
    expect(text).to.not.match(/\b[a-e]@example\.test/);
  });

  it('the page of a connection shows age and users of the client, and whether the operator checked it', async () => {
    await person.authorize(authorizationUrl(on.issuer, client), on.seeded.person);
    const people = 'connected by 5 other people, some in your organization';
    const facts = `Registered 7 days ago · ${people}`;
    expect(await connectionText()).to.include(`${facts} · not checked by the operator`);
    await on.service.clients.verify(client.id, true);
    expect(await connectionText()).to.include(`${facts} · checked by the operator`);
    expect(await consentText()).to.include(`Verified ${facts} · checked by the operator`);
    await on.service.database.query('UPDATE clients SET created_at = $2 WHERE id = $1', [
      client.id,
      new Date(on.clock.clock()),
    ]);
    expect(await connectionText()).to.include(
      `Do you know this app? Disconnect it if you do not. Registered today · ${people}`,
    );
  });
});
