import { expect } from 'chai';
import { createAccountRegistry } from '../../src/accounts/account-registry.ts';
import { createActivity } from '../../src/accounts/activity.ts';
import { type ApiKeys, createApiKeys } from '../../src/accounts/api-keys.ts';
import { Refusal } from '../../src/refusal.ts';
import { silentChangeFeed } from '../../src/storage/change-feed.ts';
import type { Database } from '../../src/storage/queries.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { forEachDatabase } from '../support/databases.ts';

const LIMIT = 3;
const DAY = 86_400;
const origin = { address: '203.0.113.7', browser: 'curl/8.5.0' };

forEachDatabase('API keys', (open) => {
  let database: Database;
  let apiKeys: ApiKeys;
  let accountId: string;
  let otherId: string;
  let time: TestClock;

  before(async () => {
    database = await open();
  });
  beforeEach(async () => {
    time = createTestClock();
    const parts = { database, changes: silentChangeFeed, clock: time.clock };
    const accounts = createAccountRegistry(parts);
    apiKeys = createApiKeys({ ...parts, activity: createActivity(parts) });
    await database.query('TRUNCATE accounts, activity CASCADE');
    accountId = (await accounts.add({ email: 'ada@demo.test', name: 'Ada' })).id;
    otherId = (await accounts.add({ email: 'eve@demo.test', name: 'Eve' })).id;
  });
  afterEach(() => time.restore());

  const add = (name = 'Export', days: number | 'never' = 30) => {
    const expiresInDays = days === 'never' ? undefined : days;
    return apiKeys.add({ accountId, name, expiresInDays, mostOfPerson: LIMIT }, origin);
  };

  const refusalOf = async (work: Promise<unknown>): Promise<Refusal> => {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error instanceof Refusal) return error;
    throw new Error(`it was not refused: ${error}`);
  };

  it('a key is found by its value, which is kept nowhere', async () => {
    const { key, value } = await add();
    expect(value).to.match(/^gate_key_[A-Za-z0-9_-]{43}$/);
    expect(key).to.include({ accountId, name: 'Export', lastFour: value.slice(-4) });
    expect(key.id).to.match(/^key_/);
    expect(await apiKeys.findByValue(value)).to.deep.equal(key);
    const tables = await Promise.all(
      ['api_keys', 'activity'].map((table) => database.query(`SELECT * FROM ${table}`)),
    );
    expect(JSON.stringify(tables)).to.include(key.id).and.not.include(value.slice(9));
  });

  it('what is not exactly a key is found to be nothing, without an error', async () => {
    const { value } = await add();
    const others = [
      ...['', 'gate_key_', value.slice(0, -1), `${value}a`, `${value}\0`, ` ${value}`],
      ...[
        value.toUpperCase(),
        value.replace('gate_key_', 'gate_at_'),
        `gate_key_${'x'.repeat(43)}`,
      ],
    ];
    for (const other of others) {
      expect(await apiKeys.findByValue(other), other).to.equal(undefined);
    }
  });

  it('a key is good until the moment of its expiry, and one without expiry goes on', async () => {
    const { value } = await add('Short', 30);
    const { value: endless } = await add('Endless', 'never');
    time.advance(30 * DAY - 1);
    expect(await apiKeys.findByValue(value)).to.include({ name: 'Short' });
    time.advance(1);
    expect(await apiKeys.findByValue(value)).to.equal(undefined);
    time.advance(10 * 365 * DAY);
    expect(await apiKeys.findByValue(endless)).to.include({ name: 'Endless' });
  });

  it('a revoked key is gone, and only its person can revoke it', async () => {
    const { key, value } = await add();
    expect(await apiKeys.revoke(otherId, key.id, origin)).to.equal(false);
    expect(await apiKeys.find(otherId, key.id)).to.equal(undefined);
    expect(await apiKeys.findByValue(value)).to.include({ id: key.id });
    expect(await apiKeys.revoke(accountId, key.id, origin)).to.equal(true);
    expect(await apiKeys.findByValue(value)).to.equal(undefined);
    expect(await apiKeys.listOf(accountId)).to.deep.equal([]);
    expect(await apiKeys.revoke(accountId, key.id, origin)).to.equal(false);
    for (const id of ['', 'key_', "key_' OR 1=1", 'key_\x134567890123456']) {
      expect(await apiKeys.revoke(accountId, id, origin), id).to.equal(false);
    }
  });

  it('a person has no more keys than the limit, also when many are made at once', async () => {
    const made = await Promise.allSettled(Array.from({ length: 8 }, () => add()));
    expect(made.filter(({ status }) => status === 'fulfilled')).to.have.length(LIMIT);
    expect(await apiKeys.listOf(accountId)).to.have.length(LIMIT);
    expect(await refusalOf(add())).to.include({ code: 'too_many_api_keys' });
    expect(await apiKeys.add({ accountId: otherId, name: 'x', expiresInDays: 30 }, origin)).to.be
      .ok;

    const [oldest] = await apiKeys.listOf(accountId);
    await apiKeys.revoke(accountId, oldest?.id ?? '', origin);
    await add();
  });

  it('an expired key makes room, is listed for a month and then forgotten', async () => {
    await Promise.all([add('one'), add('two'), add('three')]);
    time.advance(30 * DAY);
    await add('four');
    expect(await apiKeys.removeExpired(10)).to.equal(0);
    expect(await apiKeys.listOf(accountId)).to.have.length(4);
    time.advance(30 * DAY - 1);
    expect(await apiKeys.removeExpired(10)).to.equal(0);
    time.advance(1);
    expect(await apiKeys.removeExpired(2)).to.equal(2);
    expect(await apiKeys.removeExpired(2)).to.equal(1);
    const left = await apiKeys.listOf(accountId);
    expect(left.map(({ name }) => name)).to.deep.equal(['four']);
  });

  it('a key needs a name that can be shown, and one of the offered times', async () => {
    for (const name of ['', '   ', 'x'.repeat(101), 'a\u202eb', 'a\0b', '\ud800']) {
      const { problems } = await refusalOf(add(name));
      expect(
        problems.map(({ code }) => code),
        name,
      ).to.deep.equal(['name_invalid']);
    }
    for (const days of [0, -30, 31, 0.5, 36_500, Number.NaN]) {
      const { problems } = await refusalOf(add('Export', days));
      expect(
        problems.map(({ code }) => code),
        String(days),
      ).to.deep.equal(['expiry_invalid']);
    }
    expect((await refusalOf(add('', 1))).problems).to.have.length(2);
    expect((await add(` ${'é'.repeat(100)} `)).key.name).to.equal('é'.repeat(100));
  });

  it('its last use is kept, and never set back', async () => {
    const { key } = await add();
    const at = new Date(time.clock());
    const before = new Date(time.clock() - 1000);
    await apiKeys.writeUses([
      { id: key.id, at },
      { id: 'key_of_nobody', at },
    ]);
    await apiKeys.writeUses([{ id: key.id, at: before }]);
    expect(await apiKeys.find(accountId, key.id)).to.deep.include({ lastUsedAt: at });
  });

  it('what is made and revoked is in the log of its person, together with the change', async () => {
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
