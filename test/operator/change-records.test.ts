import { expect } from 'chai';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { operatorWith, type RunOperator, valueFrom } from './run-operator.ts';

interface Row {
  readonly action: string;
  readonly account_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

describe('what the operator command changes is recorded', () => {
  let database: OpenDatabase;
  let run: RunOperator;

  before(async () => {
    const dataDirectory = await freshDataDirectory();
    database = await openDatabase({ dataDirectory, sharing: 'own' });
    run = operatorWith({ GATEHOUSE_DATA_DIR: dataDirectory });
  });
  after(() => database.close());

  /** What was recorded since it was last asked. */
  async function records(): Promise<Row[]> {
    return database.query<Row>(
      `WITH taken AS (DELETE FROM activity WHERE actor = 'operator'
          RETURNING id, action, account_id, details)
        SELECT action, account_id, details FROM taken ORDER BY id`,
    );
  }

  it('accounts, organizations, warehouses and memberships, each once, in the person’s own log', async () => {
    const value = (...args: string[]) => valueFrom(run, args);
    const add = ['accounts', 'add', '--email', 'ada@example.test', '--name', 'Ada'];
    const { id } = await value(...add, '--generate-password');
    await value('accounts', 'suspend', id);
    await value('accounts', 'resume', id);
    const acme = await value('organizations', 'add', '--name', 'Acme');
    const riga = await value('warehouses', 'add', '--organization', acme.id, '--name', 'Riga');
    const mine = ['--account', id];
    const role = ['--organization', acme.id, '--role', 'member'];
    await value('memberships', 'set', ...mine, ...role);
    // The same again changes nothing.
    await value('memberships', 'set', ...mine, ...role);
    await value('memberships', 'set', ...mine, '--warehouse', riga.id, '--rights', 'read,write');
    await value('memberships', 'remove', ...mine, '--organization', acme.id);
    await value('memberships', 'remove', ...mine, '--organization', acme.id);

    const organization = { organization_id: acme.id, organization_name: 'Acme' };
    const warehouse = { warehouse_id: riga.id, warehouse_name: 'Riga' };
    expect(await records()).to.deep.equal([
      { action: 'account_added', account_id: id, details: {} },
      { action: 'account_suspended', account_id: id, details: {} },
      { action: 'account_resumed', account_id: id, details: {} },
      { action: 'organization_added', account_id: null, details: organization },
      {
        ...{ action: 'warehouse_added', account_id: null },
        details: { ...warehouse, organization_id: acme.id },
      },
      { action: 'membership_set', account_id: id, details: { ...organization, role: 'member' } },
      {
        ...{ action: 'membership_set', account_id: id },
        details: { ...organization, ...warehouse, rights: ['read', 'write'] },
      },
      { action: 'membership_removed', account_id: id, details: organization },
    ]);
  });

  it('clients, in the log of their owner, and machines’ memberships; never a secret', async () => {
    const value = (...args: string[]) => valueFrom(run, args);
    const eve = await value(
      ...['accounts', 'add', '--email', 'eve@example.test', '--name', 'Eve', '--generate-password'],
    );
    const acme = await value('organizations', 'add', '--name', 'Acme');
    await records();
    const owned = await value(
      ...['clients', 'add', '--kind', 'confidential', '--name', 'App', '--owner', eve.id],
      ...['--redirect-uri', 'https://app.example/cb'],
    );
    await value('clients', 'suspend', owned.client_id);
    await value('clients', 'resume', owned.client_id);
    const robot = await value('clients', 'add', '--kind', 'machine', '--name', 'Robot');
    const access = ['--client', robot.client_id, '--organization', acme.id];
    await value('memberships', 'set', ...access, '--role', 'viewer');
    const rows = await records();
    const app = { client_id: owned.client_id, client_name: 'App' };
    const about = { client_id: robot.client_id };
    const organization = { organization_id: acme.id, organization_name: 'Acme' };
    expect(rows).to.deep.equal([
      { action: 'client_added', account_id: eve.id, details: app },
      { action: 'client_suspended', account_id: eve.id, details: app },
      { action: 'client_resumed', account_id: eve.id, details: app },
      { action: 'client_added', account_id: null, details: { ...about, client_name: 'Robot' } },
      {
        ...{ action: 'membership_set', account_id: null },
        details: { ...about, ...organization, role: 'viewer' },
      },
    ]);
    expect(JSON.stringify(rows)).not.to.include(owned.client_secret);
  });

  it('what was refused is not', async () => {
    const again = ['accounts', 'add', '--email', 'eve@example.test', '--name', 'Eve', '--invite'];
    expect((await valueFrom(run, again, { exitCode: 1 })).error.code).to.equal('email_taken');
    const nowhere = ['memberships', 'set', '--account', 'eve@example.test'];
    const unknown = ['--organization', 'org_0000000000000000', '--role', 'owner'];
    await valueFrom(run, [...nowhere, ...unknown], { exitCode: 1 });
    expect(await records()).to.deep.equal([]);
  });
});
