import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createPasswordLinks } from '../../src/accounts/password-links/password-links.ts';
import { createSignIn } from '../../src/accounts/password-sign-in.ts';
import { createConnections } from '../../src/authorizations/connections.ts';
import { fileWith } from '../config/configuration.ts';
import { createAccounts } from '../support/accounts.ts';
import { startMailServer } from '../support/mail-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { setUpOperator } from './operator-suite.ts';
import { expectWrongUsage, operatorWith, valueFrom, variablesOf } from './run-operator.ts';

const PASSWORD = 'a password of ada’s ';

describe('operator accounts', () => {
  const { run, value, refusal, parts, records } = setUpOperator();
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
    const mailingBy = (SMTP_URL: string) =>
      operatorWith({
        ...variablesOf(parts().database),
        GATEHOUSE_CONFIG: fileWith('mail: { from: Gate <gate@example.test> }'),
        SMTP_URL,
      });
    const added = await valueFrom(mailingBy(mailServer.url), `${add('hal')} --invite`);
    expect(added).to.include({ mailed: true });
    const [mail] = mailServer.received;
    expect(mail?.to).to.deep.equal(['hal@example.test']);
    expect(mail?.text).to.include(added.invite_link);
    await mailServer.close();

    const away = mailingBy('smtp://127.0.0.1:1');
    const invited = await valueFrom(away, 'accounts invite hal@example.test');
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
