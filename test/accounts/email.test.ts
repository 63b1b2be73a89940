/** Spellings of an email address that count as the same. */
import { expect } from 'chai';
import { emailKey, newEmailProblem, otherEmailMeant } from '../../src/accounts/email.ts';
import { createSendMail } from '../../src/accounts/mail/mail.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { OpenDatabase } from '../../src/storage/database.ts';
import { refusalOf } from '../clients/refusals.ts';
import { createAccounts } from '../support/accounts.ts';
import { onPostgres } from '../support/databases.ts';
import { startMailServer } from '../support/mail-server.ts';
import { wordsOf } from '../support/words.ts';

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
  ...wordsOf('iris@kiln.test iris@kiln.test. irls@kiln.test iris@kiln-test iris\0@kiln.test iris@@kiln.test'),
  ...['iris @kiln.test', 'ir\u00EFs@kiln.test', '', ' '],
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

/** Refused addresses. */
const REFUSED: readonly string[] = [
  '',
  `${'a'.repeat(65)}@corp.test`,
  `anna@${'b'.repeat(64)}.test`,
  ...wordsOf(`anna anna@ a@b@corp.test anna<x@corp.test anna(x)@corp.test anna@corp.test:25 anna,bob@corp.test
    group:anna@corp.test "anna"@corp.test "@corp.test anna\\x@corp.test a..b@corp.test anna@-corp.test
    anna@my_host.corp.test anna@[192.0.2.1] anna@192.0.2.1 anna@corp。x.test anna@corp.test/x anna@xn--.test`),
];
/** Refused addresses, with the address to use instead. */
const REPLACED = { 'anna@xn--bcher-kva.test': 'anna@bücher.test', 'straße@corp.test': 'strasse@corp.test' };

describe('a new account accepts only an email address that every mail server reads in the same way', () => {
  it('a new email address must be a dot-string and a domain (RFC 5321 §4.1.2), with letters of any alphabet', () => {
    for (const [email] of ALLOWED) expect(newEmailProblem(email), email).to.equal(undefined);
    for (const email of REFUSED) expect(newEmailProblem(email), email).to.deep.equal({});
    for (const [email, other] of Object.entries(REPLACED)) expect(newEmailProblem(email)).to.deep.equal({ other });
  });

  it('mail is sent exactly to an allowed address, and never to one that a mail server parses differently', async () => {
    const server = await startMailServer();
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
    for (const email of [...REFUSED, ...Object.keys(REPLACED)]) {
      const recipients = (await sentTo(email)).map((to) => to.replace('bücher', 'xn--bcher-kva'));
      expect(recipients, email).to.satisfy((all: string[]) => all.every((to) => to === email));
    }
    expect(server.received[0]?.raw).to.include('From: "Gate, Inc" <gate@localhost>');
  });
});

describe('email addresses are compared in a normalized form', () => {
  it('all spellings of an email address have the same key, and emailKey returns a key unchanged', () => {
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

onPostgres('accounts and spellings of their addresses', (open) => {
  let database: OpenDatabase;
  const accounts = () => createAccounts({ database, changes: silentChangeFeed, clock: systemClock });

  before(async () => {
    database = await open();
  });
  beforeEach(() => database.query('TRUNCATE accounts CASCADE'));

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
    for (const email of ['anna@corp', ...REFUSED.slice(0, 5)]) {
      const refusal = await refusalOf(accounts().add({ email, name: 'Anna' }));
      expect(refusal, email).to.be.oneOf(['email_invalid', 'email_ambiguous']);
    }
    const { id } = await accounts().add({ email: 'anna@corp.test', name: 'Anna' });
    expect(await refusalOf(accounts().changeEmail(id, 'anna<x@corp.test'))).to.equal('email_invalid');
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
});
