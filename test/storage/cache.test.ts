import { expect } from 'chai';
import fc from 'fast-check';
import { type Cache, type CacheOptions, createCache } from '../../src/storage/cache.ts';
import type { ChangeFeed, ChangeTopic } from '../../src/storage/change-feed.ts';

const MINUTE = 60_000;

describe('cache of people, clients and keys', () => {
  let cache: Cache<string>;
  let now: number;
  let changes: ChangeFeed;
  let announce: (topic: ChangeTopic, key?: string) => void;

  /** Each value is a list of organizations, separated by spaces. */
  const newCache = (more: Partial<CacheOptions<string | undefined>> = {}) =>
    createCache<string | undefined>({
      changes,
      clock: () => now,
      topics: ['access', 'connections'],
      within: { topic: 'organizations', namesIn: (value) => value?.split(' ') ?? [] },
      ...more,
    }) as Cache<string>;

  beforeEach(() => {
    now = 1_000_000;
    const listeners: Parameters<ChangeFeed['onChange']>[0][] = [];
    changes = {
      isLive: true,
      position: undefined,
      onChange: (listener) => void listeners.push(listener),
      onMessage: () => {},
      announce: (...change) => announce(...change),
      announceEverything: () => announce('everything'),
      close: async () => {},
    };
    announce = (topic, key = '') => {
      for (const listener of listeners) listener(topic, key);
    };
    cache = newCache();
  });

  const get = (key: string, value: string, from = cache) => from.get(key, async () => value);

  it('a change removes the cached value of the changed key, and no other value of its topic', async () => {
    for (const changed of ['changed', 'changed gate_ci_client']) {
      await get('changed', 'before');
      await get('unchanged', 'before');
      announce('connections', changed);
      expect(await get('changed', 'after')).to.equal('after');
      expect(await get('unchanged', 'after')).to.equal('before');
      announce('everything');
    }
  });

  it('a value whose key is known only after the read is cached, unless a change is announced during the read', async () => {
    cache.beginRead()('key', 'read');
    expect(await get('key', 'later')).to.equal('read');
    for (const change of ['connections', 'organizations', 'everything'] as const) {
      announce('everything');
      const keep = cache.beginRead();
      announce(change, 'key');
      keep('key', 'outdated');
      expect(await get('key', `after ${change}`)).to.equal(`after ${change}`);
      cache.beginRead()('key', 'read again');
      expect(await get('key', 'later')).to.equal(`after ${change}`);
    }
    now += MINUTE;
    cache.beginRead()('key', 'a minute later');
    expect(await get('key', 'later')).to.equal('a minute later');
  });

  it('a cache of texts and a cache of objects give the answers of a simple model, for texts of all lengths and many changes', async () => {
    const asText = { pack: (value: string) => value, unpack: (text: string) => text };
    const step = fc.record({ place: fc.nat(60), length: fc.nat(15_000), change: fc.nat(20) });
    const steps = fc.array(step, { minLength: 200, maxLength: 400 });
    const walk = fc.asyncProperty(steps, async (taken) => {
      const caches = [newCache({ asText, maxSize: 50 }), newCache({ maxSize: 50 })];
      const model = new Map<string, { value: string; readonly at: number; isCurrent: boolean }>();
      for (const [index, { place, length, change }] of taken.entries()) {
        const key = `key-${place}`;
        const name = `org_${length % 9}`;
        if (change > 10) now += 1_000;
        if (change === 0) announce('access', key);
        if (change === 1) announce('organizations', name);
        if (index === 150) announce('everything');
        if (change === 0) model.delete(key);
        for (const known of model.values()) known.isCurrent &&= !(change === 1 && known.value.startsWith(name));
        if (index === 150) model.clear();

        const value = `${name} ${index}${'ü€'.repeat(length)}`;
        const known = model.get(key);
        const isKnown = known?.isCurrent && now - known.at < MINUTE;
        if (!isKnown) model.delete(key);
        if (!isKnown) model.set(key, { value, at: now, isCurrent: true });
        if (model.size > 50) model.delete([...model.keys()][0] ?? '');
        const found = await Promise.all(caches.map((each) => get(key, value, each)));
        expect(found).to.deep.equal([model.get(key)?.value, model.get(key)?.value]);
      }
    });
    await fc.assert(walk, { numRuns: 10, endOnFailure: true });
  });

  it('a cache of texts returns texts of each length up to a few blocks', async () => {
    cache = newCache({ asText: { pack: (value) => value, unpack: (text) => text } });
    const texts = Array.from({ length: 1_100 }, (_, length) => 'a'.repeat(length));
    for (const text of texts) await get(`key-${text.length}`, text);
    for (const text of texts) expect(await get(`key-${text.length}`, 'later')).to.equal(text);
  });

  it('a cache of texts uses the memory of removed texts again', async () => {
    const sizeOf = (value: string | undefined) => (value?.startsWith('a') ? 1 : 11);
    cache = newCache({ asText: { pack: (value) => value, unpack: (text) => text }, maxSize: 10, sizeOf });
    const { arrayBuffers } = process.memoryUsage();
    for (let index = 0; index < 100_000; index += 1) {
      await get('key', 'a'.repeat(2_000));
      announce('access', 'key');
      await get('larger than all', 'b'.repeat(2_000));
    }
    expect(process.memoryUsage().arrayBuffers - arrayBuffers).to.be.below(100_000_000);
  });

  it('a cache of texts keeps the last used values as objects, and makes no object of an expired text', async () => {
    let unpacked = 0;
    const unpack = (text: string): string => {
      unpacked += 1;
      return text;
    };
    cache = newCache({ asText: { pack: (value) => value, unpack } });
    for (let index = 0; index < 33; index += 1) await get(`key-${index}`, 'first');
    for (const key of ['key-32', 'key-1', 'key-0', 'key-0']) expect(await get(key, 'again')).to.equal('first');
    expect(unpacked).to.equal(1);
    now += MINUTE;
    expect(await get('key-1', 'again')).to.equal('again');
    expect(unpacked).to.equal(1);
    for (let index = 0; index < 40 * 31; index += 1) {
      if (index % 31 === 0) now += MINUTE;
      await get(`key-${index % 31}`, 'reloaded');
    }
    for (let index = 0; index < 31; index += 1) expect(await get(`key-${index}`, 'later')).to.equal('reloaded');
    expect(unpacked).to.equal(1);
  });

  it('only changes of a topic of the cache, or of "everything", remove cached values', async () => {
    await get('key', 'first');
    announce('accounts', 'key');
    announce('clients', 'key');
    expect(await get('key', 'second')).to.equal('first');
    announce('everything');
    expect(await get('key', 'third')).to.equal('third');
  });

  it('a change of a name removes each cached value that contains the name, and no other', async () => {
    const values = ['org_a', 'org_b', 'org_a org_c'];
    for (const value of values) await get(value, value);
    announce('organizations', 'org_a');
    for (const value of values) await get(value, `org_z ${value}`);
    const found = await Promise.all(values.map((value) => get(value, 'asked again')));
    expect(found).to.deep.equal(['org_z org_a', 'org_b', 'org_z org_a org_c']);
    announce('organizations', 'org_c');
    expect(await get('org_b', 'asked again')).to.equal('org_b');
    expect(await get('org_a org_c', 'asked again')).to.equal('asked again');
  });

  it('a cache drops all its values if more names change than it tracks', async () => {
    await get('key', 'org_a');
    for (let index = 0; index <= 10_000; index += 1) announce('organizations', `org_${index}`);
    expect(await get('key', 'asked again')).to.equal('asked again');
  });

  it('the result of a read that began before a change is neither shared nor cached after the change', async () => {
    const announcements: [ChangeTopic, string?][] = [['access', 'key'], ['organizations', 'org_a'], ['everything']];
    for (const change of announcements) {
      await get('key', 'org_b expired');
      now += MINUTE;
      const slow = Promise.withResolvers<string>();
      const early = cache.get('key', () => slow.promise);
      announce(...change);
      const late = get('key', 'org_a after');
      slow.resolve('org_a before');
      expect(await early).to.equal('org_a before');
      expect(await late).to.equal('org_a after');
      expect(await get('key', 'later')).to.equal('org_a after');
      cache.invalidate('access', 'key');
    }
    // Test the same without a second request during the slow read, in a cache that evicts.
    cache = newCache({ maxSize: 2 });
    for (const topic of ['organizations', 'everything'] as const) {
      const slow = Promise.withResolvers<string>();
      const early = cache.get('key', () => slow.promise);
      announce(topic, 'org_a');
      slow.resolve('org_a before');
      await early;
      for (const key of ['key', 'other']) await get(key, 'org_a after');
      expect(await get('key', 'later')).to.equal('org_a after');
      announce('everything');
    }
  });

  it('a failed read is not cached, and a read that fails after a change disturbs no other key', async () => {
    const slow = Promise.withResolvers<string>();
    const failing = cache.get('changed', () => slow.promise).catch(() => 'failed');
    announce('access', 'changed');
    slow.reject(new Error('away'));
    expect(await failing).to.equal('failed');
    for (const key of ['changed', 'b', 'c']) await get(key, key);
    for (const key of ['changed', 'b', 'c']) expect(await get(key, 'later')).to.equal(key);
  });

  it('no cached value is used for longer than a minute, even if no change is announced', async () => {
    await get('key', 'first');
    now += MINUTE - 1;
    expect(await get('key', 'second')).to.equal('first');
    now += 1;
    expect(await get('key', 'third')).to.equal('third');
    now += MINUTE - 1;
    expect(await get('key', 'fourth')).to.equal('third');
    now -= 60 * MINUTE;
    expect(await get('key', 'set back'), 'after the clock was set back').to.equal('set back');
  });

  it('a cached value that a caller does not accept is read again, and other callers share the result', async () => {
    await get('key', 'first');
    const isSecond = (value: string) => value === 'second';
    const again = () => cache.get('key', async () => 'second', isSecond);
    expect(await Promise.all([again(), get('key', 'third')])).to.deep.equal(['second', 'second']);
    expect(await cache.get('key', async () => 'third', isSecond)).to.equal('second');
  });

  it('a full cache evicts the values that were loaded longest ago', async () => {
    cache = newCache({ maxSize: 400, sizeOf: (value) => 100 * Number(value?.length) });
    for (const key of ['a', 'b', 'c', 'd']) await get(key, key);
    await get('a', '');
    await get('e', 'e');
    expect(await get('a', 'A'), 'loaded longest ago, although used since').to.equal('A');
    await get('large', '123');
    expect(await get('e', 'E'), 'a larger value evicts several').to.equal('E');
    await get('larger than all', '12345');
    expect(await get('e', '')).to.equal('E');
    expect(await get('large', '')).to.equal('123');
    await get('as large as all', '1234');
    expect(await get('as large as all', '')).to.equal('1234');
  });

  it('a limited number of absent keys is cached, each until a change of the key is announced', async () => {
    const few = newCache({ maxMisses: 2 }) as Cache<string | undefined>;
    const ask = (key: string, value?: string) => few.get(key, async () => value);
    await ask('existing', 'there');
    for (const key of ['1', '2', '3']) expect(await ask(key)).to.equal(undefined);
    expect(await ask('2', 'new')).to.equal(undefined);
    expect(await ask('1', 'asked again')).to.equal('asked again');
    announce('access', '2');
    expect(await ask('2', 'new')).to.equal('new');
    expect(await ask('existing', 'asked again')).to.equal('there');
    now += MINUTE;
    expect(await ask('3', 'new')).to.equal('new');

    const slow = Promise.withResolvers<undefined>();
    const early = few.get('added', () => slow.promise);
    announce('access', 'added');
    slow.resolve(undefined);
    expect(await early).to.equal(undefined);
    expect(await ask('added', 'new')).to.equal('new');
  });
});
