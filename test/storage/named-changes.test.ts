/** The changes that the database announces: nodes drop only these entries from their caches. */
import { expect } from 'chai';
import { type ChangeFeed, listenForChanges } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { onPostgres } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

const SEED = `
  INSERT INTO accounts (id, email, email_key, name, created_at)
    VALUES ('acc_a', 'a', 'a', 'A', now()), ('acc_b', 'b', 'b', 'B', now());
  INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
    VALUES ('gate_ci_c', 'machine', 'C', '{}', false, now(), now()),
      ('gate_ci_d', 'machine', 'D', '{}', false, now(), now());
  INSERT INTO client_secrets (id, client_id, secret_hash, last_four, created_at)
    VALUES ('sec', 'gate_ci_c', 'hash', 'four', now());
  INSERT INTO api_keys (id, account_id, name, key_hash, last_four, created_at)
    VALUES ('key_k', 'acc_a', 'K', 'hash-of-k', 'four', now());
  INSERT INTO organizations (id, name, created_at) VALUES ('org', 'Org', now());
  INSERT INTO warehouses (id, organization_id, name, created_at)
    VALUES ('hall', 'org', 'Hall', now());
  INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
    VALUES ('acc_a', 'org', 'member', now()), ('acc_b', 'org', 'member', now());
  INSERT INTO organization_memberships (client_id, organization_id, role, created_at)
    VALUES ('gate_ci_d', 'org', 'member', now());
  INSERT INTO connections
    (account_id, client_id, connected_at, approved_at, consented_name, consented_hosts)
    VALUES ('acc_a', 'gate_ci_c', now(), now(), '', '{}');
  INSERT INTO barred_clients VALUES ('org', 'gate_ci_c', now())`;

const NEW_CLIENT = `INSERT INTO clients (id, kind, name, redirect_uris, native, created_at, updated_at)
  VALUES ('gate_ci_e', 'machine', '', '{}', false, now(), now())`;
const SAME_ROLE = `INSERT INTO organization_memberships (account_id, organization_id, role, created_at)
  VALUES ('acc_a', 'org', 'member', now())
  ON CONFLICT (account_id, organization_id) DO UPDATE SET role = excluded.role`;

/** Each statement with the changes that it announces. */
const CHANGES: readonly (readonly [statement: string, ...announced: string[]])[] = [
  ["UPDATE accounts SET suspended_at = now() WHERE id = 'acc_a'", 'accounts acc_a'],
  ["UPDATE accounts SET name = 'N' WHERE id = 'acc_a'", 'accounts acc_a'],
  ["UPDATE accounts SET name = name, email = email WHERE id = 'acc_a'"],
  ["UPDATE clients SET suspended_at = now() WHERE id = 'gate_ci_c'", 'clients gate_ci_c'],
  ["UPDATE clients SET generation = 7 WHERE id = 'gate_ci_c'", 'clients gate_ci_c'],
  ['UPDATE clients SET last_used_at = now()'],
  [NEW_CLIENT, 'clients gate_ci_e'],
  ["UPDATE client_secrets SET secret_hash = 'new'", 'clients gate_ci_c'],
  ['UPDATE client_secrets SET last_used_at = now()'],
  ['DELETE FROM client_secrets', 'clients gate_ci_c'],
  ['UPDATE api_keys SET expires_at = now()', 'api-keys hash-of-k', 'api-key-ids key_k'],
  ['UPDATE api_keys SET last_used_at = now()'],
  ["DELETE FROM accounts WHERE id = 'acc_a'", ...changesOfDeletedAccount()],
  ["DELETE FROM clients WHERE id = 'gate_ci_d'", 'clients gate_ci_d', 'access gate_ci_d'],
  ["UPDATE connections SET consented_name = 'N'", 'connections acc_a gate_ci_c'],
  ['UPDATE connections SET last_used_at = now()'],
  ['DELETE FROM connections', 'connections acc_a gate_ci_c'],
  [SAME_ROLE],
  [SAME_ROLE.replace("'member'", "'owner'"), 'access acc_a'],
  ["DELETE FROM organization_memberships WHERE account_id = 'acc_b'", 'access acc_b'],
  [
    `INSERT INTO warehouse_rights (account_id, organization_id, warehouse_id, rights)
      VALUES ('acc_b', 'org', 'hall', '{read}')`,
    'access acc_b',
  ],
  ["UPDATE organizations SET name = 'N'", 'organizations org'],
  ["UPDATE warehouses SET name = 'N'", 'organizations org'],
  ["INSERT INTO barred_clients VALUES ('org', 'gate_ci_d', now(), 'acc_a')", 'bars gate_ci_d'],
  ['DELETE FROM barred_clients', 'bars gate_ci_c'],
  ['UPDATE lasting_numbers SET session_generation = 1', 'everything'],
  ['UPDATE lasting_numbers SET refresh_lifetime_seconds = 1'],
];

function changesOfDeletedAccount(): string[] {
  const key = ['api-keys hash-of-k', 'api-key-ids key_k'];
  return ['accounts acc_a', ...key, 'access acc_a', 'connections acc_a gate_ci_c'];
}

onPostgres('announced changes', (open) => {
  let database: OpenDatabase;
  let feed: ChangeFeed;
  let announced: string[] = [];

  before(async () => {
    database = await open();
    // Use long timeouts: on a busy machine a late round trip would restart the feed, which announces `everything`.
    feed = await listenForChanges(database, TIMEOUT_FACTOR);
    feed.onChange((...change) => announced.push(change.join(' ').trim()));
  });
  after(() => feed.close());
  beforeEach(async () => {
    await database.query(`DO $$ BEGIN
      TRUNCATE accounts, clients, organizations CASCADE;
      ${SEED};
    END $$`);
  });

  /**
   * Runs a statement, and returns what it announces. Notifications arrive in commit order, so the
   * end mark arrives last.
   */
  async function announcedBy(statement: string): Promise<string[]> {
    const mark = async (name: string) => {
      await database.query("SELECT pg_notify('gatehouse_named_changes', $1)", [name]);
      await eventually(() => expect(announced).to.include(name));
    };
    await mark('mark begin');
    announced = [];
    await database.query(statement);
    await mark('mark end');
    return announced.slice(0, announced.indexOf('mark end'));
  }

  for (const [statement, ...expected] of CHANGES) {
    it(`${statement.replace(/\s+/g, ' ')} announces ${expected.join(', ') || 'nothing'}`, async () => {
      const changes = await announcedBy(statement);
      expect(changes).to.have.members(expected);
      // A node must drop the cached key before it notifies callers, who then introspect again.
      const place = (topic: string) => changes.findIndex((change) => change.startsWith(topic));
      if (place('api-key-ids') >= 0) expect(place('api-key-ids')).to.be.above(place('api-keys'));
    });
  }

  it('several changes of one row in a transaction are announced once', async () => {
    await announcedBy('SELECT 1');
    announced = [];
    await database.transaction(async (tx) => {
      await tx.query('UPDATE accounts SET suspended_at = now()');
      await tx.query('UPDATE accounts SET suspended_at = NULL');
    });
    await eventually(() => expect(announced).to.have.members(['accounts acc_a', 'accounts acc_b']));
  });
});
