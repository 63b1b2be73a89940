import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createAccess } from '../../src/accounts/access.ts';
import { createSignIn } from '../../src/accounts/sign-in.ts';
import { createClientRegistry } from '../../src/clients/client-registry.ts';
import { matchesSecret } from '../../src/clients/client-secret.ts';
import { systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { operatorWith, type RunOperator, valueFrom } from './run-operator.ts';

const PASSWORD = 'a password of ada’s ';

describe('the operator command beside a service that keeps the embedded database', () => {
  let database: OpenDatabase;
  let run: RunOperator;
  const changes = silentChangeFeed;

  before(async () => {
    const dataDirectory = await freshDataDirectory();
    database = await openDatabase({ dataDirectory, sharing: 'own' });
    run = operatorWith({ GATEHOUSE_DATA_DIR: dataDirectory });
  });
  after(() => database.close());

  it('adds people, suspends and resumes them, and says what it did', async () => {
    const passwordFile = path.join(temporaryDirectory('operator'), 'password');
    writeFileSync(passwordFile, `${PASSWORD}\n`);
    const [ada, bob] = await Promise.all([
      valueFrom(run, ['accounts', 'add', '--email', 'Ada@example.test', '--name', 'Ada'], {
        input: `${PASSWORD}\r\n`,
      }),
      valueFrom(run, [
        ...['accounts', 'add', '--email', 'bob@example.test', '--name', 'Bob'],
        ...['--password-file', passwordFile],
      ]),
    ]);
    expect(ada).to.include({ email: 'Ada@example.test', suspended: false, has_password: true });
    expect(ada.id).to.match(/^acc_/).and.equal(ada.account_id);
    const signIn = createSignIn({ database });
    for (const email of ['ada@example.test', 'bob@example.test']) {
      expect(await signIn({ email, password: PASSWORD }), email).not.to.equal('refused');
    }

    const add = ['accounts', 'add', '--email', 'cy@example.test', '--name', 'Cy'];
    const made = await run([...add, '--generate-password']);
    const [, password = ''] = /only this once: (\S+)/.exec(made.output) ?? [];
    expect(await signIn({ email: 'cy@example.test', password })).to.include({ name: 'Cy' });

    expect((await run(['accounts', 'suspend', 'ada@example.test'])).output).to.equal(
      `Suspended account ${ada.id}: Ada <Ada@example.test>.\n`,
    );
    expect(await signIn({ email: 'ada@example.test', password: PASSWORD })).to.equal('refused');
    expect((await run(['accounts', 'list'])).output).to.match(/^acc_.*Ada +suspended$/m);
    const resumed = await valueFrom(run, ['accounts', 'resume', '--account', ada.id]);
    expect(resumed).to.deep.equal(ada);
    expect(await valueFrom(run, ['accounts', 'list']))
      .to.deep.include(ada)
      .and.deep.include(bob);
  });

  it('gives access to warehouses and takes it back, for people and machines', async () => {
    const access = createAccess({ database, changes });
    const { id: organization } = await valueFrom(run, ['organizations', 'add', '--name', 'Acme']);
    const inOrganization = ['--organization', organization];
    const { id: warehouse } = await valueFrom(run, [
      ...['warehouses', 'add', '--name', 'Hamburg', ...inOrganization],
    ]);
    const { account_id: accountId } = await valueFrom(run, [
      ...['accounts', 'add', '--email', 'dot@example.test', '--name', 'Dot', '--generate-password'],
    ]);
    const { client_id: clientId } = await valueFrom(run, [
      ...['clients', 'add', '--kind', 'machine', '--name', 'Robot'],
    ]);
    const dot = ['--account', 'dot@example.test'];
    const rights = ['--warehouse', warehouse, '--rights', 'write,read'];

    const early = await valueFrom(run, ['memberships', 'set', ...dot, ...rights], { exitCode: 1 });
    expect(early.error.code).to.equal('membership_missing');
    await valueFrom(run, ['memberships', 'set', ...dot, ...inOrganization, '--role', 'member']);
    const reached = await valueFrom(run, ['memberships', 'set', ...dot, ...rights]);
    expect(reached).to.deep.equal({
      account_id: accountId,
      organizations: await access.accessOf({ accountId }),
    });
    expect(reached.organizations[0].warehouses).to.deep.equal([
      { id: warehouse, name: 'Hamburg', rights: ['read', 'write'] },
    ]);
    const robot = ['--client', clientId, ...inOrganization, '--role', 'viewer', ...rights];
    await valueFrom(run, ['memberships', 'set', ...robot]);
    expect(await access.accessOf({ clientId }))
      .to.have.nested.property('[0].warehouses[0].rights')
      .that.deep.equals(['read']);

    const [bare, gone] = [
      await valueFrom(run, ['memberships', 'remove', ...dot, '--warehouse', warehouse]),
      await valueFrom(run, ['memberships', 'remove', '--client', clientId, ...inOrganization]),
    ];
    expect(bare.organizations).to.have.nested.property('[0].warehouses').that.deep.equals([]);
    expect(gone.organizations).to.deep.equal([]);
    expect((await run(['memberships', 'list', ...dot])).output).to.match(/Acme +member/);
    expect((await run(['organizations', 'list'])).output).to.match(/Acme +1/);
    expect((await run(['warehouses', 'list', ...inOrganization])).output).to.contain('Hamburg');
  });

  it('registers clients of every kind and shows a secret once', async () => {
    const clients = createClientRegistry({ database, changes, clock: systemClock });
    const add = (...args: string[]) => valueFrom(run, ['clients', 'add', '--name', 'App', ...args]);
    await run(['accounts', 'add', '--email', 'eve@example.test', '--name', 'Eve'], PASSWORD);
    const uri = ['--redirect-uri', 'https://app.example/cb'];

    const owned = await add('--kind', 'confidential', ...uri, '--owner', 'eve@example.test');
    expect(owned).to.include({ kind: 'confidential', owner_name: 'Eve', native: false });
    expect(owned.client_secret).to.match(/^gate_cs_/);
    const [secret] = owned.secrets;
    expect(secret).to.have.all.keys('id', 'last_four', 'created_at', 'last_used_at');
    expect(matchesSecret(await clients.find(owned.client_id), owned.client_secret)).to.equal(true);

    const schemes = ['--redirect-uri', 'com.example.app:/cb', '--redirect-uri', 'http://[::1]/cb'];
    const native = await add('--kind', 'public', '--native', ...schemes);
    expect(native).to.include({ native: true }).and.not.have.property('client_secret');
    expect(native.redirect_uris).to.deep.equal(['com.example.app:/cb', 'http://[::1]/cb']);
    const server = await add('--kind', 'resource-server');
    expect(server.client_secret).to.be.a('string');

    const { output } = await run(['clients', 'suspend', server.client_id]);
    expect(output).to.match(/State +suspended/);
    expect(await clients.find(server.client_id)).to.include({ isSuspended: true });
    const resumed = await valueFrom(run, ['clients', 'resume', '--client', server.client_id]);
    expect(resumed).to.include({ suspended: false });
    const shown = await run(['clients', 'show', owned.client_id]);
    expect(shown.output).to.contain('https://app.example/cb').and.contain('never used');
    expect(shown.output).not.to.contain(owned.client_secret);
    const listed = await run(['clients', 'list', '--json']);
    expect(JSON.parse(listed.output).map(({ id }: { id: string }) => id)).to.include.members([
      ...[owned.id, native.id, server.id],
    ]);
    expect(listed.output).not.to.contain(owned.client_secret);
  });

  it('refuses with exit code 1, a stable code and a remedy, and changes nothing', async () => {
    const refusals: readonly [string, string[]][] = [
      ['client_invalid', ['clients', 'add', '--kind', 'confidential', '--name', 'No URI']],
      ['account_unknown', ['accounts', 'suspend', 'nobody@example.test']],
      ['client_unknown', ['clients', 'show', 'gate_ci_none']],
      ['organization_unknown', ['warehouses', 'add', '--organization', 'org_x', '--name', 'W']],
    ];
    for (const [code, args] of refusals) {
      const { error } = await valueFrom(run, args, { exitCode: 1 });
      expect(error, args.join(' ')).to.include({ code });
      expect(error.remedy).to.be.a('string').and.not.equal('');
    }
    const short = ['accounts', 'add', '--email', 'f@example.test', '--name', 'F'];
    const answer = await run(short, 'swordfish');
    expect(answer).to.include({ exitCode: 1, output: '' });
    expect(answer.errors).to.contain('at least 12 characters').and.not.contain('swordfish');
  });
});

describe('the operator command alone', () => {
  it('creates the embedded database it is pointed at, and finds it again', async () => {
    const run = operatorWith({ GATEHOUSE_DATA_DIR: temporaryDirectory('operator') });
    const add = ['accounts', 'add', '--email', 'ada@example.test', '--name', 'Ada'];
    const ada = await valueFrom(run, add, { input: PASSWORD });
    expect(await valueFrom(run, ['accounts', 'list'])).to.deep.equal([ada]);
  });

  it('says that a database is away, without asking for secrets it does not need', async () => {
    const run = operatorWith({ DATABASE_URL: 'postgres://me:swordfish@127.0.0.1:1/gatehouse' });
    const { error } = await valueFrom(run, ['accounts', 'list'], { exitCode: 1 });
    expect(error.code).to.equal('storage_unavailable');
    expect(JSON.stringify(error)).not.to.contain('swordfish');
  });

  it('answers wrong usage with exit code 2 before it opens anything', async () => {
    const run = operatorWith({ GATEHOUSE_DATA_DIR: '/nowhere/at/all' });
    const wrong = [
      [],
      ['accounts'],
      ['account', 'list'],
      ['accounts', 'add', '--email', 'ada@example.test'],
      ['accounts', 'add', '--email', 'ada@example.test', '--name', 'Ada'],
      ['accounts', 'suspend'],
      ['clients', 'add', '--kind', 'spa', '--name', 'App'],
      ['memberships', 'set', '--account', 'a@b.test', '--organization', 'org_1'],
      ['memberships', 'set', '--account', 'a@b.test', '--warehouse', 'wh_1', '--rights', 'fly'],
      ['memberships', 'list', '--account', 'a@b.test', '--client', 'gate_ci_1'],
    ];
    for (const args of wrong) {
      const { error } = await valueFrom(run, args, { exitCode: 2 });
      expect(error.code, args.join(' ')).to.equal('wrong_usage');
    }
    const people = await run(['accounts', 'ad']);
    expect(people).to.include({ exitCode: 2, output: '' });
    expect(people.errors).to.contain('Did you mean add?');
  });

  it('helps on every level', async () => {
    const run = operatorWith({});
    for (const args of [[], ['clients'], ['clients', 'add'], ['check-config']]) {
      const { exitCode, output } = await run([...args, '--help']);
      expect(exitCode).to.equal(0);
      expect(output).to.match(new RegExp(`^Usage: ${['operator', ...args].join(' ')}`));
      expect(output).to.contain('--json');
    }
  });
});
