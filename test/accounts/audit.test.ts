import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createActivity, type NewActivity } from '../../src/accounts/activity/activity.ts';
import { ACTIONS, wordsOf } from '../../src/accounts/activity/activity-words.ts';
import { type AuditQuestion, createAudit } from '../../src/accounts/activity/audit.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { testDatabase } from '../support/databases.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const HOUR = 3_600_000;

describe('the audit', () => {
  const database = testDatabase();
  const audit = createAudit({ database });
  let ada: string;

  before(async () => {
    let now = START;
    const clock = () => now;
    const activity = createActivity({ database, clock });
    const accounts = createAccountRegistry({ database, clock, changes: silentChangeFeed });
    ada = (await accounts.add({ email: 'ada@example.test', name: 'Ada' })).id;
    const client = { client_id: 'gate_ci_a', client_name: 'A' };
    const secret = { ...client, last_four: 'x7Qa' };
    const entries: NewActivity[] = [
      { action: 'signed_in', actor: 'person', accountId: ada },
      { action: 'client_secret_removed', actor: 'operator', details: secret },
      { action: 'connected', actor: 'person', accountId: ada, details: client },
      { action: 'tokens_revoked', actor: 'client', accountId: ada, details: client },
      { action: 'signed_in', actor: 'person', accountId: 'acc_gone' },
    ];
    for (const entry of entries) {
      await activity.record(entry);
      now += HOUR;
    }
  });

  const at = (hours: number) => new Date(START + hours * HOUR);
  const both = { clientId: 'gate_ci_a', actor: 'person' } as const;
  const questions: [by: string, () => Partial<AuditQuestion>, hours: number[]][] = [
    ['nothing', () => ({}), [4, 3, 2, 1, 0]],
    ['person', () => ({ accountId: ada }), [3, 2, 0]],
    ['client', () => ({ clientId: 'gate_ci_a' }), [3, 2, 1]],
    ['kind', () => ({ action: 'signed_in' }), [4, 0]],
    ['actor', () => ({ actor: 'operator' }), [1]],
    ['secret', () => ({ lastFour: 'x7Qa' }), [1]],
    ['when it began', () => ({ since: at(3) }), [4, 3]],
    ['when it ended', () => ({ until: at(2) }), [1, 0]],
    ['an end before all', () => ({ until: at(0) }), []],
    ['time and person', () => ({ since: at(1), until: at(4), accountId: ada }), [3, 2]],
    ['client and actor', () => both, [2]],
  ];
  for (const [by, question, hours] of questions) {
    it(`answers by ${by}, the newest first`, async () => {
      const records = await audit.find({ limit: 100, ...question() });
      expect(records.map(({ at }) => (at.getTime() - START) / HOUR)).to.deep.equal(hours);
    });
  }

  it('goes on where a page ended', async () => {
    const pages: number[][] = [];
    let before: number | undefined;
    do {
      const page = await audit.find({ limit: 2, before });
      pages.push(page.map(({ at }) => (at.getTime() - START) / HOUR));
      before = page.at(-1)?.id;
    } while (before !== undefined);
    expect(pages).to.deep.equal([[4, 3], [2, 1], [0], []]);
  });

  it('names the person while the account is there', async () => {
    const [gone, , , , signedIn] = await audit.find({ limit: 5 });
    expect(signedIn).to.include({ email: 'ada@example.test', accountId: ada });
    expect(gone).to.include({ accountId: 'acc_gone' }).and.not.have.property('email');
  });

  it('has words for every kind of activity', () => {
    expect(ACTIONS).to.include.members(['tokens_revoked', 'client_tokens_revoked']);
    for (const action of ACTIONS) {
      expect(wordsOf({ action, details: {} }).what, action).to.match(/^[A-Z]/);
    }
  });
});
