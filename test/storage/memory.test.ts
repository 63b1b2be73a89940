import { expect } from 'chai';
import type { ChangeFeed, ChangeTopic } from '../../src/storage/change-feed.ts';
import { createMemory, type Memory } from '../../src/storage/memory.ts';

const MINUTE = 60_000;
const MOST_REMEMBERED = 10_000;

describe('memory of accounts and access', () => {
  let memory: Memory<string>;
  let now: number;
  let changes: ChangeFeed;
  let tell: (topic: ChangeTopic, key?: string) => void;

  beforeEach(() => {
    now = 1_000_000;
    const listeners: (typeof tell)[] = [];
    changes = {
      isLive: true,
      onChange: (listener) => void listeners.push(listener),
      tell: (...change) => tell(...change),
      forgetEverything: () => tell('everything'),
      close: async () => {},
    };
    tell = (...change) => {
      for (const listener of listeners) listener(...change);
    };
    memory = createMemory<string>({ changes, clock: () => now, topic: 'access' });
  });

  const answer = (key: string, value: string) => memory.find(key, async () => value);

  it('what changed is forgotten, and nothing else of its topic', async () => {
    await answer('changed', 'before');
    await answer('unchanged', 'before');
    tell('access', 'changed');
    expect(await answer('changed', 'after')).to.equal('after');
    expect(await answer('unchanged', 'after')).to.equal('before');
  });

  it('only a topic without a key, and "everything", end all that is remembered', async () => {
    await answer('key', 'first');
    tell('accounts');
    tell('accounts', 'key');
    tell('clients');
    expect(await answer('key', 'second')).to.equal('first');
    tell('access');
    expect(await answer('key', 'third')).to.equal('third');
    tell('everything');
    expect(await answer('key', 'fourth')).to.equal('fourth');
  });

  it('a slow read that began before a change is not remembered after it', async () => {
    for (const key of ['key', undefined]) {
      const slow = Promise.withResolvers<string>();
      const early = memory.find('key', () => slow.promise);
      tell('access', key);
      const late = answer('key', 'after');
      slow.resolve('before');
      expect(await early).to.equal('before');
      expect(await late).to.equal('after');
      expect(await answer('key', 'later')).to.equal('after');
      memory.forget('key');
    }
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

  it('of more than it may keep, what was read longest ago is forgotten', async () => {
    for (let index = 0; index < MOST_REMEMBERED; index += 1) await answer(`${index}`, 'first');
    memory.forget('0');
    await answer('0', 'read again');
    await answer('one more', 'first');
    expect(await answer('0', 'asked again')).to.equal('read again');
    expect(await answer('2', 'asked again')).to.equal('first');
    expect(await answer('1', 'asked again')).to.equal('asked again');
  });

  it('that there is nothing is remembered of few keys, until something is told of the key', async () => {
    const few = createMemory<string | undefined>({
      ...{ changes, clock: () => now, topic: 'access', mostMissing: 2 },
    });
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
