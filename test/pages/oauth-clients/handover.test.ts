/** `/profile/oauth-clients/:id/handover` and `/offers/:offer`: a client gets another owner. */
import { expect } from 'chai';
import { GRACE, startWithUpstream, WITH_PLATFORM } from '../../sign-in-upstream/service.ts';
import { eventually } from '../../support/eventually.ts';
import { startsWithMail } from '../../support/mail-server.ts';
import { authorizationUrl, refresh, type TestClient } from '../../support/oauth.ts';
import type { Page } from '../../support/person.ts';
import { addPerson, type SeededPerson } from '../../support/seed.ts';
import { startSeeded } from '../../support/seeded.ts';
import { type ClientOwner, LIST, signInOwner, textOf } from '../client-owner.ts';

const OVER = 'That offer is not open any more';

describe('handing over an OAuth client', () => {
  const mail = startsWithMail();
  const on = startSeeded({
    clock: true,
    on: mail.start,
    settings: { limits: { clientsPerPerson: 2 } },
  });
  let count = 0;
  let giver: SeededPerson;
  let receiver: SeededPerson;
  let from: ClientOwner;
  let to: ClientOwner;
  let client: Required<TestClient>;
  let page: string;

  const newPerson = (name: string): Promise<SeededPerson> => {
    count += 1;
    return addPerson(on.service, name, `${name.toLowerCase()}${count}@example.test`);
  };

  beforeEach(async () => {
    [giver, receiver] = [await newPerson('Greta'), await newPerson('Ruth')];
    [from, to] = [await signInOwner(on.service, giver), await signInOwner(on.service, receiver)];
    client = await from.createClient('Stock Sync');
    page = `${LIST}/${client.id}/handover`;
  });

  const offerTo = (email: string): Promise<Page> => from.send(page, { new_owner_email: email });
  const offerPath = async (): Promise<string> => {
    const [offer] = await on.service.clients.listOffersTo(receiver.accountId);
    return `${LIST}/offers/${offer?.id}`;
  };
  const owner = async () => (await on.service.clients.find(client.id))?.ownerAccountId;
  const activityOf = async (who: SeededPerson, limit = 2): Promise<string> => {
    const { html } = await (who === giver ? from : to).get('/profile/activity?only=clients');
    return textOf(html.match(/<ol class="log">[\s\S]*?<\/ol>/)?.[0] ?? '').slice(0, limit * 300);
  };

  it('after a client is offered and accepted, its connections and tokens stay valid', async () => {
    const user = on.partner.browser;
    const tokens = await on.partner.tokens(client);
    const sent = await offerTo(` ${receiver.email.toUpperCase()} `);
    const shown = textOf((await from.follow(sent)).html);
    expect(shown).to.include('The client is offered.').and.include('Withdraw the offer');
    expect(textOf((await from.get(`${LIST}/${client.id}`)).html)).to.include('Offered to');

    const list = textOf((await to.get(LIST)).html);
    expect(list).to.include('Offered to you').and.include('Stock Sync').and.include(giver.email);
    const offer = await to.get(await offerPath());
    const facts = textOf(offer.html);
    for (const fact of ['partner.example', 'People connected 1', 'Secrets 1', giver.name]) {
      expect(facts).to.include(fact);
    }
    expect(offer.html).to.not.include(client.id);

    const taken = await to.follow(await to.submit(offer, {}));
    expect(taken.url.pathname).to.equal(`${LIST}/${client.id}`);
    const overview = textOf(taken.html);
    expect(overview).to.include('The client is yours now.');
    expect(overview).to.match(/Owned by you since .* handed over by Greta/);
    expect(overview).to.include('The former owner may know a secret of this client.');
    expect(await owner()).to.equal(receiver.accountId);
    expect((await from.get(`${LIST}/${client.id}`)).status).to.equal(404);
    expect(textOf((await to.get(LIST)).html)).to.not.include('Offered to you');

    // The connection, its tokens and its approval stay; the page of the connection names the new
    // owner.
    expect(await on.partner.isActive(tokens.accessToken)).to.equal(true);
    const refreshed = await refresh(on.issuer, client, tokens.refreshToken);
    expect(refreshed.status).to.equal(200);
    const connection = await user.get(`/profile/connections/${client.id}`);
    expect(textOf(connection.html)).to.include('Made by Ruth');
    const asked = await user.get(authorizationUrl(on.issuer, client));
    const answer = (await user.follow(asked)).location;
    expect(answer?.searchParams.get('code')).to.match(/^gate_ac_/);
  });

  it('after a handover the new owner is asked to rotate all secrets that are older', async () => {
    await offerTo(receiver.email);
    await to.send(await offerPath());
    const secrets = `${LIST}/${client.id}/secrets`;
    expect(textOf((await to.get(secrets)).html)).to.include('known to the former owner');
    on.clock.advance(1);
    await to.send(`${LIST}/${client.id}/rotate-secret`);
    const [old] = (await on.service.clients.find(client.id))?.secrets ?? [];
    expect((await to.get(secrets)).html.match(/known to the former owner/g)).to.have.length(1);
    await to.send(`${LIST}/${client.id}/remove-secret`, { secret_id: old?.id ?? '' });
    expect((await to.get(secrets)).html).to.not.include('former owner');
    const overview = (await to.get(`${LIST}/${client.id}`)).html;
    expect(overview).to.include('handed over by').and.not.include('The former owner');
  });

  it('both owners find each step of a handover in their activity: offer, acceptance, withdrawal and decline', async () => {
    await offerTo(receiver.email);
    expect(await activityOf(giver)).to.include('Client offered to a new owner Stock Sync');
    expect(await activityOf(receiver)).to.match(
      /Client offered to you Stock Sync by Greta .*This service/,
    );
    await from.send(`${page}/withdraw`);
    for (const who of [giver, receiver]) {
      expect(await activityOf(who)).to.match(/^ *Offer of a client withdrawn Stock Sync/);
    }
    await offerTo(receiver.email);
    await to.send(`${await offerPath()}/decline`);
    for (const who of [giver, receiver]) {
      expect(await activityOf(who)).to.match(/^ *Offer of a client declined Stock Sync/);
    }
    await offerTo(receiver.email);
    await to.send(await offerPath());
    expect(await activityOf(giver)).to.match(/^ *Client handed over Stock Sync to Ruth/);
    expect(await activityOf(receiver)).to.match(/^ *Client taken over Stock Sync from Greta/);
    // The name of a deleted user is removed from the other user's log.
    await on.service.clients.transfer(client.id, undefined);
    await on.service.accounts.remove(giver.accountId);
    expect(await activityOf(receiver, 9))
      .to.include('Client taken over')
      .and.not.include('Greta');
  });

  it('an offer to an address without an account looks like any other offer, on every page', async () => {
    const pages = async (email: string): Promise<string[]> => {
      const sent = await offerTo(email);
      const seen = [sent, await from.follow(sent), await from.get(`${LIST}/${client.id}`)];
      // Check that no search finds what the entry must not contain: a search reads all details.
      for (const text of ['acc_', 'Ruth', receiver.accountId]) {
        seen.push(await from.get(`/profile/activity?q=${text}`));
      }
      await from.send(`${page}/withdraw`);
      const neutral = (html: string) =>
        textOf(html)
          .replaceAll(email, 'EMAIL')
          .replace(/\d\d:\d\d(:\d\d)?/g, '');
      return seen.map(({ status, location, html }) => `${status} ${location} ${neutral(html)}`);
    };
    const known = await pages(receiver.email);
    await on.service.accounts.suspend(receiver.accountId);
    const suspended = await pages(receiver.email);
    const unknown = await pages('no-one@example.test');
    expect(unknown[1]).to.equal(known[1]);
    expect(unknown).to.deep.equal(suspended);
    const log = await on.service.activity.of(giver.accountId, { limit: 20 });
    const offers = log.filter(({ details }) => details.offer === 'made');
    expect(offers).to.have.length(3);
    for (const { details } of offers) expect(details).to.deep.equal(offers[0]?.details);
  });

  it('the offer of a client is mailed to the new owner only', async () => {
    const before = mail.received.length;
    const offered = () =>
      mail.received.slice(before).filter(({ raw }) => /^Subject: You are offered/m.test(raw));
    await offerTo('no-one@example.test');
    await from.send(`${page}/withdraw`);
    await offerTo(receiver.email);
    await offerTo(receiver.email);
    await eventually(() => expect(offered()).to.have.length(1));
    const [told] = offered();
    expect(told?.to).to.deep.equal([receiver.email]);
    expect(told?.text)
      .to.include('Stock Sync')
      .and.include(`${on.issuer}${await offerPath()}`);
    expect(told?.text).to.include(giver.email).and.not.include('127.0.0.1');
  });

  it('a client cannot be offered to an invalid address, its owner, or two addresses at once', async () => {
    for (const [email, problem] of [
      [giver.email.toUpperCase(), 'This is your own address.'],
      ['ruth', 'Enter an email address'],
      ['', 'Enter an email address'],
    ] as const) {
      const refused = await offerTo(email);
      expect(refused.status, email).to.equal(422);
      expect(textOf(refused.html)).to.include(problem);
    }
    await offerTo(receiver.email);
    const path = await offerPath();
    const second = await offerTo('other@example.test');
    expect(second.status).to.equal(422);
    expect(textOf(second.html))
      .to.include('Withdraw that offer first.')
      .and.include(receiver.email);
    expect((await offerTo(receiver.email)).status).to.equal(303);
    expect(await offerPath()).to.equal(path);
  });

  it('only the owner can offer a client, and only the receiver can answer the offer', async () => {
    const stranger = await signInOwner(on.service, await newPerson('Stan'));
    for (const path of [page, `${page}/withdraw`]) {
      expect((await stranger.get(path)).status).to.equal(404);
      expect((await stranger.send(path, { new_owner_email: receiver.email })).status).to.equal(404);
    }
    await offerTo(receiver.email);
    const path = await offerPath();
    const unknown = `${LIST}/offers/co_${'0'.repeat(22)}`;
    for (const [who, at] of [
      [stranger, path],
      [from, path],
      [to, unknown],
      [to, `${LIST}/offers/%00`],
    ] as const) {
      for (const answer of [
        await who.get(at),
        await who.send(at, { account_id: receiver.accountId }),
        await who.send(`${at}/decline`),
      ]) {
        expect([answer.status, answer.location?.pathname], at).to.deep.equal([303, LIST]);
        expect(answer.html).to.not.include('Stock Sync');
      }
    }
    expect(await owner()).to.equal(giver.accountId);
    expect((await to.get(path)).status).to.equal(200);
  });

  it('offering and accepting a client each require a recent sign-in', async () => {
    on.clock.advance(601);
    const asked = await offerTo(receiver.email);
    expect(textOf(asked.html)).to.include('Confirm it’s you');
    expect(await on.service.clients.findOfferOf(client.id)).to.equal(undefined);
    await from.submit(asked, { current_password: giver.password });
    const confirm = await to.send(await offerPath());
    expect(textOf(confirm.html)).to.include('Confirm it’s you');
    expect(await owner()).to.equal(giver.accountId);
    await to.submit(confirm, { current_password: receiver.password });
    expect(await owner()).to.equal(receiver.accountId);
  });

  it('the page of a withdrawn offer can accept neither it nor a later offer, and a second click changes nothing', async () => {
    await offerTo(receiver.email);
    const opened = await to.get(await offerPath());
    await from.send(`${page}/withdraw`);
    expect(textOf((await to.follow(await to.submit(opened, {}))).html)).to.include(OVER);
    await offerTo(receiver.email);
    const again = await to.follow(await to.submit(opened, {}));
    expect(textOf(again.html), 'another offer than the page showed').to.include(OVER);
    expect(await owner()).to.equal(giver.accountId);
    const path = await offerPath();
    const clicks = await Promise.all([to.send(path), to.send(path)]);
    expect(clicks.map(({ status }) => status)).to.deep.equal([303, 303]);
    const log = await on.service.activity.of(receiver.accountId, { limit: 20 });
    expect(log.filter(({ action }) => action === 'client_transferred')).to.have.length(1);
  });

  it('an offer stays open, but cannot be accepted, while the new owner has the maximum number of clients', async () => {
    await offerTo(receiver.email);
    for (const name of ['One', 'Two']) await to.createClient(name);
    const refused = await to.send(await offerPath());
    expect(refused.status).to.equal(422);
    expect(textOf(refused.html)).to.include('limit of 2');
    expect(await owner()).to.equal(giver.accountId);
    expect((await to.get(await offerPath())).status).to.equal(200);
  });

  it("the owner of a client does not change if the new owner's session ends during the acceptance", async () => {
    await offerTo(receiver.email);
    const path = await offerPath();
    const { clients, accounts } = on.service;
    const original = clients.acceptOffer;
    Object.assign(clients, {
      acceptOffer: async (...args: Parameters<typeof original>) => {
        await accounts.endSessions(receiver.accountId);
        return original(...args);
      },
    });
    const answer = await to
      .send(path)
      .finally(() => Object.assign(clients, { acceptOffer: original }));
    expect(answer.location?.pathname).to.equal('/login');
    expect(await owner()).to.equal(giver.accountId);
  });

  it('a change of the former owner that is still running after the handover changes nothing', async () => {
    const { clients } = on.service;
    const original = { ...clients };
    const links = { homepage_url: 'https://thief.example/', support_url: '', privacy_url: '' };
    const uri = 'https://thief.example/callback';
    for (const [method, path, fields] of [
      ['edit', 'settings', { name: 'Stock Sync', redirect_uris: [client.redirectUri, uri] }],
      ['edit', 'links', links],
      ['addRedirectUri', 'redirect-uris', { redirect_uri: uri }],
      ['addSecret', 'rotate-secret', {}],
      ['suspend', 'delete', { confirm_name: 'Stock Sync' }],
      ['offer', 'handover', { new_owner_email: 'no-one@example.test' }],
    ] as const) {
      await clients.transfer(client.id, giver.accountId);
      Object.assign(clients, {
        [method]: async (...args: unknown[]) => {
          await clients.transfer(client.id, receiver.accountId);
          return Reflect.apply(original[method], clients, args);
        },
      });
      const before = await on.service.database.query('SELECT * FROM client_secrets');
      const answer = await from
        .send(`${LIST}/${client.id}/${path}`, fields)
        .finally(() => Object.assign(clients, { [method]: original[method] }));
      expect(answer.status, path).to.equal(method === 'offer' ? 422 : 404);
      const after = await clients.findByOwner(receiver.accountId, client.id);
      expect(after, path).to.deep.include({ isSuspended: false, links: {} });
      expect(after?.redirectUris, path).to.deep.equal([client.redirectUri]);
      expect(await on.service.database.query('SELECT * FROM client_secrets')).to.deep.equal(before);
      expect(await clients.findOfferOf(client.id), path).to.equal(undefined);
    }
  });

  it('a user can offer clients at most twenty times an hour', async () => {
    for (let round = 0; round < 20; round += 1) {
      expect((await offerTo(`no-one${round}@example.test`)).status).to.equal(303);
      await from.send(`${page}/withdraw`);
    }
    const over = await offerTo('no-one@example.test');
    expect(over.status).to.equal(429);
    expect(over.html).to.include('value="no-one@example.test"');
  });

  it('only confidential clients can be handed over; for others there is no link, and requests are refused', async () => {
    expect((await from.get(`${LIST}/${client.id}/settings`)).html).to.include(page);
    const draft = { kind: 'public', name: 'Map', redirectUris: ['https://a.example/'] } as const;
    const { client: map } = await on.service.clients.add({
      ...{ ...draft, isNative: false, ownerAccountId: giver.accountId },
    });
    expect((await from.get(`${LIST}/${map.id}/settings`)).html).to.not.include('/handover');
    const refused = await from.send(`${LIST}/${map.id}/handover`, {
      new_owner_email: receiver.email,
    });
    expect(refused.status).to.equal(422);
    expect(textOf(refused.html)).to.include('Ask the operator of this service.');
  });
});

describe('taking over an OAuth client without a password', () => {
  const on = startWithUpstream({ passwords: false });

  it('a user who confirms at a provider that it is them comes back to the offer, which says so', async () => {
    const user = on.traveller();
    await on.signIn(GRACE, user);
    const { person, other } = on.seeded;
    const { clients } = on.service;
    const client = { id: on.seeded.clients.confidential.id, ownerAccountId: other.accountId };
    await clients.transfer(client.id, client.ownerAccountId);
    const to = { email: person.email, accountId: person.accountId };
    const offer = await clients.offer(client, to, async () => {});
    const path = `${LIST}/offers/${offer?.id}`;
    on.clock.advance(601);
    const asked = await user.submit(await user.get(path), {});
    const page = await user.travel(await user.submit(asked, WITH_PLATFORM));
    expect(page.url.pathname).to.equal(path);
    expect(textOf(page.html)).to.include('You have confirmed that it is you.');
  });
});
