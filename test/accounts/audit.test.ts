import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { type Activity, createActivity, type NewActivity } from '../../src/accounts/activity.ts';
import { ACTIONS, wordsOf } from '../../src/accounts/activity-words.ts';
import { type Audit, type AuditQuestion, createAudit } from '../../src/accounts/audit.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { forEachDatabase } from '../support/databases.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const HOUR = 3_600_000;

forEachDatabase('the audit', (open) => {
  let audit: Audit;
  let activity: Activity;
  let ada: string;
  let now = START;

  before(async () => {
    const database = await open();
    const clock = () => now;
    audit = createAudit({ database });
    activity = createActivity({ database, clock });
    const accounts = createAccountRegistry({ database, clock, changes: silentChangeFeed });
    ada = (await accounts.add({ email: 'ada@example.test', name: 'Ada' })).id;
    const client = { client_id: 'gate_ci_a', client_name: 'A' };
    const entries: NewActivity[] = [
      { action: 'signed_in', actor: 'person', accountId: ada },
      {
        action: 'client_secret_removed',
        actor: 'operator',
        details: { ...client, last_four: 'x7Qa' },
      },
      { action: 'connected', actor: 'person', accountId: ada, details: client },
      { action: 'tokens_revoked', actor: 'client', accountId: ada, details: client },
      { action: 'signed_in', actor: 'person', accountId: 'acc_gone' },
    ];
    for (const entry of entries) {
      await activity.record(entry);
      now += HOUR;
    }
  });

  const found = async (question: Partial<AuditQuestion>) => {
    const records = await audit.find({ limit: 100, ...question });
    return records.map(({ at }) => (at.getTime() - START) / HOUR);
  };

  it('answers the newest first, by person, client, kind, actor and time, all together', async () => {
    expect(await found({})).to.deep.equal([4, 3, 2, 1, 0]);
    expect(await found({ accountId: ada })).to.deep.equal([3, 2, 0]);
    expect(await found({ clientId: 'gate_ci_a' })).to.deep.equal([3, 2, 1]);
    expect(await found({ action: 'signed_in' })).to.deep.equal([4, 0]);
    expect(await found({ actor: 'operator' })).to.deep.equal([1]);
    expect(await found({ lastFour: 'x7Qa' })).to.deep.equal([1]);
    const at = (hours: number) => new Date(START + hours * HOUR);
    expect(await found({ since: at(3) })).to.deep.equal([4, 3]);
    expect(await found({ until: at(2) })).to.deep.equal([1, 0]);
    expect(await found({ until: at(0) })).to.deep.equal([]);
    expect(await found({ since: at(1), until: at(4), accountId: ada })).to.deep.equal([3, 2]);
    const both = { clientId: 'gate_ci_a', actor: 'person' } as const;
    expect(await found(both)).to.deep.equal([2]);
  });

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
