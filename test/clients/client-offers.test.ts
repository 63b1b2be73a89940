/** Offers to hand a client over, and changes of the client at the same moment. */
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createOrganizations } from '../../src/accounts/organizations/organizations.ts';
import { createTakenNames } from '../../src/accounts/organizations/taken-names.ts';
import { createConnections } from '../../src/authorizations/connections.ts';
import { createClientRemoval } from '../../src/authorizations/endings.ts';
import type { Client } from '../../src/clients/client.ts';
import type { ClientOffer } from '../../src/clients/client-offers.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { formerSecretsOf } from '../../src/clients/client-row.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { forEachDatabase } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { partner } from './drafts.ts';
import { refusalOf } from './refusals.ts';

const DAY_MS = 86_400_000;
const NO_ROOM = 1;
const nothing = async (): Promise<void> => {};

forEachDatabase('offers of a client', (open) => {
  let database: OpenDatabase;
  let parts: { database: OpenDatabase; changes: typeof silentChangeFeed; clock: () => number };
  let now = Date.parse('2031-02-03T04:05:06.789Z');
  let people = 0;

  before(async () => {
    database = await open();
    parts = { database, changes: silentChangeFeed, clock: () => now };
  });
  beforeEach(() => {
    now += 60_000;
  });

  const registry = () => {
    const access = createAccess(parts);
    const takenNames = createTakenNames('https://auth.example', () => 'Gatehouse');
    const checks = {
      isNameTaken: takenNames.isTaken,
      followClientBlocks: access.clientBlocks.follow,
      forgetClientBlocks: access.clientBlocks.forget,
    };
    return createClientRegistry({ ...parts, checks });
  };
  const accounts = () => createAccountRegistry(parts);

  async function addPerson(): Promise<string> {
    people += 1;
    const person = { email: `person${people}@partner.example`, name: `Person ${people}` };
    return (await accounts().add(person)).id;
  }

  interface Offered {
    readonly client: Client;
    readonly from: string;
    readonly to: string;
    readonly offer: ClientOffer;
  }

  const offerTo = async (client: Client, from: string, to: string | undefined, email = 'to@x.y') =>
    registry().offer({ id: client.id, ownerAccountId: from }, { email, accountId: to }, nothing);

  /** Adds a client of one user and offers it to another user. */
  async function offered(draft: { readonly name?: string } = {}): Promise<Offered> {
    const [from, to] = [await addPerson(), await addPerson()];
    const { client } = await registry().add({ ...partner, ...draft, ownerAccountId: from });
    const offer = await offerTo(client, from, to);
    if (!offer) throw new Error('not offered');
    return { client, from, to, offer };
  }

  const accept = ({ to, offer }: Pick<Offered, 'to' | 'offer'>, max = 10): Promise<unknown> =>
    registry().acceptOffer(to, offer, max, nothing);
  const ownerOf = async ({ client }: Pick<Offered, 'client'>): Promise<string | undefined> =>
    (await registry().find(client.id))?.ownerAccountId;

  /** Begins the work while a transaction that ran this statement has not committed yet. */
  async function whileRunning<Result>(
    [statement, ...values]: readonly [string, ...unknown[]],
    begin: () => Promise<Result>,
  ): Promise<Result> {
    const { work } = await database.transaction(async (tx) => {
      await tx.query(statement, values);
      const work = begin();
      // Do not wait on the embedded database, which runs one transaction after the other.
      if (!database.embedded) await eventually(expectOneWaiting);
      return { work };
    });
    return work;
  }

  async function expectOneWaiting(): Promise<void> {
    const waiting = await database.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    expect(waiting).to.have.length.above(0);
  }

  it('accepting an offer changes only the owner of the client, and stores the time and the former owner', async () => {
    const one = await offered();
    await registry().verify(one.client.id, true);
    now += 1_000;
    await accept(one);
    expect(await registry().listByOwner(one.from)).to.deep.equal([]);
    const [client] = await registry().listByOwner(one.to);
    const { version: _, ...before } = one.client;
    expect(client).to.deep.include({
      ...before,
      ownerAccountId: one.to,
      ownerName: (await accounts().find(one.to))?.name,
      isVerified: false,
      ownedSince: new Date(now),
      handedOverBy: (await accounts().find(one.from))?.name,
    });
    expect(client && formerSecretsOf(client)).to.deep.equal(one.client.secrets);
    now += 1_000;
    await registry().addSecret(one.client.id);
    const rotated = await registry().findByOwner(one.to, one.client.id);
    expect(rotated?.secrets).to.have.length(2);
    expect(rotated && formerSecretsOf(rotated)).to.deep.equal(one.client.secrets);
    expect(await registry().listOffersTo(one.to)).to.deep.equal([]);
  });

  it('the former owner knows the secrets that a node with a clock ahead created before the handover', async () => {
    const one = await offered();
    now += 120_000;
    await registry().addSecret(one.client.id);
    now -= 60_000;
    await accept(one);
    const [client] = await registry().listByOwner(one.to);
    expect(client && formerSecretsOf(client)).to.have.length(2);
    now += 120_000;
  });

  it('a transfer by the operator ends the offer and stores a time but no former owner, even on an older node', async () => {
    const one = await offered();
    await accept(one);
    const heir = await addPerson();
    const again = await offerTo(one.client, one.to, heir);
    const older = 'UPDATE clients SET owner_account_id = $2, updated_at = $3 WHERE id = $1';
    await database.query(older, [one.client.id, one.from, new Date(now)]);
    const [client] = await registry().listByOwner(one.from);
    expect(client).to.deep.include({ ownedSince: new Date(now) });
    expect(client).to.not.have.property('handedOverBy');
    expect(await registry().findOfferTo(heir, again?.id ?? '')).to.equal(undefined);
  });

  it('the offer of a client is found only by its receiver, and for at most seven days', async () => {
    const one = await offered();
    expect(await registry().listOffersTo(one.to)).to.deep.equal([one.offer]);
    expect(one.offer.expiresAt.getTime() - now).to.equal(7 * DAY_MS);
    for (const [who, id] of [
      [one.from, one.offer.id],
      [one.to, 'co_\0'],
      [one.to, `co_${'0'.repeat(22)}`],
    ] as const) {
      expect(await registry().findOfferTo(who, id)).to.equal(undefined);
    }
    const stranger = await addPerson();
    expect(await refusalOf(accept({ ...one, to: stranger }))).to.equal('offer_over');
    now += 7 * DAY_MS - 1;
    expect(await registry().findOfferTo(one.to, one.offer.id)).to.deep.equal(one.offer);
    now += 1;
    expect(await registry().findOfferTo(one.to, one.offer.id)).to.equal(undefined);
    expect(await refusalOf(accept(one))).to.equal('offer_over');
    // An expired offer does not block a new one; the cleaning job deletes it.
    const next = await offerTo(one.client, one.from, one.to);
    expect(next?.id).to.not.equal(one.offer.id);
    now += 7 * DAY_MS;
    while ((await registry().removeExpiredOffers(10)) > 0);
    expect(await database.query('SELECT FROM client_offers')).to.deep.equal([]);
  });

  it('a client can be offered to an address without an account, as to any other address', async () => {
    const from = await addPerson();
    const { client } = await registry().add({ ...partner, ownerAccountId: from });
    const offer = await offerTo(client, from, undefined, 'no-one@x.y');
    expect(offer).to.include({ email: 'no-one@x.y', toAccountId: null });
    expect((await registry().findOfferOf(client.id))?.id).to.equal(offer?.id);
    const gone = await offered();
    await accounts().remove(gone.to);
    const { toAccountId: _, ...left } = { ...gone.offer };
    expect(await registry().findOfferOf(gone.client.id)).to.deep.include(left);
  });

  it('a client has one open offer: repeating it changes nothing, an offer to another address is refused', async () => {
    const one = await offered();
    const stranger = await addPerson();
    let recorded = 0;
    const own = { id: one.client.id, ownerAccountId: one.from };
    const again = (email: string) =>
      registry().offer(own, { email, accountId: stranger }, async () => {
        recorded += 1;
      });
    expect(await again(one.offer.email)).to.equal(undefined);
    expect(await refusalOf(again('other@x.y'))).to.equal('client_offered');
    expect([recorded, await registry().findOfferOf(one.client.id)]).to.deep.equal([0, one.offer]);
    await registry().endOffer(one.from, one.offer, nothing);
    const both = await Promise.all([again('a@x.y'), again('b@x.y')].map(refusalOf));
    expect(both.sort()).to.deep.equal(['accepted', 'client_offered']);
    expect(recorded).to.equal(1);
  });

  it('an owner can offer only their own confidential clients that are not suspended', async () => {
    const [from, other] = [await addPerson(), await addPerson()];
    const machine = { ...partner, kind: 'machine', redirectUris: [] } as const;
    const kinds = [machine, { ...partner, kind: 'public' } as const];
    for (const draft of kinds) {
      const { client } = await registry().add({ ...draft, ownerAccountId: from });
      expect(await refusalOf(offerTo(client, from, other))).to.equal('client_not_offered');
    }
    const { client } = await registry().add({ ...partner, ownerAccountId: other });
    expect(await refusalOf(offerTo(client, from, other))).to.equal('client_not_offered');
    await registry().suspend(client.id);
    expect(await refusalOf(offerTo(client, other, from))).to.equal('client_not_offered');
  });

  it('an answer to an offer and its log entry are stored together or not at all', async () => {
    const one = await offered();
    const fail = async () => {
      throw new Error('the log is full');
    };
    for (const answer of [
      () => registry().acceptOffer(one.to, one.offer, 10, fail),
      () => registry().endOffer(one.from, one.offer, fail),
    ]) {
      expect(await refusalOf(answer())).to.match(/the log is full/);
    }
    expect(await ownerOf(one)).to.equal(one.from);
    expect(await registry().findOfferTo(one.to, one.offer.id)).to.deep.equal(one.offer);
  });

  it('suspending the owner or the client, ending every session of the owner, or changing what the receiver saw ends the offer permanently', async () => {
    const redirectUris = ['https://app.example/callback', 'https://thief.example/callback'];
    for (const change of [
      ({ from }: Offered) => accounts().suspend(from),
      ({ client }: Offered) => registry().suspend(client.id),
      // As a new password does, and a recovery by a link or a provider without passwords.
      ({ from }: Offered) => accounts().endSessions(from),
      ({ client }: Offered) => registry().edit(client.id, { name: 'Another Name' }),
      ({ client }: Offered) => registry().edit(client.id, { redirectUris }),
      ({ client }: Offered) => registry().addRedirectUri(client.id, 'https://thief.example/cb'),
    ]) {
      const one = await offered();
      await change(one);
      await accounts().resume(one.from);
      await registry().resume(one.client.id);
      expect(await refusalOf(accept(one))).to.equal('offer_over');
      expect(await ownerOf(one)).to.equal(one.from);
    }
  });

  it('an offer stays open if the same password is stored with another hash, and if the client is used, marked or saved without a change', async () => {
    const one = await offered();
    const { client, from } = one;
    await database.query("UPDATE accounts SET password_hash = 'rehashed' WHERE id = $1", [from]);
    await registry().verify(client.id, true);
    await registry().addSecret(client.id);
    await registry().edit(client.id, { name: client.name, redirectUris: client.redirectUris });
    expect(await refusalOf(accept(one))).to.equal('accepted');
  });

  it('a receiver at the limit of clients cannot accept, and the offer stays open', async () => {
    const one = await offered();
    await registry().add({ ...partner, ownerAccountId: one.to });
    expect(await refusalOf(accept(one, NO_ROOM))).to.equal('clients_limit');
    expect(await registry().findOfferTo(one.to, one.offer.id)).to.deep.equal(one.offer);
    expect(await refusalOf(accept(one, NO_ROOM + 1))).to.equal('accepted');
  });

  it('a receiver who may not use the name of the client cannot accept the offer', async () => {
    const one = await offered({ name: 'Storm Logistics' });
    const { id } = await createOrganizations(parts).add({ name: 'Storm Logistics' });
    expect(await refusalOf(accept(one))).to.equal('client_invalid');
    await database.query(
      `INSERT INTO organization_memberships (organization_id, account_id, role, created_at)
        VALUES ($1, $2, 'admin', now())`,
      [id, one.to],
    );
    expect(await refusalOf(accept(one))).to.equal('accepted');
  });

  it('a verified client can be handed over, because its name is not compared with itself', async () => {
    const one = await offered();
    await registry().verify(one.client.id, true);
    expect(await refusalOf(accept(one))).to.equal('accepted');
  });

  it('a client that was handed over is blocked if another client of the new owner on the same redirect host is blocked', async () => {
    const { id } = await createOrganizations(parts).add({ name: `Blocker ${people}` });
    const one = await offered();
    const isBlocked = async () =>
      (await createAccess(parts).clientBlocks.of(one.client.id)).blocked.has(id);
    const redirectUris = ['https://app.example/other'];
    const theirs = await registry().add({ ...partner, redirectUris, ownerAccountId: one.to });
    await database.query('INSERT INTO barred_clients VALUES ($1, $2, now())', [
      id,
      theirs.client.id,
    ]);
    expect(await isBlocked()).to.equal(false);
    await accept(one);
    expect(await isBlocked()).to.equal(true);
    const back = await offerTo(one.client, one.to, one.from);
    await registry().acceptOffer(one.from, back as ClientOffer, 10, nothing);
    expect(await isBlocked()).to.equal(true);
  });

  describe('an offer is not accepted', () => {
    const statements: Readonly<Record<string, (one: Offered) => readonly [string, ...unknown[]]>> =
      {
        'while it is withdrawn or declined': ({ offer }) => [
          'DELETE FROM client_offers WHERE id = $1',
          offer.id,
        ],
        'while the client is deleted': ({ client }) => [
          'DELETE FROM clients WHERE id = $1',
          client.id,
        ],
        'while the client is suspended': ({ client }) => [
          'UPDATE clients SET suspended_at = now() WHERE id = $1',
          client.id,
        ],
        'while the operator transfers the client': ({ client }) => [
          'UPDATE clients SET owner_account_id = NULL WHERE id = $1',
          client.id,
        ],
        'while the owner is suspended': ({ from }) => [
          'UPDATE accounts SET suspended_at = now() WHERE id = $1',
          from,
        ],
        'while the receiver is deleted': ({ to }) => ['DELETE FROM accounts WHERE id = $1', to],
      };

    for (const [when, statement] of Object.entries(statements)) {
      it(`an offer is not accepted ${when}`, async () => {
        const one = await offered();
        const answer = await whileRunning(statement(one), () => refusalOf(accept(one)));
        expect(answer).to.equal('offer_over');
        expect(await ownerOf(one)).to.not.equal(one.to);
      });
    }

    it('an offer is not accepted while the receiver is suspended', async () => {
      const one = await offered();
      const activity = createActivity(parts);
      const session = { uid: 'uid', generation: 1 };
      const origin = { address: '::1', browser: '', session };
      const entry = { action: 'client_transferred', actor: 'person', accountId: one.to } as const;
      const suspend = ['UPDATE accounts SET suspended_at = now() WHERE id = $1', one.to] as const;
      const answer = await whileRunning(suspend, () =>
        refusalOf(
          registry().acceptOffer(one.to, one.offer, 10, (tx) =>
            activity.record({ ...entry, origin }, tx),
          ),
        ),
      );
      expect(answer).to.include('failed');
      expect(await ownerOf(one)).to.equal(one.from);
    });
  });

  describe('parallel changes of one offer', () => {
    it('an offer that is accepted three times in parallel changes the owner once', async () => {
      for (let round = 0; round < 4; round += 1) {
        const one = await offered();
        const answers = await Promise.all([accept(one), accept(one), accept(one)].map(refusalOf));
        expect(answers.sort()).to.deep.equal(['accepted', 'offer_over', 'offer_over']);
      }
    });

    it('if an offer is accepted and withdrawn in parallel, only one of the two succeeds', async () => {
      for (let round = 0; round < 8; round += 1) {
        const one = await offered();
        const works = [() => accept(one), () => registry().endOffer(one.from, one.offer, nothing)];
        if (round % 2 === 1) works.reverse();
        const done = await Promise.allSettled(works.map((work) => work()));
        const isWithdrawn = done.some((it) => it.status === 'fulfilled' && it.value === true);
        expect(await ownerOf(one)).to.equal(isWithdrawn ? one.from : one.to);
      }
    });

    it('the client gets one new owner if an offer is accepted while it is being replaced by another', async () => {
      for (let round = 0; round < 6; round += 1) {
        const one = await offered();
        const second = await addPerson();
        const moveOn = async () => {
          await registry().endOffer(one.from, one.offer, nothing);
          const next = await offerTo(one.client, one.from, second, 'second@x.y');
          if (next) await accept({ to: second, offer: next });
        };
        const answers = await Promise.all([accept(one), moveOn()].map(refusalOf));
        expect(answers.filter((answer) => answer === 'accepted')).to.have.length(1);
        expect(await ownerOf(one)).to.equal(answers[0] === 'accepted' ? one.to : second);
      }
    });

    it('with room for one more client, only one succeeds of two acceptances and a registration that run in parallel', async () => {
      for (let round = 0; round < 4; round += 1) {
        const one = await offered();
        const from = await addPerson();
        const { client } = await registry().add({ ...partner, ownerAccountId: from });
        const also = (await offerTo(client, from, one.to)) as ClientOffer;
        const draft = { ...partner, ownerAccountId: one.to, maxOfOwner: 1 };
        const answers = await Promise.all(
          [accept(one, 1), accept({ to: one.to, offer: also }, 1), registry().add(draft)].map(
            refusalOf,
          ),
        );
        expect(answers.sort()).to.deep.equal(['accepted', 'clients_limit', 'clients_limit']);
        expect(await registry().listByOwner(one.to)).to.have.length(1);
      }
    });

    it('two users who hand clients over to each other at the same time do not block each other', async () => {
      for (let round = 0; round < 4; round += 1) {
        const one = await offered();
        const { client } = await registry().add({ ...partner, ownerAccountId: one.to });
        const back = (await offerTo(client, one.to, one.from)) as ClientOffer;
        const answers = [accept(one), accept({ to: one.from, offer: back })].map(refusalOf);
        expect(await Promise.all(answers)).to.deep.equal(['accepted', 'accepted']);
      }
    });

    it('accepting an offer and deleting its former owner in parallel do not block each other', async () => {
      for (let round = 0; round < 6; round += 1) {
        const one = await offered();
        const works = [() => accept(one), () => accounts().remove(one.from)];
        if (round % 2 === 1) works.reverse();
        const answers = await Promise.all(works.map((work) => refusalOf(work())));
        expect(answers).to.include('accepted');
        expect(answers.filter((answer) => !/^(accepted|account_owns_clients)$/.test(answer))).to.be
          .empty;
        expect(await ownerOf(one)).to.equal(one.to);
      }
    });

    it('a client that is deleted while its offer is accepted stays deleted', async () => {
      const removal = createClientRemoval({
        clients: registry(),
        connections: createConnections(parts),
        activity: createActivity(parts),
      });
      for (let round = 0; round < 6; round += 1) {
        const one = await offered();
        const [, removed] = await Promise.all([
          refusalOf(accept(one)),
          refusalOf(removal(one.client.id)),
        ]);
        expect(removed).to.equal('accepted');
        expect(await ownerOf(one)).to.equal(undefined);
      }
    });
  });
});
