/** Two nodes send a token store the same step at once: a single-use step succeeds exactly once. */
import { expect } from 'chai';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { forEachDatabase } from '../support/databases.ts';
import { forEachStore } from '../support/stores.ts';
import { FACTS, newId } from './token-store-contract.ts';

const PARALLEL = 20;

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;

/** @param rounds how often each race is run. */
export function defineTokenStoreRaces(rounds: number): void {
  forEachStore('token store, used by two nodes at once', (open) => {
    let nodes: readonly [TokenStore, TokenStore];

    before(async () => {
      const { store, anotherNode } = await open();
      nodes = [store, await anotherNode()];
    });

    /** Sends the calls to both nodes alternately, all before either node has answered. */
    const onNodes = <Result>(ask: (node: TokenStore, index: number) => Promise<Result>) =>
      Promise.all(Array.from({ length: PARALLEL }, (_, index) => ask(nodes[index % 2 === 0 ? 0 : 1], index)));
    const count = <Result>(results: readonly Result[], wanted: Result): number =>
      results.filter((result) => result === wanted).length;
    const lifetimes = { refreshSeconds: 3_600 };
    const begin = async (): Promise<string> => {
      const id = newId();
      const ages = { codeSeconds: 600, absoluteSeconds: undefined };
      await nodes[0].beginAuthorization(id, FACTS, ages);
      return id;
    };
    const rotateAll = async (id: string, from: number, retryWindowSeconds: number) => {
      const issues = await onNodes((node, index) =>
        node.rotate(id, { ...lifetimes, from, attempt: `attempt${index}`, retryWindowSeconds }),
      );
      return issues.map(({ outcome }) => outcome);
    };

    const beginExchanged = async (): Promise<string> => {
      const id = await begin();
      await nodes[0].exchangeCode(id, { ...lifetimes, attempt: 'only' });
      return id;
    };
    const itEachTime = (title: string, race: (round: number) => Promise<void>) =>
      it(title, async () => {
        for (let round = 0; round < rounds; round += 1) await race(round);
      });

    itEachTime('only one of 20 parallel attempts exchanges a code; the others are replays', async () => {
      const id = await begin();
      const issues = await onNodes((node, index) =>
        node.exchangeCode(id, { ...lifetimes, attempt: `attempt${index}` }),
      );
      const outcomes = issues.map(({ outcome }) => outcome);
      expect(count(outcomes, 'issued')).to.equal(1);
      expect(count(outcomes, 'replayed')).to.equal(PARALLEL - 1);
    });

    it('one of 20 parallel refreshes succeeds, and the others are retries with the same result', async () => {
      const id = await beginExchanged();
      for (let from = 0; from < rounds; from += 1) {
        const outcomes = await rotateAll(id, from, 60);
        expect(count(outcomes, 'issued')).to.equal(1);
        expect(count(outcomes, 'retried')).to.equal(PARALLEL - 1);
        expect(await nodes[1].readAuthorization(id)).to.include({ rotation: from + 1 });
      }
    });

    itEachTime('without a retry window, one of 20 parallel refreshes succeeds; the others are replays', async () => {
      const id = await beginExchanged();
      const outcomes = await rotateAll(id, 0, 0);
      expect(count(outcomes, 'issued')).to.equal(1);
      expect(count(outcomes, 'replayed')).to.equal(PARALLEL - 1);
    });

    itEachTime('an ended authorization stays ended during concurrent operations', async (round) => {
      const id = await beginExchanged();
      const step = { ...lifetimes, retryWindowSeconds: 60 };
      const ended = await onNodes<unknown>((node, index) => {
        if (index % 5 === round % 5) return node.endAuthorization(id);
        if (index % 3 === 0) return node.confirmRotation(id, 1);
        if (index % 3 === 1) return node.exchangeCode(id, { ...lifetimes, attempt: 'only' });
        return node.rotate(id, { ...step, from: index, attempt: `attempt${index}` });
      });
      expect(count<unknown>(ended, true)).to.be.at.most(1);
      expect(await nodes[1].readAuthorization(id)).to.equal(undefined);
    });

    itEachTime('only one of 20 parallel removals finds the record', async () => {
      const id = newId();
      await nodes[0].write('interaction', id, {}, inAnHour());
      const results = await onNodes((node) => node.remove('interaction', id));
      expect(count(results, true)).to.equal(1);
    });

    itEachTime('a removed record stays removed even if it is replaced concurrently', async (round) => {
      const id = newId();
      await nodes[0].write('interaction', id, {}, inAnHour());
      await onNodes<unknown>((node, index) =>
        index === round % PARALLEL
          ? node.remove('interaction', id)
          : node.replace('interaction', id, { index }, inAnHour()),
      );
      expect(await nodes[1].read('interaction', id)).to.equal(undefined);
    });
  });
}

export function defineCleaningRace(): void {
  forEachDatabase('token store, cleaned by two nodes at once', (open) => {
    it('each expired row is deleted by one node only, and neither node waits for the other', async () => {
      const database = await open();
      const store = createPostgresStore({ database, clock: () => Date.now() + 3_700_000 });
      for (let number = 0; number < 60; number += 1) {
        await store.write('interaction', newId(), {}, inAnHour());
      }
      const removed = await Promise.all(Array.from({ length: 8 }, () => store.removeExpired(10)));
      let total = removed.reduce((sum, number) => sum + number, 0);
      for (let last = -1; last !== 0; total += last) last = await store.removeExpired(10);
      expect(Math.max(...removed)).to.be.at.most(10);
      expect(total).to.equal(60);
      expect(await database.query('SELECT 1 FROM token_records')).to.deep.equal([]);
    });
  });
}
