import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createActivity } from '../../src/accounts/activity.ts';
import { createPasswordLinks, type PasswordLinks } from '../../src/accounts/password-links.ts';
import { systemClock } from '../../src/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { type OpenDatabase, openDatabase } from '../../src/storage/database.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';
import { type MailServer, startMailServer } from '../support/mail-server.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { operatorWith, type RunOperator, valueFrom } from './run-operator.ts';

const ISSUER = 'http://localhost:3000';

describe('the operator command invites people', () => {
  let database: OpenDatabase;
  let links: PasswordLinks;
  let run: RunOperator;
  let mailServer: MailServer;
  let environment: Record<string, string>;

  before(async () => {
    const dataDirectory = await freshDataDirectory();
    database = await openDatabase({ dataDirectory, sharing: 'own' });
    const parts = { database, changes: silentChangeFeed, clock: systemClock };
    const [accounts, activity] = [createAccountRegistry(parts), createActivity(parts)];
    links = createPasswordLinks({ ...parts, accounts, activity });
    environment = { GATEHOUSE_DATA_DIR: dataDirectory };
    run = operatorWith(environment);
    mailServer = await startMailServer();
  });
  after(async () => {
    await mailServer.close();
    await database.close();
  });

  const tokenOf = (link: string): string => new URL(link).searchParams.get('token') ?? '';

  it('with a link that it prints, when an account is added and whenever another is needed', async () => {
    const add = ['accounts', 'add', '--email', 'ada@example.test', '--name', 'Ada', '--invite'];
    const added = await valueFrom(run, add);
    expect(added).to.include({ email: 'ada@example.test', has_password: false, mailed: false });
    expect(added.invite_link).to.match(/^http:\/\/localhost:3000\/password\?token=[\w-]{43}$/);
    expect(await links.find(tokenOf(added.invite_link))).to.include({ purpose: 'invitation' });

    const { output } = await run(['accounts', 'invite', 'ada@example.test']);
    const [link = ''] = /http\S+/.exec(output) ?? [];
    expect(link.startsWith(`${ISSUER}/password?token=`)).to.equal(true);
    expect(await links.find(tokenOf(link))).to.have.nested.property('account.id', added.id);
    const again = await valueFrom(run, ['accounts', 'invite', '--account', added.id]);
    expect(again.invite_link).not.to.equal(added.invite_link);
  });

  it('by mail as well, where mail is configured, and says when that failed', async () => {
    const file = path.join(temporaryDirectory('invitations'), 'settings.yaml');
    writeFileSync(file, 'mail: { from: Gatehouse <gatehouse@example.test> }');
    const withMail = operatorWith({
      ...environment,
      GATEHOUSE_CONFIG: file,
      SMTP_URL: mailServer.url,
    });
    const add = ['accounts', 'add', '--email', 'bob@example.test', '--name', 'Bob', '--invite'];
    const added = await valueFrom(withMail, add);
    expect(added).to.include({ mailed: true });
    const [mail] = mailServer.received;
    expect(mail?.to).to.deep.equal(['bob@example.test']);
    expect(mail?.text).to.include(added.invite_link);

    const away = { ...environment, GATEHOUSE_CONFIG: file, SMTP_URL: 'smtp://127.0.0.1:1' };
    const invite = ['accounts', 'invite', 'bob@example.test'];
    const invited = await valueFrom(operatorWith(away), invite);
    expect(invited).to.include({ mailed: false }).and.have.property('mail_failure');
    expect(await links.find(tokenOf(invited.invite_link))).to.be.ok;
  });

  it('not without an account that may sign in', async () => {
    const nobody = await valueFrom(run, ['accounts', 'invite', 'x@example.test'], { exitCode: 1 });
    expect(nobody.error.code).to.equal('account_unknown');
    await run(['accounts', 'add', '--email', 'cy@example.test', '--name', 'Cy', '--invite']);
    await run(['accounts', 'suspend', 'cy@example.test']);
    const suspended = await valueFrom(run, ['accounts', 'invite', 'cy@example.test'], {
      exitCode: 1,
    });
    expect(suspended.error.code).to.equal('account_suspended');
    const both = ['accounts', 'add', '--email', 'd@e.test', '--name', 'D', '--invite'];
    const wrong = await valueFrom(run, [...both, '--generate-password'], { exitCode: 2 });
    expect(wrong.error.code).to.equal('wrong_usage');
  });
});
