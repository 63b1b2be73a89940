/** `POST /changes` sets and removes memberships line by line, and keeps newer changes. */
import { expect } from 'chai';
import { startsOn } from '../support/service.ts';
import { fileOf, type Line, line } from './import-file.ts';
import { ago, countFromBegin, push, pushesTo, SENDERS } from './pushing.ts';

const { account, membership, organization, rights, warehouse } = line;

describe('pushed changes', () => {
  const start = startsOn();
  const { send, results, query, run } = pushesTo(start);
  const roles = () =>
    query(`SELECT a.email, m.role FROM organization_memberships m JOIN accounts a ON a.id = m.account_id
      JOIN organizations o ON o.id = m.organization_id WHERE o.external_id = 'O1' ORDER BY 1`);
  countFromBegin();
  const at = (seconds: number, one: Line): Line => ({ ...one, as_of: ago(seconds) });
  const ending = (one: Line, more: Line = {}): Line => ({ ...one, removed: true, ...more });
  const imported = (file: string, options: string) => run(`import ${file} ${options}`);

  const PLACES = [organization('O1'), warehouse('W1', 'O1')];
  const PERSON = [account('A1'), membership('A1', 'O1'), rights('A1', 'W1', 'read')];

  it('lines add places, people, memberships and rights in their order, and a repeated request is answered unchanged', async () => {
    expect(await results(...PLACES, ...PERSON)).to.deep.equal(Array(5).fill('ok'));
    expect(await roles()).to.deep.equal([{ email: 'a1@example.test', role: 'member' }]);
    expect(await results(...PLACES, ...PERSON)).to.deep.equal(Array(5).fill('unchanged'));
    expect(await results(membership('A1', 'O1', 'admin'))).to.deep.equal(['ok']);
    expect(await roles()).to.deep.equal([{ email: 'a1@example.test', role: 'admin' }]);
  });

  it('a pushed organization gets the policy of its line, otherwise the default policy of the settings', async () => {
    const lines = [organization('O1'), { ...organization('O2'), clients: 'ask' }];
    expect(await results(...lines)).to.deep.equal(['ok', 'ok']);
    const policies = 'SELECT asks_first FROM organizations ORDER BY external_id';
    expect(await query(policies)).to.deep.equal([{ asks_first: false }, { asks_first: true }]);
    const strict = await start({ settings: { senders: SENDERS, organizations: { clients: 'ask' } } });
    await push(strict, [organization('O3')]);
    const [added] = await strict.database.query("SELECT asks_first FROM organizations WHERE external_id = 'O3'");
    expect(added).to.deep.equal({ asks_first: true });
  });

  it('a line with `removed` ends a membership with its rights, rights in a warehouse, or all access of a person', async () => {
    await send(...PLACES, ...PERSON);
    expect(await results(ending(rights('A1', 'W1', 'read')))).to.deep.equal(['ok']);
    expect(await query('SELECT FROM warehouse_rights')).to.have.length(0);
    expect(await results(ending(membership('A1', 'O1')))).to.deep.equal(['ok']);
    expect(await roles()).to.deep.equal([]);
    expect(await results(ending({ type: 'account', external_id: 'A1' }))).to.deep.equal(['ok']);
    const suspended = "SELECT FROM accounts WHERE external_id = 'A1' AND suspended_at IS NOT NULL";
    expect(await query(suspended)).to.have.length(1);
    expect(await results(account('A1'))).to.deep.equal(['ok']);
    expect(await query(suspended)).to.have.length(0);
    const deletion = ending(account('A1'), { deleted: true });
    expect(await results(deletion, deletion)).to.deep.equal(['ok', 'unchanged']);
    expect(await query("SELECT FROM accounts WHERE external_id = 'A1'")).to.have.length(0);
  });

  it('an import neither changes nor prunes a record that was pushed after the time of its file', async () => {
    const before = fileOf(...PLACES, account('A0'), ...PERSON, account('A2'), membership('A2', 'O1'));
    await imported(before, `--as-of ${ago(500)}`);
    const [left, joined] = [ending(membership('A1', 'O1')), account('A3')];
    await send(at(100, left), at(100, joined), at(100, membership('A3', 'O1')));
    await send(at(100, ending(account('A2'), { deleted: true })));
    const nightly = await imported(before, `--as-of ${ago(200)} --prune --prune-at-most 100% --yes`);
    expect(nightly.newer).to.be.above(0);
    expect(await roles()).to.deep.equal([{ email: 'a3@example.test', role: 'member' }]);
    expect(await query("SELECT FROM accounts WHERE external_id = 'A2'")).to.have.length(0);
    await imported(before, `--as-of ${ago(50)} --prune --prune-at-most 100% --yes`);
    expect((await roles()).map((one) => Object.values(one)[0])).to.deep.equal(['a1@example.test', 'a2@example.test']);
    // An older file that is imported later wins: imports are not compared with each other.
    const older = fileOf(...PLACES, account('A1'), membership('A1', 'O1', 'viewer'));
    expect((await imported(older, `--as-of ${ago(400)}`)).newer).to.equal(0);
    expect(await roles()).to.deep.include({ email: 'a1@example.test', role: 'viewer' });
    await imported(before, `--as-of ${ago(50)}`);
    // The time of the file is recorded for each of its lines, even if the line changed nothing.
    expect(await results(at(60, left))).to.deep.equal(['outdated']);
    expect(await results(at(40, left))).to.deep.equal(['ok']);
  });

  it('by default, pushed lines may remove 50 records within an hour, or 10 % of the people if this is more', async () => {
    const people = Array.from({ length: 60 }, (_, index) => `P${index}`);
    await send(...people.map((id) => account(id)));
    const gone = people.map((id) => ending({ type: 'account', external_id: id }));
    const allowed = (all: readonly string[]) => all.filter((result) => result === 'ok').length;
    expect(allowed(await results(...gone))).to.equal(50);
    await query('DELETE FROM pushed_removals');
    await query(`INSERT INTO accounts (id, email, email_key, name, created_at)
      SELECT 'acc_' || lpad(n::text, 16, '0'), n || '@many.test', n || '@many.test', 'Many', now() FROM generate_series(1, 590) n`);
    await send(...people.map((id) => account(id)));
    // 10 % of 650 people are 65.
    expect(allowed(await results(...gone))).to.equal(60);
  });
});
