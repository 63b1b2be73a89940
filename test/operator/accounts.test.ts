/** Operators add, suspend and invite accounts, and import, list and remove links with identities at providers, and passkeys. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createPasskeys } from '../../src/accounts/passkeys/passkeys.ts';
import { createPasswordLinks } from '../../src/accounts/password-links/password-links.ts';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { createSessionList, type SessionList } from '../../src/accounts/session-list.ts';
import { createConnections } from '../../src/authorizations/connections.ts';
import { fileWith } from '../config/configuration.ts';
import { fileOf, type Line, line } from '../import/import-file.ts';
import { createAccounts } from '../support/accounts.ts';
import { startMailServer } from '../support/mail-server.ts';
import { addUnusablePasskey } from '../support/seed.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { setUpOperator } from './operator-suite.ts';
import { expectWrongUsage, operatorWith, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

const PASSWORD = 'a password of ada’s ';

describe('operators manage accounts by commands', () => {
  const { run, value, refusal, parts, records, mailing } = setUpOperator();
  const add = (name: string) => `accounts add --email ${name}@example.test --name ${name}`;
  const links = () => {
    const [accounts, activity] = [createAccounts(parts()), createActivity(parts())];
    return createPasswordLinks({ ...parts(), accounts, activity });
  };
  const tokenOf = (link: string): string => new URL(link).searchParams.get('token') ?? '';

  it('commands add, suspend and resume accounts, and report and record each change', async () => {
    const passwordFile = path.join(temporaryDirectory('operator'), 'password');
    writeFileSync(passwordFile, `${PASSWORD}\n`);
    const [ada, bob] = await Promise.all([
      value(add('Ada'), `${PASSWORD}\r\n`),
      value(`${add('bob')} --password-file ${passwordFile}`),
    ]);
    expect(ada).to.include({ email: 'Ada@example.test', suspended: false, has_password: true });
    expect(ada.id).to.match(/^acc_/).and.equal(ada.account_id);
    const signIn = createSignIn(parts());
    for (const email of ['ada@example.test', 'bob@example.test']) {
      expect(await signIn({ email, password: PASSWORD }), email).not.to.equal('refused');
    }
    const made = await run(`${add('cy')} --generate-password`);
    const [, password = ''] = /only once: (\S+)/.exec(made.output) ?? [];
    expect(await signIn({ email: 'cy@example.test', password })).to.include({ name: 'cy' });

    await records();
    expect((await run('accounts suspend ada@example.test')).output).to.equal(
      `Suspended account ${ada.id}: Ada <Ada@example.test>.\n`,
    );
    expect(await signIn({ email: 'ada@example.test', password: PASSWORD })).to.equal('refused');
    expect((await run('accounts list')).output).to.match(/^acc_.*Ada +suspended +password$/m);
    expect(await value(`accounts resume ${ada.id}`)).to.deep.equal(ada);
    expect(await value('accounts list')).to.deep.include.members(
      [ada, bob].map((one) => ({ ...one, signs_in_with: ['password'] })),
    );
    const dot = await value(`${add('dot')} --generate-password`);
    expect(await records()).to.deep.equal([
      { action: 'account_suspended', account_id: ada.id, details: {} },
      { action: 'account_resumed', account_id: ada.id, details: {} },
      { action: 'account_added', account_id: dot.id, details: {} },
    ]);
  });

  it('a refused account command changes and records nothing, and prints no password', async () => {
    await value(`${add('eve')} --generate-password`);
    await records();
    expect((await refusal(`${add('eve')} --invite`)).code).to.equal('email_taken');
    expect((await refusal('accounts suspend nobody@example.test')).code).to.equal('account_unknown');
    const short = await run(add('f'), 'swordfish');
    expect(short).to.include({ exitCode: 1, output: '' });
    expect(short.errors).to.contain('at least 12 characters').and.not.contain('swordfish');
    expect(await records()).to.deep.equal([]);
  });

  it('`accounts add --invite` prints an invitation link, and each later invitation a new one', async () => {
    const added = await value(`${add('gil')} --invite`);
    expect(added).to.include({ email: 'gil@example.test', has_password: false, mailed: false });
    expect(added.invite_link).to.match(/^http:\/\/localhost:3000\/password\?token=[\w-]{43}$/);
    expect(await links().find(tokenOf(added.invite_link))).to.include({ purpose: 'invitation' });

    const { output } = await run('accounts invite gil@example.test');
    const [link = ''] = /http:\/\/localhost:3000\/password\?token=\S+/.exec(output) ?? [];
    expect(await links().find(tokenOf(link))).to.have.nested.property('account.id', added.id);
    const again = await value(`accounts invite ${added.id}`);
    expect(again.invite_link).not.to.equal(added.invite_link);
  });

  it('`accounts add` also mails the invitation link if mail is configured, and reports a failed mail', async () => {
    const mailServer = await startMailServer();
    const added = await valueFrom(mailing(mailServer.url), `${add('hal')} --invite`);
    expect(added).to.include({ mailed: true });
    const [mail] = mailServer.received;
    expect(mail?.to).to.deep.equal(['hal@example.test']);
    expect(mail?.text).to.include(added.invite_link);

    const invited = await valueFrom(mailing('smtp://127.0.0.1:1'), 'accounts invite hal@example.test');
    expect(invited).to.include({ mailed: false }).and.have.property('mail_failure');
    expect(await links().find(tokenOf(invited.invite_link))).to.be.ok;
  });

  it('suspending or deleting an account names the clients that depend on the account', async () => {
    const kim = await value(`${add('kim')} --generate-password`);
    await value(`${add('lea')} --generate-password`);
    const client = await value(
      'clients add --kind confidential --name Sync --redirect-uri https://a.example/ --owner kim@example.test',
    );
    const lea = (await value('show lea@example.test'))[0].account.id;
    await createConnections(parts()).rememberConsent({
      accountId: lea,
      clientId: client.id,
      name: 'Sync',
      hosts: [],
    });
    const line = `  ${client.id}  Sync, 1 person connected`;
    const { output } = await run('accounts suspend kim@example.test');
    expect(output).to.equal(
      [
        `Suspended account ${kim.id}: kim <kim@example.test>.`,
        'The account owns clients. They keep working for the people who connected them, but no one',
        'can approve or manage them any more:',
        line,
        'To hand a client over: clients transfer CLIENT --owner ACCOUNT.',
        'To stop a client: clients suspend CLIENT.\n',
      ].join('\n'),
    );
    const owned = [{ client_id: client.id, name: 'Sync', connected_people: 1 }];
    const suspended = await value('accounts suspend kim@example.test');
    expect(suspended).to.deep.include({ id: kim.id, suspended: true, owned_clients: owned });
    expect(await value('accounts suspend lea@example.test')).to.not.have.property('owned_clients');
    expect(await value('accounts resume kim@example.test')).to.not.have.property('owned_clients');
    // The command refuses before it asks for confirmation: an answer would change nothing.
    const refused = await refusal('accounts delete kim@example.test');
    expect(refused.code).to.equal('account_owns_clients');
    expect(refused.remedy).to.include(line).and.include('clients transfer CLIENT');
    await value(`clients transfer ${client.id} --to-operator`);
    await value('accounts delete kim@example.test --yes');
  });

  it('an unknown or suspended account cannot be invited', async () => {
    expect((await refusal('accounts invite x@example.test')).code).to.equal('account_unknown');
    await run(`${add('ida')} --invite`);
    await run('accounts suspend ida@example.test');
    expect((await refusal('accounts invite ida@example.test')).code).to.equal('account_suspended');
    await expectWrongUsage(run, [`${add('joe')} --invite --generate-password`]);
  });
});

const ISSUER = 'https://id.example.com/';

/** Starts a session of this user. @returns what tells whether it is still active. */
async function sessionOf(sessionList: SessionList, accountId: string): Promise<() => Promise<boolean>> {
  const key = { accountId, uid: `session of ${accountId}`, cookieHash: 'x', generation: 0 };
  const origin = { address: '::1', browser: 'x' };
  expect(await sessionList.record(key, { begunAt: new Date(), origin })).to.equal(true);
  return async () => (await sessionList.accountOf(key)) !== undefined;
}

const identity = (subject: string, issuer = ISSUER): Line => ({ identity: { issuer, subject } });

describe('the operator can link accounts with identities at a provider, list the links and remove them', () => {
  const { run, value, refusal, parts, records } = setUpOperator();
  const imported = (...lines: Line[]) => value(`import ${fileOf(...lines)} --yes`);
  const problems = async (...lines: Line[]): Promise<string> =>
    (await refusalFrom(run, `import ${fileOf(...lines)}`)).problems
      .map(({ message }: { message: string }) => message)
      .join('\n');
  const linksOf = async (account: string) =>
    (await value(`links list ${account}`)).map(({ subject }: { subject: string }) => subject);

  it('an import links new and existing accounts with a provider, and a repeated import changes nothing', async () => {
    await imported(line.account('A1', identity('ada')), line.account('A2'));
    await records();
    const { changes } = await imported(line.account('A1', identity('ada')), line.account('A2', identity('bob')));
    expect(changes).to.have.lengthOf(1);
    expect(changes[0].identity).to.deep.equal({ before: null, after: `bob at ${ISSUER}` });
    expect(await linksOf('a1@example.test')).to.deep.equal(['ada']);
    expect(await linksOf('a2@example.test')).to.deep.equal(['bob']);
    const [record] = await records();
    expect(record?.action).to.equal('identity_linked');
    expect(record?.details).to.include({ subject: 'bob', issuer: ISSUER, by: 'import' });
    await records();
    // Lines without an identity keep the links.
    expect((await imported(line.account('A1'), line.account('A2'))).changes).to.deep.equal([]);
  });

  it('an import never moves a provider link to another account, or changes its subject', async () => {
    expect(await problems(line.account('A3', identity('ada')))).to.include('is already linked with this identity');
    expect(await problems(line.account('A1', identity('other')))).to.include('is linked with the subject "ada"');
    expect(await problems(line.account('A4', identity('x')), line.account('A5', identity('x')))).to.include(
      'identity: line 1 has the same identity',
    );
    expect(await problems(line.account('A4', identity('')))).to.include('printable ASCII');
    expect(await linksOf('a1@example.test')).to.deep.equal(['ada']);
  });

  it('`links remove` asks for a confirmation, ends the sessions of the user, and records the removal', async () => {
    const unlink = `links remove a1@example.test --provider ${ISSUER}`;
    const byEmail = "SELECT id FROM accounts WHERE email = 'a1@example.test'";
    const [account] = await parts().database.query<{ id: string }>(byEmail);
    const isActive = await sessionOf(createSessionList(parts()), account?.id ?? '');
    expect((await refusal(unlink)).code).to.equal('confirmation_needed');
    expect(await isActive()).to.equal(true);
    expect(await value(`${unlink} --yes`)).to.include({ subject: 'ada', unlinked: true });
    expect(await isActive()).to.equal(false);
    expect((await records()).map(({ action }) => action)).to.deep.equal(['identity_unlinked']);
    expect((await refusal(`${unlink} --yes`)).code).to.equal('link_unknown');
    expect(await linksOf('a1@example.test')).to.deep.equal([]);
    await imported(line.account('A1', identity('ada again')));
    expect(await linksOf('a1@example.test')).to.deep.equal(['ada again']);
  });

  it('without passwords, `accounts invite` prints a link to sign in, and `links list` the id of a provider', async () => {
    const config = fileWith(`
sign_in:
  passwords: false
  providers: [{ id: platform, label: Platform, issuer: "${ISSUER}", client_id: gatehouse }]
`);
    const configured = operatorWith({ ...variablesOf(parts().database), GATEHOUSE_CONFIG: config });
    const [link] = await valueFrom(configured, 'links list a2@example.test');
    expect(link).to.include({ provider: 'platform', subject: 'bob', last_used_at: null });
    const unlink = 'links remove a2@example.test --provider platform --yes';
    expect(await valueFrom(configured, unlink)).to.include({ issuer: ISSUER });
    const invited = await configured('accounts invite a2@example.test');
    expect(invited.output).to.include('One-time link to sign in').and.include('/password?token=');
  });
});

describe('operator passkeys', () => {
  const { run, value, refusal, parts, records, mailing } = setUpOperator();

  it('an operator can list passkeys; a confirmed removal ends sessions, is recorded and causes a mail', async () => {
    const passkeys = createPasskeys({ ...parts(), activity: createActivity(parts()) });
    const email = 'ada@example.test';
    const { id: accountId } = await value(`accounts add --email ${email} --name Ada --invite`);
    expect((await run('accounts list')).output).to.match(/no password yet +none yet$/m);
    await passkeys.handleOf(accountId);
    await addUnusablePasskey({ passkeys }, accountId, 'x');
    expect((await run('accounts list')).output).to.match(/Ada +active +passkey$/m);
    expect((await run(`show ${email}`)).output).to.include('Sign-in methods: passkey.');
    const [one] = await value(`passkeys list ${email}`);
    expect(one).to.include({ name: 'Phone', synced: true, last_used_at: null });
    expect((await run(`passkeys list ${email}`)).output).to.match(/^pk_.* Phone +yes /m);
    await records();

    const isActive = await sessionOf(createSessionList(parts()), accountId);
    const remove = `passkeys remove ${email} --passkey ${one.id}`;
    expect((await refusal(remove)).code).to.equal('confirmation_needed');
    const mailServer = await startMailServer();
    expect(await valueFrom(mailing(mailServer.url), `${remove} --yes`)).to.include({ removed: true, mailed: true });
    expect(await isActive()).to.equal(false);
    expect(mailServer.received[0]?.to).to.deep.equal([email]);
    expect(mailServer.received[0]?.text).to.include('Phone').and.include('Done by: Your administrator');
    expect((await records()).map(({ action }) => action)).to.deep.equal(['passkey_removed']);
    expect((await refusal(`${remove} --yes`)).code).to.equal('passkey_unknown');
    expect((await run(`passkeys list ${email}`)).output).to.equal('The account has no passkey.\n');
  });
});
