import { expect } from 'chai';
import { type Activity, createActivity } from '../../src/accounts/activity.ts';
import { createConnections } from '../../src/accounts/connections.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { matchesSecret } from '../../src/clients/client-secret.ts';
import { epochSeconds, systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { operatorWith, type RunOperator, valueFrom } from './run-operator.ts';

const NO_CLIENT = 'gate_ci_0000000000000000000000';
const PASSWORD = ['--generate-password'];

describe('operator clients, over the life of a client', () => {
  let database: OpenDatabase;
  let activity: Activity;
  let run: RunOperator;
  let ada: string;
  let bob: string;
  const clients = () =>
    createClientRegistry({ database, changes: silentChangeFeed, clock: systemClock });

  before(async () => {
    const dataDirectory = await freshDataDirectory();
    database = await openDatabase({ dataDirectory, sharing: 'own' });
    activity = createActivity({ database, clock: systemClock });
    run = operatorWith({ GATEHOUSE_DATA_DIR: dataDirectory });
    const add = async (name: string) => {
      const args = ['--email', `${name}@example.test`, '--name', name, ...PASSWORD];
      return (await valueFrom(run, ['accounts', 'add', ...args])).account_id;
    };
    [ada, bob] = [await add('ada'), await add('bob')];
  });
  after(() => database.close());

  const addClient = (...more: string[]) =>
    valueFrom(run, ['clients', 'add', '--name', 'App', ...more]);
  const addOwned = (owner: string) => {
    const uri = ['--redirect-uri', 'https://app.example/cb'];
    return addClient('--kind', 'confidential', ...uri, '--owner', owner);
  };
  const newest = async (accountId: string) => (await activity.of(accountId, { limit: 1 }))[0];
  const unowned = async () => {
    const [row] = await database.query<{ action: string; details: object }>(
      'SELECT action, details FROM activity WHERE account_id IS NULL ORDER BY id DESC LIMIT 1',
    );
    return row;
  };

  it('rotates the secret of any client, and removes the one that is not needed', async () => {
    const robot = await addClient('--kind', 'machine');
    const rotated = await valueFrom(run, ['clients', 'rotate-secret', robot.client_id]);
    expect(rotated.client_secret)
      .to.match(/^gate_cs_/)
      .and.not.equal(robot.client_secret);
    expect(rotated.secrets).to.have.length(2);
    for (const secret of [robot.client_secret, rotated.client_secret]) {
      expect(matchesSecret(await clients().find(robot.id), secret)).to.equal(true);
    }
    const details = { client_id: robot.id, client_name: 'App' };
    expect(await unowned()).to.deep.equal({
      action: 'client_secret_added',
      details: { ...details, last_four: rotated.client_secret.slice(-4) },
    });
    const third = ['clients', 'rotate-secret', '--client', robot.id];
    expect((await valueFrom(run, third, { exitCode: 1 })).error.code).to.equal('secrets_full');

    const lastFour = robot.client_secret.slice(-4);
    const remove = ['clients', 'remove-secret', robot.id];
    const asked = await valueFrom(run, [...remove, `--secret=${lastFour}`], { exitCode: 1 });
    expect(asked.error.code).to.equal('confirmation_needed');
    const left = await valueFrom(run, [...remove, `--secret=${lastFour}`, '--yes']);
    expect(left.secrets).to.have.length(1);
    expect(matchesSecret(await clients().find(robot.id), robot.client_secret)).to.equal(false);
    expect(await unowned()).to.deep.equal({
      ...{ action: 'client_secret_removed', details: { ...details, last_four: lastFour } },
    });
    for (const [secret, code] of [
      [left.secrets[0].id, 'secret_last'],
      ['nope', 'secret_unknown'],
    ]) {
      const { error } = await valueFrom(run, [...remove, `--secret=${secret}`], { exitCode: 1 });
      expect(error.code).to.equal(code);
    }
    const shown = await run(['clients', 'rotate-secret', robot.id]);
    expect(shown.output).to.match(/^Client secret: gate_cs_\S+ \(shown only this once\)\n/);
  });

  it('transfers a client, which both owners find in their log', async () => {
    const app = await addOwned(ada);
    const transfer = ['clients', 'transfer', app.id];
    const moved = await valueFrom(run, [...transfer, '--owner', 'bob@example.test']);
    expect(moved).to.include({ owner_account_id: bob, owner_name: 'bob' });
    for (const accountId of [ada, bob]) {
      expect(await newest(accountId)).to.deep.include({
        ...{ action: 'client_transferred', actor: 'operator' },
        details: { client_id: app.id, client_name: 'App' },
      });
    }
    const provided = await valueFrom(run, [...transfer, '--to-operator']);
    expect(provided).to.include({ owner_account_id: null, owner_name: null });
    const nobody = [...transfer, '--owner', 'nobody@example.test'];
    expect((await valueFrom(run, nobody, { exitCode: 1 })).error.code).to.equal('account_unknown');
    for (const wrong of [transfer, [...transfer, '--owner', 'ada', '--to-operator']]) {
      await valueFrom(run, wrong, { exitCode: 2 });
    }
  });

  it('deletes a client with every grant of it', async () => {
    const app = await addOwned(ada);
    const connections = createConnections({ database, clock: systemClock });
    const store = createPostgresStore({ database, clock: systemClock });
    const connection = { accountId: bob, clientId: app.id };
    await connections.rememberConsent({ ...connection, name: 'App', hosts: [] });
    const grantId = 'grant-of-the-operator-test';
    const expires = epochSeconds(systemClock) + 3_600;
    await store.write('grant', grantId, connection, expires);
    await store.startFamily(grantId, {}, systemClock(), expires);
    const expiresAt = new Date(expires * 1000);
    await connections.recordGrant({ ...connection, grantId, expiresAt });

    const deleted = await valueFrom(run, ['clients', 'delete', app.id, '--yes']);
    expect(deleted).to.include({ client_id: app.id, deleted: true, disconnected_people: 1 });
    expect(await clients().find(app.id)).to.equal(undefined);
    expect(await store.read('grant', grantId)).to.equal(undefined);
    expect(await store.readFamily(grantId)).to.equal(undefined);
    expect(await newest(ada)).to.deep.include({
      ...{ action: 'client_deleted', actor: 'operator' },
      details: { client_id: app.id, client_name: 'App', people: 1 },
    });
    const other = await addOwned(ada);
    expect((await run(['clients', 'delete', other.id, '--yes'])).output).to.equal(
      `Deleted client ${other.id}: App. Disconnected people: 0.\n`,
    );
  });

  it('refuses what does not exist, and wrong usage', async () => {
    for (const args of [
      ['transfer', NO_CLIENT, '--to-operator'],
      ['rotate-secret', NO_CLIENT],
      ['remove-secret', NO_CLIENT, '--secret', 'sec_'],
      ['delete', NO_CLIENT],
    ]) {
      const { error } = await valueFrom(run, ['clients', ...args], { exitCode: 1 });
      expect(error.code, args.join(' ')).to.equal('client_unknown');
    }
    for (const command of ['transfer', 'rotate-secret', 'remove-secret', 'delete']) {
      await valueFrom(run, ['clients', command], { exitCode: 2 });
    }
    const phone = await addClient(
      ...['--kind', 'public', '--native', '--redirect-uri', 'com.example.app:/cb'],
    );
    const { error } = await valueFrom(run, ['clients', 'rotate-secret', phone.id], { exitCode: 1 });
    expect(error.code).to.equal('secret_unused');
  });
});
