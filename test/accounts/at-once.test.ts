/** Concurrent changes: the database makes them one after the other. */
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access/access.ts';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createApiKeys } from '../../src/accounts/api-keys/api-keys.ts';
import { seedDemo } from '../../src/accounts/demo.ts';
import { createIdentities } from '../../src/accounts/identities/identities.ts';
import { createPasskeys } from '../../src/accounts/passkeys/passkeys.ts';
import { createPasswordChanges } from '../../src/accounts/password-links/password-changes.ts';
import { createPasswordLinks } from '../../src/accounts/password-links/password-links.ts';
import { createOrganizationEndings } from '../../src/authorizations/organization-endings.ts';
import { systemClock } from '../../src/base/clock.ts';
import type { Accounts } from '../../src/changes/accounts.ts';
import { createChanges } from '../../src/changes/engine.ts';
import { createOrganizations } from '../../src/changes/organizations.ts';
import { createTestOrganizations } from '../../src/changes/test-organizations.ts';
import { type ClientRegistry, createClientRegistry } from '../../src/clients/client-registry.ts';
import { createAccountTurns } from '../../src/storage/account-turns.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import type { Queries } from '../../src/storage/queries.ts';
import { partner } from '../clients/drafts.ts';
import { refusalOf } from '../clients/refusals.ts';
import { createAccounts, createMemberships } from '../support/accounts.ts';
import { onPostgres } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

interface Locked<Result> {
  readonly waiting?: number;
  readonly next?: () => Promise<Result>[];
  readonly last?: (tx: Queries) => Promise<unknown>;
}

const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

/** Starts the work `count` times in parallel. */
const times = <Result>(count: number, work: (index: number) => Result): Result[] =>
  Array.from({ length: count }, (_, index) => work(index));

onPostgres('concurrent changes', (open) => {
  let database: OpenDatabase;
  let parts: Parameters<typeof createClientRegistry>[0];
  let accounts: Accounts;
  let clients: ClientRegistry;

  before(async () => {
    database = await open();
    parts = { database, changes: silentChangeFeed, clock: systemClock };
    accounts = createAccounts(parts);
    clients = createClientRegistry(parts);
  });
  beforeEach(() => database.query('TRUNCATE accounts, clients, organizations CASCADE'));

  const expectWaiting = async (count: number): Promise<void> => {
    const waiting = await database.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    expect(waiting).to.have.length(count);
  };
  /**
   * Begins work in a transaction with a lock, which ends only when all of the work waits, or as much as `waiting` says.
   *
   * @param lock returns what the work waits for
   * @param next begins more work, once the first work waits
   * @param last is what the transaction does before it ends
   */
  async function whileLocked<Result>(
    lock: (tx: Queries) => Promise<unknown>,
    begin: () => Promise<Result>[],
    { waiting, next = () => [], last }: Locked<Result> = {},
  ): Promise<Result[]> {
    const { works } = await database.transaction(async (tx) => {
      await lock(tx);
      const works = begin();
      await eventually(() => expectWaiting(waiting ?? works.length));
      works.push(...next());
      await eventually(() => expectWaiting(waiting ?? works.length));
      await last?.(tx);
      return { works };
    });
    return Promise.all(works);
  }
  /** The work writes to the table: code that reads before it writes has done its reading when it waits. */
  const collide = <Result>(table: string, begin: () => Promise<Result>[]): Promise<Result[]> =>
    whileLocked((tx) => tx.query(`LOCK TABLE ${table} IN SHARE MODE`), begin);
  /** As if an import were in progress. */
  const lockImports = (tx: Queries) => tx.query("SELECT pg_advisory_xact_lock(hashtext('gatehouse import'))");

  /** The same database from another node, which has a separate queue for changes of an account. */
  const otherNode = () => ({ ...parts, database: { ...database, inTurn: createAccountTurns() } });

  /** Ends a membership as an owner or admin, on another node. */
  const endMembership = (organizationId: string, by: string, member: string): Promise<boolean> =>
    createOrganizationEndings({
      ...parts,
      engine: createChanges(parts),
      access: createAccess(parts),
      activity: createActivity(parts),
    }).endMembership(
      { organization: { id: organizationId, name: 'Nord' }, admin: { account: { id: by, name: 'Owner' }, origin } },
      { id: member, name: 'Member' },
    );
  const addAda = () => accounts.add({ email: 'ada@demo.test', name: 'Ada' });

  it('concurrent requests add only one account for an email address, whether in upper or lower case', async () => {
    const emails = ['Grace@navy.example', 'grace@navy.example', 'GRACE@NAVY.EXAMPLE '];
    const add = (email: string) => createAccounts(otherNode()).add({ email, name: 'Grace' });
    const outcomes = await collide('accounts', () => emails.map((email) => refusalOf(add(email))));
    expect(outcomes.sort()).to.deep.equal(['accepted', 'email_taken', 'email_taken']);
  });

  it('an address that a node of another version stores at the same time is refused as taken', async () => {
    const { id } = await addAda();
    const works = [
      () => createAccounts(otherNode()).add({ email: 'eve@demo.test', name: 'Eve' }),
      () => createAccounts(otherNode()).changeEmail(id, 'eve@demo.test'),
    ];
    for (const [at, work] of works.entries()) {
      const taken = (tx: Queries) =>
        tx.query(
          `INSERT INTO accounts (id, email, email_key, name, created_at)
            VALUES ($1, 'eve@demo.test', 'eve@demo.test', 'Eve', now())`,
          [`acc_of_another_node_${at}`],
        );
      expect(await whileLocked(taken, () => [refusalOf(work())])).to.deep.equal(['email_taken']);
      await database.query('DELETE FROM accounts WHERE id <> $1', [id]);
    }
  });

  it('a password change, which removes no sign-in method, does not wait for a running import', async () => {
    const account = await addAda();
    const activity = createActivity(parts);
    const links = createPasswordLinks({ ...parts, accounts, activity });
    const { token } = await links.make(account, 'invitation', origin);
    await database.transaction(async (tx) => {
      await lockImports(tx);
      const changes = createPasswordChanges({ accounts, links, activity });
      expect(await changes.useLink(token, { origin, password: 'seven green forklifts' })).to.be.ok;
    });
  });

  it('at most three transactions of one node wait for an import, and only one if the connection pool is small', async () => {
    for (const [connections, atOnce] of [
      [10, 3],
      [5, 1],
    ] as const) {
      let begun = 0;
      const transaction: typeof database.transaction = (work) => {
        begun += 1;
        return database.transaction(work);
      };
      const counting = { ...database, transaction };
      const engine = createChanges({ database: counting, connections, timeoutFactor: TIMEOUT_FACTOR });
      const begin = () => times(4, () => engine.transaction(async () => 'made'));
      const last = async () => expect(begun).to.equal(atOnce);
      const made = await whileLocked(lockImports, begin, { waiting: atOnce, last });
      expect(made).to.deep.equal(Array(4).fill('made'));
    }
  });

  it('an identity that its user unlinks at one node is not linked again by an older import line at another node', async () => {
    const issuer = 'https://id.example.test';
    const identity = { issuer, subject: 'ada' };
    const { id } = await addAda();
    await createIdentities(parts).link(id, identity, database);
    const [row] = await database.query<{ asOf: Date }>('SELECT clock_timestamp() AS "asOf"');
    const engine = createChanges(parts);
    const line = { type: 'account', id, asOf: row?.asOf, identity, set: { name: 'Ada' } } as const;
    const apply = () => engine.transaction((tx, now) => engine.make(tx, now, [line]));
    const unlink = () => createAccounts(otherNode()).unlink(id, issuer, async () => {});
    const lock = (tx: Queries) => tx.query('LOCK TABLE account_identities IN SHARE MODE');
    await whileLocked<unknown>(lock, () => [unlink()], { next: () => [apply()] });
    expect(await database.query('SELECT FROM account_identities')).to.have.length(0);
  });

  it('two processes that start at the same time add the demo data once', async () => {
    const seeded = await collide('accounts', () => times(2, () => seedDemo(parts)));
    expect(seeded.sort()).to.deep.equal([false, true]);
    expect(await database.query('SELECT id FROM warehouses')).to.have.length(2);
  });

  it('parallel requests give an account no more API keys than the limit', async () => {
    const { id: accountId } = await addAda();
    const activity = createActivity(parts);
    const apiKeys = createApiKeys({ ...parts, activity });
    const key = { accountId, name: 'Export', expiresInDays: 30, maxOfUser: 3 };
    const outcomes = await collide('api_keys', () =>
      times(6, () => refusalOf(createApiKeys({ ...otherNode(), activity }).add(key, origin))),
    );
    expect(outcomes.sort()).to.deep.equal([...Array(3).fill('accepted'), ...Array(3).fill('too_many_api_keys')]);
    expect(await apiKeys.listOf(accountId)).to.have.length(3);
  });

  it('parallel requests cannot exceed the limit of clients per owner, and the operator has no such limit', async () => {
    const [{ id: ownerAccountId }, other] = [
      await addAda(),
      await accounts.add({ email: 'eve@demo.test', name: 'Eve' }),
    ];
    const draft = { ...partner, ownerAccountId, maxOfOwner: 3 };
    await clients.add(draft);
    const outcomes = await collide('clients', () =>
      times(5, () => refusalOf(createClientRegistry(otherNode()).add(draft))),
    );
    expect(outcomes.sort()).to.deep.equal([...Array(2).fill('accepted'), ...Array(3).fill('clients_limit')]);
    expect(await clients.listByOwner(ownerAccountId)).to.have.length(3);
    await clients.add({ ...draft, ownerAccountId: other.id });
    await clients.add({ ...partner, ownerAccountId });
  });

  it('parallel requests cannot give a client a third secret', async () => {
    const { client } = await clients.add(partner);
    const outcomes = await collide('client_secrets', () => times(5, () => refusalOf(clients.addSecret(client.id))));
    expect(outcomes.sort()).to.deep.equal(['accepted', ...Array(4).fill('secrets_full')]);
    expect((await clients.find(client.id))?.secrets).to.have.length(2);
  });

  it('parallel removals of both secrets leave a client one secret', async () => {
    const { client } = await clients.add(partner);
    const { secrets } = (await clients.addSecret(client.id)).client;
    const outcomes = await Promise.all(secrets.map(({ id }) => refusalOf(clients.removeSecret(client.id, id))));
    expect(outcomes.sort()).to.deep.equal(['accepted', 'secret_last']);
    expect((await clients.find(client.id))?.secrets).to.have.length(1);
  });

  it('several password links of an account, used in parallel, set only one password', async () => {
    const account = await addAda();
    const activity = createActivity(parts);
    const links = createPasswordLinks({ ...parts, accounts, activity });
    const [first, second] = await Promise.all(times(2, () => links.make(account, 'invitation', origin)));
    const set = await collide('accounts', () =>
      [first, first, second].map((link, index) =>
        createPasswordChanges({ accounts: createAccounts(otherNode()), links, activity }).useLink(link?.token ?? '', {
          origin,
          password: `seven green forklifts ${index}`,
        }),
      ),
    );
    expect(set.filter(Boolean)).to.have.length(1);
  });

  it('parallel requests give an account no more than 20 passkeys', async () => {
    const { id: accountId } = await addAda();
    const activity = createActivity(parts);
    let made = 0;
    const add = () => {
      made += 1;
      return createPasskeys({ ...otherNode(), activity }).add({
        accountId,
        name: 'Key',
        origin,
        credentialId: `credential ${made}`,
        publicKey: 'a2V5',
        counter: 0,
        transports: [],
        maySync: false,
        isSynced: false,
        challenge: { text: `${made}`, seconds: 60 },
        requireMayAdd: async () => {},
      });
    };
    for (const _ of times(19, () => undefined)) await add();
    const outcomes = await collide('passkeys', () => times(3, add));
    expect(outcomes.filter((outcome) => outcome === 'full')).to.have.length(2);
  });

  it('an organization keeps one owner if all its owners remove themselves in parallel', async () => {
    const { id: organizationId } = await createOrganizations(parts).add({ name: 'Nord' });
    const memberships = createMemberships(parts);
    const people = await Promise.all(times(3, (index) => accounts.add({ email: `${index}@demo.test`, name: 'Owner' })));
    for (const { id: accountId } of people) {
      await memberships.setRole({ accountId }, organizationId, 'owner');
    }
    // A node lets only a few changes of access wait in the database, so each owner uses another node.
    const endOnNode = (id: string) => endMembership(organizationId, id, id);
    const outcomes = await collide('organization_memberships', () => people.map(({ id }) => refusalOf(endOnNode(id))));
    expect(outcomes.sort()).to.deep.equal(['accepted', 'accepted', 'last_owner']);
  });

  it('a change of access for a user whom another process deletes meanwhile has no effect', async () => {
    const { id } = await createOrganizations(parts).add({ name: 'Nord' });
    const [owner, member] = await Promise.all(
      times(2, (index) => accounts.add({ email: `${index}@demo.test`, name: 'Member' })),
    );
    const memberships = createMemberships(parts);
    for (const one of [owner, member]) await memberships.setRole({ accountId: one?.id ?? '' }, id, 'owner');
    const begin = () => [
      endMembership(id, owner?.id ?? '', member?.id ?? ''),
      createMemberships(parts).remove({ accountId: member?.id ?? '' }, id),
    ];
    const last = (tx: Queries) => tx.query('DELETE FROM accounts WHERE id = $1', [member?.id]);
    expect(await whileLocked<unknown>(lockImports, begin, { last })).to.deep.equal([false, undefined]);
  });

  it('an edit of a client does not delay other writes about that client', async () => {
    const { client } = await clients.add(partner);
    await clients.edit(client.id, { redirectUris: ['https://app.example/another'] }, async () => {
      await database.query(
        `INSERT INTO client_requests (client_id, at, step, error, cause, request_id, share)
          VALUES ($1, now(), 'token', 'invalid_client', 'wrong', 'r1', 'stranger')`,
        [client.id],
      );
    });
    expect(await database.query('SELECT FROM client_requests WHERE client_id = $1', [client.id])).to.have.length(1);
  });

  it('a client transfer is never dated earlier than a secret of the client, even if a clock was ahead', async () => {
    const { client } = await clients.add({ ...partner, ownerAccountId: (await addAda()).id });
    const later = new Date(Date.now() + 60_000);
    const addSecret = async (tx: Queries) => {
      await tx.query('SELECT FROM clients WHERE id = $1 FOR NO KEY UPDATE', [client.id]);
      await tx.query(
        `INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
          VALUES ('later', $1, 'hash', 'abcd', $2)`,
        [client.id, later],
      );
    };
    const [transferred] = await whileLocked(addSecret, () => [clients.transfer(client.id, undefined)]);
    expect(transferred?.ownedSince).to.deep.equal(later);
  });

  it('joining or changing an organization waits while it is being deleted, and then has no effect', async () => {
    const { id: accountId } = await addAda();
    const organizations = createOrganizations(parts);
    const { id } = await organizations.add({ name: 'Nord' });
    await database.query(`CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`);
    await database.query(`CREATE TRIGGER wait_here AFTER DELETE ON organizations
      FOR EACH ROW EXECUTE FUNCTION wait_here()`);
    const [engine, access] = [createChanges(parts), createAccess(parts)];
    const tests = createTestOrganizations({ ...parts, engine, access, ids: [id] });
    const locked = whileLocked(
      (tx) => tx.query('SELECT pg_advisory_xact_lock(1)'),
      () => [refusalOf(organizations.remove('organization', id))],
      {
        next: () => [
          refusalOf(tests.change('join', [accountId, id], async () => {})),
          refusalOf(createOrganizations(parts).edit('organization', id, { name: 'Sør' })),
        ],
      },
    );
    const outcomes = await locked.finally(() => database.query('DROP FUNCTION wait_here CASCADE'));
    expect(outcomes).to.deep.equal(['accepted', 'accepted', 'organization_unknown']);
    expect(await database.query('SELECT FROM organization_memberships')).to.deep.equal([]);
  });
});
