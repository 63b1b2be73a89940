/** Spellings of an email address that count as the same, and accounts from before this rule. */
import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import {
  accountsWithOddEmails,
  emailKey,
  keyEmails,
  newEmailProblem,
  otherEmailMeant,
} from '../../src/accounts/email.ts';
import { createSendMail } from '../../src/accounts/mail/mail.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { refusalOf } from '../clients/refusals.ts';
import { forEachDatabase } from '../support/databases.ts';
import { atEndOfFile } from '../support/end-of-run.ts';
import { eventually } from '../support/eventually.ts';
import { startMailServer } from '../support/mail-server.ts';
import { createPerson } from '../support/person.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { addPerson } from '../support/seed.ts';
import { startsOn } from '../support/service.ts';

/** Each row contains spellings of one address, the plain spelling first. */
const SAME: readonly (readonly string[])[] = [
  ['iris@kiln.test', 'IRIS@Kiln.TEST', ' iris@kiln.test ', '\u0130ris@k\u0131ln.test'],
  ['iris@kiln.test', '\uFF29\uFF32\uFF29\uFF33@kiln.test', 'i\u0307ris@kiln.test', 'iri\u017F@\u212Ailn.test'],
  ['iris@kiln.test', 'iris\uFE0F@kiln.test', '\u2170ris@kiln.test', '\u{1D422}ris@kiln.test'],
  ['b\u00FCcher@laden.test', 'bu\u0308cher@laden.test', 'BU\u0308CHER@laden.test'],
  ['strasse@laden.test', 'stra\u00DFe@laden.test', 'STRA\u1E9EE@laden.test'],
  [
    '\u03C3\u03BF\u03C6\u03BF\u03C3@laden.test',
    '\u03A3\u039F\u03A6\u039F\u03A3@laden.test',
    '\u03C3\u03BF\u03C6\u03BF\u03C2@laden.test',
  ],
];
const DIFFERENT = [
  'iris@kiln.test',
  'iris@kiln.test.',
  'irls@kiln.test',
  'iris@kiln-test',
  'iris @kiln.test',
  'iris\0@kiln.test',
  'iris@@kiln.test',
  'ir\u00EFs@kiln.test',
  '',
  ' ',
];

/** Addresses for new accounts, with the recipient that a mail server sees if that differs. */
const ALLOWED: readonly (readonly [address: string, recipient?: string])[] = [
  ['anna@corp.test'],
  ["o'brien+a_{b}=1/2!#$%&*?^`|~-@corp.test"],
  ['A.n.N.a@Corp.Test', 'A.n.N.a@corp.test'],
  ['-rf@corp.test'],
  ['bücher@laden.test'],
  ['anna@bücher.test'],
  ['🦊@corp.test'],
  [`${'a'.repeat(64)}@${'b'.repeat(63)}.test`],
];

/** Addresses that older versions allowed; some rows also name the address to use instead. */
const REFUSED: readonly (readonly [address: string, use?: string])[] = [
  ['anna<x@corp.test'],
  ['anna>x@corp.test'],
  ['anna(x)@corp.test'],
  ['anna@corp.test(x)'],
  ['anna@corp.test:25'],
  ['anna,bob@corp.test'],
  ['anna;bob@corp.test'],
  ['group:anna@corp.test'],
  ['"anna"@corp.test'],
  ['"@corp.test'],
  ['anna\\x@corp.test'],
  ['a..b@corp.test'],
  ['.anna@corp.test'],
  ['anna.@corp.test'],
  ['anna@-corp.test'],
  ['anna@corp-.test'],
  ['anna@my_host.corp.test'],
  ['anna@[192.0.2.1]'],
  ['anna@192.0.2.1'],
  ['anna@0x7f.1'],
  ['anna@corp。x.test'],
  ['anna@corp.test/x'],
  ['anna@corp%2e.test'],
  [`${'a'.repeat(65)}@corp.test`],
  [`anna@${'b'.repeat(64)}.test`],
  ['anna@xn--bcher-kva.test', 'anna@bücher.test'],
  ['anna@xn--.test'],
  ['straße@corp.test', 'strasse@corp.test'],
];

describe('an email address for a new account', () => {
  it('the address of a new account must be a dot-string and a domain (RFC 5321 §4.1.2), in any script', () => {
    for (const [email] of ALLOWED) expect(newEmailProblem(email), email).to.equal(undefined);
    for (const [email, use] of REFUSED) {
      const problem = use === undefined ? {} : { other: use };
      expect(newEmailProblem(email), email).to.deep.equal(problem);
    }
  });

  it('mail is sent exactly to an allowed address, and never to one that a mail server parses differently', async () => {
    const server = await startMailServer();
    atEndOfFile(server.close);
    const sendMail = createSendMail({ smtpUrl: server.url, from: 'Gate, Inc <gate@localhost>' }, { name: 'Gatehouse' });
    const sentTo = async (address: string): Promise<readonly string[]> => {
      const before = server.received.length;
      const to = { name: 'Anna <x@evil.test>, B', address };
      await sendMail({ to, subject: 'Hello', text: 'Hello' }).catch(() => {});
      return server.received.slice(before).flatMap((mail) => mail.to);
    };
    for (const [email, recipient = email] of ALLOWED) {
      expect(await sentTo(email), email).to.deep.equal([recipient]);
    }
    for (const [email] of REFUSED) {
      const recipients = (await sentTo(email)).map((to) => to.replace('bücher', 'xn--bcher-kva'));
      expect(recipients, email).to.satisfy((all: string[]) => all.every((to) => to === email));
    }
    expect(server.received[0]?.raw).to.include('From: "Gate, Inc" <gate@localhost>');
  });
});

describe('the key of an email address', () => {
  it('all spellings of an email address have the same key, which is its own key, too', () => {
    for (const [plain = '', ...others] of SAME) {
      for (const other of others) expect(emailKey(other), other).to.equal(emailKey(plain));
      expect(emailKey(emailKey(plain))).to.equal(emailKey(plain));
    }
    expect(new Set(DIFFERENT.map(emailKey))).to.have.length(DIFFERENT.length);
  });

  it('an address that differs from its normalized form by more than letter case gets that form as a suggestion', () => {
    const plain = [...SAME.map(([first = '']) => first), 'Iris@Kiln.test', 'B\u00DCCHER@laden.test'];
    expect(plain.map(otherEmailMeant)).to.deep.equal(plain.map(() => undefined));
    expect(otherEmailMeant('stra\u00DFe@laden.test')).to.equal('strasse@laden.test');
    expect(otherEmailMeant('\u0130ris@kiln.test')).to.equal('iris@kiln.test');
    expect(otherEmailMeant('\uFF49ris@kiln.test')).to.equal('iris@kiln.test');
  });
});

forEachDatabase('accounts and spellings of their addresses', (open) => {
  let database: OpenDatabase;
  const accounts = () => createAccountRegistry({ database, changes: silentChangeFeed, clock: systemClock });

  before(async () => {
    database = await open();
  });
  beforeEach(() => database.query('TRUNCATE accounts CASCADE'));

  /** Adds an account as the previous version stored it. */
  const addOlder = (id: string, email: string, minute: number) =>
    database.query(
      `INSERT INTO accounts (id, email, name, created_at)
        VALUES ('acc_000000000000000' || $1, $2, $1, $3)`,
      [id, email, new Date(Date.UTC(2026, 0, 1, 0, minute))],
    );
  const nameAt = async (email: string) => (await accounts().findByEmail(email))?.name;

  it('every spelling of an email address finds its account, and none can be used for a second account', async () => {
    for (const [plain = '', ...others] of SAME) {
      await accounts()
        .add({ email: plain, name: plain })
        .catch(() => {});
      for (const other of others) {
        expect(await nameAt(other), other).to.equal(plain);
        expect(await refusalOf(accounts().add({ email: other, name: 'x' })), other).to.be.oneOf([
          'email_taken',
          'email_ambiguous',
        ]);
      }
    }
    for (const other of DIFFERENT.slice(1)) expect(await nameAt(other), other).to.equal(undefined);
  });

  it('an address that a mail server would parse differently is refused, so that accounts never share a mailbox', async () => {
    for (const [email] of REFUSED) {
      const refusal = await refusalOf(accounts().add({ email, name: 'Anna' }));
      expect(refusal, email).to.be.oneOf(['email_invalid', 'email_ambiguous']);
    }
    const { id } = await accounts().add({ email: 'anna@corp.test', name: 'Anna' });
    expect(await refusalOf(accounts().changeEmail(id, 'anna<x@corp.test'))).to.equal('email_invalid');
  });

  it('existing accounts whose addresses would be refused today are found by them, and are listed', async () => {
    const odd = ['anna<x@corp.test', '"anna"@corp.test', 'anna@corp.test:25'];
    for (const [at, email] of odd.entries()) await addOlder(`${at}`, email, at);
    await accounts().add({ email: 'bücher@laden.test', name: 'Good' });
    await keyEmails(database);
    for (const [at, email] of odd.entries()) expect(await nameAt(email), email).to.equal(`${at}`);
    expect(await accountsWithOddEmails(database)).to.deep.equal(odd.map((_, at) => `acc_000000000000000${at}`));
  });

  it('after the first start, accounts are found by address; only the oldest of several with one address is found', async () => {
    await addOlder('1', 'Stra\u00DFe@laden.test', 3);
    await addOlder('2', 'strasse@laden.test', 2);
    await addOlder('3', '\uFF53trasse@laden.test', 1);
    await addOlder('4', '\u0130pek@laden.test', 4);
    await addOlder('5', 'no address', 5);
    const conflicts = [
      { accountId: 'acc_0000000000000002', holder: 'acc_0000000000000003' },
      { accountId: 'acc_0000000000000001', holder: 'acc_0000000000000003' },
    ];
    // Two nodes start at the same time, and a third one later.
    const seen = await Promise.all([keyEmails(database), keyEmails(database)]);
    expect([...seen, await keyEmails(database)]).to.deep.equal(Array(3).fill(conflicts));
    expect(await nameAt('strasse@laden.test')).to.equal('3');
    expect(await nameAt('ipek@laden.test')).to.equal('4');
    // A stored text that is not an email address is found in exactly this spelling.
    expect(await nameAt('no address')).to.equal('5');
    const { items: all } = await accounts().list();
    expect(all.filter(({ isEmailTaken }) => isEmailTaken).map(({ name }) => name)).to.deep.equal(['2', '1']);
    expect(all).to.have.length(5);
  });

  it('a node that starts waits for another one that gives the same keys', async () => {
    // Transactions of the embedded database run one after the other.
    if (database.embedded) return;
    await addOlder('1', 'ada@laden.test', 2);
    await addOlder('2', '\uFF41da@laden.test', 1);
    let keyed: ReturnType<typeof keyEmails> | undefined;
    await database.transaction(async (tx) => {
      await tx.query("UPDATE accounts SET email_key = 'ada@laden.test' WHERE id = 'acc_0000000000000001'");
      keyed = keyEmails(database);
      keyed.catch(() => {});
      await eventually(async () => {
        const waiting = await database.query(
          'SELECT FROM pg_locks WHERE NOT granted AND database =' +
            ' (SELECT oid FROM pg_database WHERE datname = current_database())' +
            " UNION ALL SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'" +
            ' AND datname = current_database()',
        );
        expect(waiting).to.not.be.empty;
      });
    });
    expect(await keyed).to.deep.equal([{ accountId: 'acc_0000000000000002', holder: 'acc_0000000000000001' }]);
  });

  it('a change of an address is undone if its log entry fails', async () => {
    const { id } = await accounts().add({ email: 'old@laden.test', name: 'Ada' });
    const changing = accounts().changeEmail(id, 'new@laden.test', async () => {
      await Promise.resolve();
      throw new Error('no log');
    });
    expect(await changing.catch((error: Error) => error.message)).to.equal('no log');
    expect(await nameAt('old@laden.test')).to.equal('Ada');
    expect(await nameAt('new@laden.test')).to.equal(undefined);
  });

  it('changing an email address by SQL, without its key, leaves no outdated key', async () => {
    const { id } = await accounts().add({ email: 'old@laden.test', name: 'Ada' });
    await database.query("UPDATE accounts SET email = 'new@laden.test' WHERE id = $1", [id]);
    expect(await nameAt('old@laden.test')).to.equal(undefined);
    expect(await keyEmails(database)).to.deep.equal([]);
    expect(await nameAt('new@laden.test')).to.equal('Ada');
  });

  it('all accounts get the key of their email address, even if there are several batches', async () => {
    await database.query(
      `INSERT INTO accounts (id, email, name, created_at)
        SELECT 'acc_' || lpad(n::text, 16, '0'), 'P' || n || '@laden.test', n::text,
          timestamptz '2026-01-01' + n / 700 * interval '1 microsecond'
        FROM generate_series(1, 2500) n`,
    );
    expect(await keyEmails(database)).to.deep.equal([]);
    const left = await database.query('SELECT FROM accounts WHERE email_key IS NULL OR email_key <> lower(email)');
    expect(left).to.deep.equal([]);
  });
});

describeOn([postgresServer], 'a node that starts with accounts of the previous version', () => {
  const start = startsOn('postgres');

  it('a new node signs in users added by the previous version, and logs accounts that share an address', async () => {
    const before = await start();
    const person = await addPerson(before, 'Ada', 'ada@kiln.test');
    const { id } = await before.accounts.add({ email: 'later@kiln.test', name: 'Eve' });
    await before.database.query('UPDATE accounts SET email_key = NULL');
    await before.database.query('UPDATE accounts SET email = $2 WHERE id = $1', [id, '\uFF41da@kiln.test']);
    const node = await start({ sharing: before });
    const conflicts = node.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ holder }) => holder !== undefined);
    expect(conflicts).to.have.length(1);
    expect(conflicts[0]).to.include({ level: 40, accountId: id, holder: person.accountId });
    expect(node.logLines.join()).not.to.include('kiln.test');
    const email = '\uFF41DA@kiln.test';
    const page = await createPerson(node.issuer).signIn({ ...person, email });
    expect(page.url.pathname).to.equal('/profile');
  });
});
