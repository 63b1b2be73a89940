import { expect } from 'chai';
import type { ChangeFeed, ChangeTopic } from '../../src/storage/change-feed.ts';
import { createMemory, type Memory, type MemoryParts } from '../../src/storage/memory.ts';

const MINUTE = 60_000;

describe('memory of people, clients and keys', () => {
  let memory: Memory<string>;
  let now: number;
  let changes: ChangeFeed;
  let tell: (topic: ChangeTopic, key?: string) => void;

  /** What is remembered names the organizations it is made of, one a word. */
  const remembering = (more: Partial<MemoryParts<string | undefined>> = {}) =>
    createMemory<string | undefined>({
      changes,
      clock: () => now,
      topics: ['access', 'connections'],
      within: { topic: 'organizations', namesIn: (value) => value?.split(' ') ?? [] },
      ...more,
    }) as Memory<string>;

  beforeEach(() => {
    now = 1_000_000;
    const listeners: Parameters<ChangeFeed['onChange']>[0][] = [];
    changes = {
      isLive: true,
      onChange: (listener) => void listeners.push(listener),
      onMessage: () => {},
      tell: (...change) => tell(...change),
      forgetEverything: () => tell('everything'),
      close: async () => {},
    };
    tell = (topic, key = '') => {
      for (const listener of listeners) listener(topic, key);
    };
    memory = remembering();
  });

  const answer = (key: string, value: string) => memory.find(key, async () => value);

  it('what changed is forgotten, and nothing else of its topic', async () => {
    for (const told of ['changed', 'changed gate_ci_client']) {
      await answer('changed', 'before');
      await answer('unchanged', 'before');
      tell('connections', told);
      expect(await answer('changed', 'after')).to.equal('after');
      expect(await answer('unchanged', 'after')).to.equal('before');
      tell('everything');
    }
  });

  it('only its own topics, and "everything", end what is remembered', async () => {
    await answer('key', 'first');
    tell('accounts', 'key');
    tell('clients', 'key');
    expect(await answer('key', 'second')).to.equal('first');
    tell('everything');
    expect(await answer('key', 'third')).to.equal('third');
  });

  it('a name that changed ends each value in which it occurs, and no other', async () => {
    const values = ['org_a', 'org_b', 'org_a org_c'];
    for (const value of values) await answer(value, value);
    tell('organizations', 'org_a');
    for (const value of values) await answer(value, `org_z ${value}`);
    const found = await Promise.all(values.map((value) => answer(value, 'asked again')));
    expect(found).to.deep.equal(['org_z org_a', 'org_b', 'org_z org_a org_c']);
    tell('organizations', 'org_c');
    expect(await answer('org_b', 'asked again')).to.equal('org_b');
    expect(await answer('org_a org_c', 'asked again')).to.equal('asked again');
  });

  it('more names than are kept end everything', async () => {
    await answer('key', 'org_a');
    for (let index = 0; index <= 10_000; index += 1) tell('organizations', `org_${index}`);
    expect(await answer('key', 'asked again')).to.equal('asked again');
  });

  it('a slow read that began before a change is neither shared nor remembered after it', async () => {
    const told: [ChangeTopic, string?][] = [
      ['access', 'key'],
      ['organizations', 'org_a'],
      ['everything'],
    ];
    for (const change of told) {
      const slow = Promise.withResolvers<string>();
      const early = memory.find('key', () => slow.promise);
      tell(...change);
      const late = answer('key', 'org_a after');
      slow.resolve('org_a before');
      expect(await early).to.equal('org_a before');
      expect(await late).to.equal('org_a after');
      expect(await answer('key', 'later')).to.equal('org_a after');
      memory.forget('access', 'key');
    }
    // And if nobody asked meanwhile.
    const slow = Promise.withResolvers<string>();
    const early = memory.find('key', () => slow.promise);
    tell('organizations', 'org_a');
    slow.resolve('org_a before');
    await early;
    expect(await answer('key', 'org_a after')).to.equal('org_a after');
  });

  it('nothing is used longer than a minute, though nobody tells of a change', async () => {
    await answer('key', 'first');
    now += MINUTE - 1;
    expect(await answer('key', 'second')).to.equal('first');
    now += 1;
    expect(await answer('key', 'third')).to.equal('third');
    now += MINUTE - 1;
    expect(await answer('key', 'fourth')).to.equal('third');
    now -= 60 * MINUTE;
    expect(await answer('key', 'set back'), 'by a clock that was set back').to.equal('set back');
  });

  it('what is not good enough is read again, and the others share that', async () => {
    await answer('key', 'first');
    const isSecond = (value: string) => value === 'second';
    const again = () => memory.find('key', async () => 'second', isSecond);
    expect(await Promise.all([again(), answer('key', 'third')])).to.deep.equal([
      'second',
      'second',
    ]);
    expect(await memory.find('key', async () => 'third', isSecond)).to.equal('second');
  });

  it('of more than it may keep, what was asked for longest ago is forgotten', async () => {
    memory = remembering({ most: 4, sizeOf: (value) => Number(value?.length) });
    for (const key of ['a', 'b', 'c', 'd']) await answer(key, key);
    await answer('a', '');
    await answer('e', 'e');
    expect(await answer('b', 'B'), 'asked for longest ago').to.equal('B');
    await answer('large', '123');
    expect(await answer('e', 'E'), 'what is larger takes the place of several').to.equal('E');
    await answer('larger than all', '12345');
    expect(await answer('e', '')).to.equal('E');
    expect(await answer('large', '')).to.equal('123');
  });

  it('that there is nothing is remembered of few keys, until something is told of the key', async () => {
    const few = remembering({ mostMissing: 2 }) as Memory<string | undefined>;
    const ask = (key: string, value?: string) => few.find(key, async () => value);
    await ask('somebody', 'there');
    for (const key of ['1', '2', '3']) expect(await ask(key)).to.equal(undefined);
    expect(await ask('2', 'new')).to.equal(undefined);
    expect(await ask('1', 'asked again')).to.equal('asked again');
    tell('access', '2');
    expect(await ask('2', 'new')).to.equal('new');
    expect(await ask('somebody', 'asked again')).to.equal('there');
    now += MINUTE;
    expect(await ask('3', 'new')).to.equal('new');

    const slow = Promise.withResolvers<undefined>();
    const early = few.find('added', () => slow.promise);
    tell('access', 'added');
    slow.resolve(undefined);
    expect(await early).to.equal(undefined);
    expect(await ask('added', 'new')).to.equal('new');
  });
});
