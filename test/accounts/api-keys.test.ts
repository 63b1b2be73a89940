import { expect } from 'chai';
import { createPeople } from '../../src/accounts/access/people.ts';
import { ACCOUNT_COLUMNS, type AccountRow, accountFrom } from '../../src/accounts/account.ts';
import { createActivity } from '../../src/accounts/activity/activity.ts';
import { createApiKeys } from '../../src/accounts/api-keys/api-keys.ts';
import type { Refusal } from '../../src/base/refusal.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import { failureOf } from '../storage/waiting.ts';
import { createAccounts } from '../support/accounts.ts';
import { testDatabase } from '../support/databases.ts';

const LIMIT = 3;
const DAY = 86_400_000;
const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

describe('API keys', () => {
  let now = Date.parse('2031-02-03T04:05:06Z');
  const database = testDatabase();
  const parts = { database, changes: silentChangeFeed, clock: () => now };
  const accounts = createAccounts(parts);
  const apiKeys = createApiKeys({ ...parts, activity: createActivity(parts) });
  let accountId: string;
  let otherId: string;

  beforeEach(async () => {
    await database.query('TRUNCATE accounts, activity CASCADE');
    accountId = (await accounts.add({ email: 'ada@demo.test', name: 'Ada' })).id;
    otherId = (await accounts.add({ email: 'eve@demo.test', name: 'Eve' })).id;
  });

  const add = (name = 'Export', days: number | 'never' = 30) => {
    const expiresInDays = days === 'never' ? undefined : days;
    return apiKeys.add({ accountId, name, expiresInDays, maxOfUser: LIMIT }, origin);
  };

  const refusalOf = async (work: Promise<unknown>) => (await failureOf(work)) as Refusal;

  it('a value that differs from an API key in any way finds no key and causes no error', async () => {
    const { value } = await add();
    const cut = ['', 'gate_key_', value.slice(0, -1), `${value}a`, `${value}\0`, ` ${value}`];
    const alike = [value.toUpperCase(), value.replace('key', 'at'), `gate_key_${'x'.repeat(43)}`];
    for (const other of [...cut, ...alike]) {
      expect(await apiKeys.findByValue(other), other).to.equal(undefined);
    }
  });

  it('finding a user by an API key caches the account, but no password hash and no other unneeded data', async () => {
    const { value } = await add();
    const caching = { ...parts, changes: { ...silentChangeFeed, isLive: true } };
    const people = createPeople(caching);
    await createApiKeys({ ...caching, activity: createActivity(parts), people }).findByValue(value);
    const read = await people.find(accountId);
    const account = await accounts.find(accountId);
    expect(read?.account).to.deep.equal(account);
    const [row] = await database.query<AccountRow>(`SELECT *, ${ACCOUNT_COLUMNS} FROM accounts`);
    expect(row).to.include.keys('password_hash');
    expect(accountFrom(row as AccountRow)).to.deep.equal(account);
  });

  it('an API key is valid until the moment it expires; an API key without expiry stays valid', async () => {
    const { value } = await add('Short', 30);
    const { value: endless } = await add('Endless', 'never');
    now += 30 * DAY - 1;
    expect(await apiKeys.findByValue(value)).to.include({ name: 'Short' });
    now += 1;
    expect(await apiKeys.findByValue(value)).to.equal(undefined);
    now += 10 * 365 * DAY;
    expect(await apiKeys.findByValue(endless)).to.include({ name: 'Endless' });
  });

  it('the maximum number of keys is per account, and counts only existing keys', async () => {
    for (let count = 0; count < LIMIT; count += 1) await add();
    expect(await refusalOf(add())).to.include({ code: 'too_many_api_keys' });
    const other = { accountId: otherId, name: 'x', expiresInDays: 30, maxOfUser: LIMIT };
    expect(await apiKeys.add(other, origin)).to.be.an('object');
    const [oldest] = await apiKeys.listOf(accountId);
    await apiKeys.revoke(accountId, oldest?.id ?? '', origin);
    await add();
  });

  it('an expired key does not count towards the limit, is listed for 30 more days, and is then deleted', async () => {
    await Promise.all([add('one'), add('two'), add('three')]);
    now += 30 * DAY;
    await add('four');
    expect(await apiKeys.removeExpired(10)).to.equal(0);
    expect(await apiKeys.listOf(accountId)).to.have.length(4);
    now += 30 * DAY - 1;
    expect(await apiKeys.removeExpired(10)).to.equal(0);
    now += 1;
    expect(await apiKeys.removeExpired(2)).to.equal(2);
    expect(await apiKeys.removeExpired(2)).to.equal(1);
    const left = await apiKeys.listOf(accountId);
    expect(left.map(({ name }) => name)).to.deep.equal(['four']);
  });

  it('an API key must have a displayable name and one of the offered lifetimes', async () => {
    for (const name of ['', '   ', 'x'.repeat(101), 'a\u202eb', 'a\0b', '\ud800']) {
      const { problems } = await refusalOf(add(name));
      expect(problems, name).to.have.length(1).and.have.nested.property('[0].code', 'name_invalid');
    }
    for (const days of [0, -30, 31, 0.5, 36_500, Number.NaN]) {
      const { problems } = await refusalOf(add('Export', days));
      expect(problems).to.have.length(1).and.have.nested.property('[0].code', 'expiry_invalid');
    }
    expect((await refusalOf(add('', 1))).problems).to.have.length(2);
    expect((await add(` ${'é'.repeat(100)} `)).key.name).to.equal('é'.repeat(100));
  });

  it('the last use of an API key is stored, and never set to an earlier time', async () => {
    const { key } = await add();
    const at = new Date(now);
    const uses = [key.id, 'key_of_nobody'].map((id) => ({ id, at }));
    await apiKeys.writeUses(uses);
    await apiKeys.writeUses([{ id: key.id, at: new Date(now - 1_000) }]);
    expect(await apiKeys.find(accountId, key.id)).to.deep.include({ lastUsedAt: at });
  });

  it('adding and revoking an API key is logged for its account, in the same transaction', async () => {
    const { key } = await add();
    await apiKeys.revoke(accountId, key.id, origin);
    const rows = await database.query<{ action: string; details: object; address: string }>(
      'SELECT action, details, address, account_id FROM activity ORDER BY id',
    );
    const details = { api_key_id: key.id, api_key_name: 'Export', last_four: key.lastFour };
    const common = { details, address: origin.address, account_id: accountId };
    expect(rows).to.deep.equal([
      { action: 'api_key_added', ...common },
      { action: 'api_key_revoked', ...common },
    ]);
  });
});
