/** Operators import, list and remove links with identities at providers, and passkeys. */
import { expect } from 'chai';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createPasskeys } from '../../src/accounts/passkeys/passkeys.ts';
import { createSessionList, type SessionList } from '../../src/accounts/session-list.ts';
import { fileWith } from '../config/configuration.ts';
import { fileOf, type Line, line } from '../import/import-file.ts';
import { startMailServer } from '../support/mail-server.ts';
import { setUpOperator } from './operator-suite.ts';
import { operatorWith, refusalFrom, valueFrom, variablesOf } from './run-operator.ts';

const ISSUER = 'https://id.example.com/';

/** Starts a session of this user. @returns what tells whether it is still active. */
async function sessionOf(sessionList: SessionList, accountId: string): Promise<() => Promise<boolean>> {
  const key = { accountId, uid: `session of ${accountId}`, cookieHash: 'x', generation: 0 };
  const origin = { address: '::1', browser: 'x' };
  expect(await sessionList.record(key, { begunAt: new Date(), origin })).to.equal(true);
  return async () => (await sessionList.accountOf(key)) !== undefined;
}

const identity = (subject: string, issuer = ISSUER): Line => ({ identity: { issuer, subject } });

describe('operator links, to identities at a provider', () => {
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

  it('an import never moves a provider link to another account or another subject', async () => {
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

  it('`links list` shows the id of a configured provider; without passwords an invitation link signs its user in', async () => {
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
  const { run, value, refusal, parts, records } = setUpOperator();

  it('an operator can list passkeys, and remove one after a confirmation; that ends the sessions of the user, is recorded and mailed', async () => {
    const passkeys = createPasskeys({ ...parts(), activity: createActivity(parts()) });
    const email = 'ada@example.test';
    const { id: accountId } = await value(`accounts add --email ${email} --name Ada --invite`);
    expect((await run('accounts list')).output).to.match(/no password yet +none yet$/m);
    const made = {
      credentialId: 'x',
      publicKey: 'x',
      transports: [],
      maySync: true,
      isSynced: true,
      counter: 0,
      accountId,
      name: 'Phone',
      challenge: { text: 'x', seconds: 1 },
      requireMayAdd: async () => {},
      origin: { address: '::1', browser: 'x' },
    };
    await passkeys.handleOf(accountId);
    await passkeys.add(made);
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
    const mailing = operatorWith({
      ...variablesOf(parts().database),
      SMTP_URL: mailServer.url,
      GATEHOUSE_CONFIG: fileWith('mail: { from: Gate <gate@example.test> }'),
    });
    expect(await valueFrom(mailing, `${remove} --yes`)).to.include({ removed: true, mailed: true });
    expect(await isActive()).to.equal(false);
    await mailServer.close();
    expect(mailServer.received[0]?.to).to.deep.equal([email]);
    expect(mailServer.received[0]?.text).to.include('Phone').and.include('Done by: Your administrator');
    expect((await records()).map(({ action }) => action)).to.deep.equal(['passkey_removed']);
    expect((await refusal(`${remove} --yes`)).code).to.equal('passkey_unknown');
    expect((await run(`passkeys list ${email}`)).output).to.equal('The account has no passkey.\n');
  });
});
