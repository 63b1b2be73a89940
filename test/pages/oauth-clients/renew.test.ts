import { expect } from 'chai';
import { partnerTokens, tokensOf } from '../../provider/partner-tokens.ts';
import { eventually } from '../../support/eventually.ts';
import { startsWithMail } from '../../support/mail-server.ts';
import { refresh, type TestClient } from '../../support/oauth.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, isSecretValid, LIST, shownOn, signInOwner, textOf } from '../client-owner.ts';
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

  it('only the typed name of the client renews it, and shows one new secret; its people see a line, and not by whom', async () => {
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
    expect(await found('last_four')).not.to.include('client_renewed');
    expect(await found('127.0.0.1')).not.to.include('client_renewed');
    const other = await signedIn(on.service, on.seeded.other);
    expect(textOf((await other.get('/profile/activity')).html)).to.include('App secured after a theft at its provider');
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
  });

  it('a person who connects the client after its renewal does not see it', async () => {
    const shown = (await on.service.activity.of(on.seeded.person.accountId, { limit: 50 })).length;
    const secrets = await on.service.clients.find(client.id);
    expect(secrets?.renewedAt).to.be.an.instanceOf(Date);
    const { secret } = await on.service.clients.addSecret(client.id);
    await on.partner.tokens({ ...client, secret });
    const lines = await on.service.activity.of(on.seeded.person.accountId, { limit: 50 });
    expect(lines.filter(({ actor }) => actor === 'client')).to.deep.equal([]);
    expect(lines.length).to.be.greaterThan(shown);
  });
});
