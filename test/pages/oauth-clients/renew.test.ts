import { expect } from 'chai';
import { partnerTokens, tokensOf } from '../../provider/partner-tokens.ts';
import { refuseChanges } from '../../support/databases.ts';
import { eventually } from '../../support/eventually.ts';
import { startsWithMail } from '../../support/mail-server.ts';
import { refresh, type TestClient } from '../../support/oauth.ts';
import { describeOn, postgresServer } from '../../support/requirements.ts';
import { addPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, isSecretValid, LIST, said, shownOn, signInOwner, textOf } from '../client-owner.ts';
import { signedIn } from '../signed-in-person.ts';

describe('renewing an OAuth client on its page', () => {
  const { start, received } = startsWithMail();
  const on = startSeeded({ on: start, clock: true });
  let owner: ClientOwner;
  let client: Required<TestClient>;
  let path: string;

  before(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
    client = await owner.createClient('Stock Sync');
    path = `${LIST}/${client.id}`;
  });

  it('renewing a client requires typing its name and shows one new secret; users see the renewal, but not who did it', async () => {
    const tokens = await partnerTokens(on.issuer, { ...on.seeded, person: on.seeded.other }).tokens(client);
    const { html } = await owner.get(`${path}/secrets`);
    expect(html).to.include(`href="${path}/renew"`);
    const page = await owner.get(`${path}/renew`);
    const mistyped = await owner.submit(page, { confirm_name: 'Stock' });
    expect(mistyped.status).to.equal(422);
    expect(await isSecretValid(on.issuer, client)).to.equal(true);
    on.clock.advance(60);
    const rows = (await on.service.database.query('SELECT FROM activity')).length;

    const shown = await owner.follow(await owner.submit(page, { confirm_name: 'Stock Sync' }));
    expect(textOf(shown.html)).to.include('All other secrets have ended.');
    const renewed = { ...client, ...shownOn(shown) };
    expect(await isSecretValid(on.issuer, client)).to.equal(false);
    expect(await isSecretValid(on.issuer, renewed)).to.equal(true);
    expect((await on.service.clients.find(client.id))?.secrets).to.have.length(1);
    expect(await on.partner.isActive(tokens.accessToken)).to.equal(false);
    const lifted = tokensOf(await refresh(on.issuer, renewed, tokens.refreshToken));
    expect(await on.partner.isActive(lifted.accessToken)).to.equal(true);
    expect((await on.service.database.query('SELECT FROM activity')).length, 'one entry for everyone').to.equal(
      rows + 1,
    );

    const [line] = await on.service.activity.of(on.seeded.other.accountId, { limit: 1 });
    expect(line).to.deep.include({
      action: 'client_renewed',
      actor: 'client',
      details: { client_id: client.id, client_name: 'Stock Sync' },
    });
    expect(line).not.to.have.any.keys('origin', 'accountId', 'requestId');
    // A search finds nothing that the line does not show.
    const found = async (text: string) =>
      (await on.service.activity.of(on.seeded.other.accountId, { limit: 50, text })).map(({ action }) => action);
    expect(await found('stock sync')).to.include('client_renewed');
    for (const hidden of ['last_four', 'ended_secrets']) {
      expect(await found(hidden)).not.to.include('client_renewed');
    }
    expect(await found('127.0.0.1')).not.to.include('client_renewed');
    const other = await signedIn(on.service, on.seeded.other);
    expect(textOf((await other.get('/profile/activity')).html)).to.include(said('activity.app_renewed'));
    const [own, before] = await on.service.activity.of(on.seeded.person.accountId, { limit: 2 });
    expect(own).to.include({ action: 'client_renewed', actor: 'person' });
    expect(before?.action, 'once').not.to.equal('client_renewed');

    await eventually(() => {
      const mails = received.filter(({ text }) => text.includes('Your OAuth client was renewed after a theft'));
      expect(
        mails.map(({ to }) => to),
        'only the owner',
      ).to.deep.equal([[on.seeded.person.email]]);
      expect(mails[0]?.text).to.include('Stock Sync').and.not.include('gate_cs_');
    });

    const again = await owner.submit(await owner.get(`${path}/renew`), { confirm_name: 'Stock Sync' });
    expect(again.status).to.equal(422);
    expect(textOf(again.html)).to.include('The client was renewed a moment ago');
    expect(again.html, 'the typed name was right').not.to.include('aria-invalid');
    expect(await isSecretValid(on.issuer, renewed)).to.equal(true);

    on.clock.advance(60);
    const later = await addPerson(on.service, 'Lara Later', 'lara@example.test');
    await partnerTokens(on.issuer, { ...on.seeded, person: later }).tokens(renewed);
    const since = (await on.service.activity.of(later.accountId, { limit: 50 })).map(({ action }) => action);
    expect(since, 'connected after the renewal').to.include('connected').and.not.include('client_renewed');
  });

  it('a renewal form submitted twice renews once, and shows the secret if the browser got only the second answer', async () => {
    const own = await owner.createClient('Twice Sync');
    const page = await owner.get(`${LIST}/${own.id}/renew`);
    const clicks = await Promise.all([1, 2, 3].map(() => owner.submit(page, { confirm_name: 'Twice Sync' })));
    expect(new Set(clicks.map(({ location }) => location?.href)).size).to.equal(1);
    const again = await owner.submit(page, { confirm_name: 'Twice Sync' });
    const shown = shownOn(await owner.follow(again));
    expect(await isSecretValid(on.issuer, { ...own, ...shown })).to.equal(true);
    const renewals = "SELECT FROM activity WHERE action = 'client_renewed' AND details ->> 'client_id' = $1";
    expect(await on.service.database.query(renewals, [own.id])).to.have.length(1);
  });
});

describeOn([postgresServer], 'renewing an OAuth client on its page, with all tokens in PostgreSQL', () => {
  const on = startSeeded({ on: 'postgres' });

  it('a client is not renewed if its new secret cannot be stored for the page that shows the secret', async () => {
    const owner = await signInOwner(on.service, on.seeded.person);
    const own = await owner.createClient('Unkept Sync');
    const { database } = on.service;
    const kept = "INSERT ON token_records FOR EACH ROW WHEN (new.kind = 'shown_once')";
    const accept = await refuseChanges(database, kept, "'no room' USING ERRCODE = 'disk_full'");
    const page = await owner.get(`${LIST}/${own.id}/renew`);
    const refused = await owner.submit(page, { confirm_name: 'Unkept Sync' }).finally(accept);
    expect(refused.status).to.equal(503);
    expect(await isSecretValid(on.issuer, own)).to.equal(true);
  });
});
