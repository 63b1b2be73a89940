import { expect } from 'chai';
import type { ChangeTopic } from '../../src/storage/change-feed.ts';
import { createMemory } from '../../src/storage/memory.ts';

describe('memory of accounts and access', () => {
  it('only its own topics and "everything" end what is remembered', async () => {
    const { memory, tell } = createRemembering(['access']);
    await memory.find('key', async () => 'first');
    tell('accounts');
    tell('clients');
    expect(await memory.find('key', async () => 'second')).to.equal('first');
    tell('access');
    expect(await memory.find('key', async () => 'third')).to.equal('third');
    tell('everything');
    expect(await memory.find('key', async () => 'fourth')).to.equal('fourth');
  });

  it('a slow read that began before a change is not remembered after it', async () => {
    const { memory, tell } = createRemembering(['access']);
    const slow = Promise.withResolvers<string>();
    const early = memory.find('key', () => slow.promise);
    tell('access');
    slow.resolve('before');
    expect(await early).to.equal('before');
    expect(await memory.find('key', async () => 'after')).to.equal('after');
  });
});

function createRemembering(topics: readonly ChangeTopic[]) {
  const listeners: ((topic: ChangeTopic) => void)[] = [];
  const memory = createMemory<string>(
    { isLive: true, onChange: (listener) => void listeners.push(listener), close: async () => {} },
    topics,
  );
  return {
    memory,
    tell: (topic: ChangeTopic) => {
      for (const listener of listeners) listener(topic);
    },
  };
}
