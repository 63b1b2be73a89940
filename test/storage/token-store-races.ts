/** Nodes that ask a token store for the same thing at once: what may happen once happens once. */
import { expect } from 'chai';
import { createPostgresStore } from '../../src/storage/postgres-store.ts';
import type { TokenStore } from '../../src/storage/token-store.ts';
import { forEachDatabase } from '../support/databases.ts';
import { forEachStore } from '../support/stores.ts';

const PARALLEL = 20;

const inAnHour = (): number => Math.floor(Date.now() / 1000) + 3_600;
let drawn = 0;
function newId(): string {
  drawn += 1;
  return `id_of_this_race_${drawn}`;
}

/** @param rounds how often each race is run. */
export function defineTokenStoreRaces(rounds: number): void {
  forEachStore('token store, asked from two nodes at once', (open) => {
    let nodes: readonly [TokenStore, TokenStore];

    before(async () => {
      const { store, anotherNode } = await open();
      nodes = [store, await anotherNode()];
    });

    /** Asks both nodes in turn, all before the first answer. */
    const together = <Result>(ask: (node: TokenStore, index: number) => Promise<Result>) =>
      Promise.all(
        Array.from({ length: PARALLEL }, (_, index) => ask(nodes[index % 2 === 0 ? 0 : 1], index)),
      );
    const count = <Result>(results: readonly Result[], wanted: Result): number =>
      results.filter((result) => result === wanted).length;
    const stepTo = (rotation: number, attempt: string) => ({
      rotation,
      attempt,
      data: { attempt },
      now: Date.now(),
      expiresAt: inAnHour(),
    });

    it('one of 20 attempts consumes a code', async () => {
      for (let round = 0; round < rounds; round += 1) {
        const id = newId();
        await nodes[0].write('code', id, {}, inAnHour());
        const results = await together((node, index) => node.consumeCode(id, `attempt${index}`));
        expect(count(results, true)).to.equal(1);
      }
    });

    it('one of 20 attempts advances a family, and leaves its data', async () => {
      const id = newId();
      await nodes[0].startFamily(id, {}, Date.now(), inAnHour());
      for (let rotation = 1; rotation <= rounds; rotation += 1) {
        const results = await together((node, index) =>
          node.advanceFamily(id, stepTo(rotation, `attempt${index}`)),
        );
        expect(count(results, 'advanced')).to.equal(1);
        expect(count(results, 'already')).to.equal(PARALLEL - 1);
        const data = { attempt: `attempt${results.indexOf('advanced')}` };
        expect(await nodes[1].readFamily(id)).to.deep.include({ rotation, data });
      }
    });

    it('a removed family is gone, however many advance it meanwhile', async () => {
      for (let round = 0; round < rounds; round += 1) {
        const id = newId();
        await nodes[0].startFamily(id, {}, Date.now(), inAnHour());
        await together<unknown>((node, index) =>
          index === round % PARALLEL
            ? node.removeFamily(id)
            : node.advanceFamily(id, stepTo(1 + index, `attempt${index}`)),
        );
        expect(await nodes[1].readFamily(id)).to.equal(undefined);
      }
    });

    it('one of 20 removals finds the record', async () => {
      for (let round = 0; round < rounds; round += 1) {
        const id = newId();
        await nodes[0].write('interaction', id, {}, inAnHour());
        const results = await together((node) => node.remove('interaction', id));
        expect(count(results, true)).to.equal(1);
      }
    });

    it('a removed record is gone, however many replace it meanwhile', async () => {
      for (let round = 0; round < rounds; round += 1) {
        const id = newId();
        await nodes[0].write('interaction', id, {}, inAnHour());
        await together<unknown>((node, index) =>
          index === round % PARALLEL
            ? node.remove('interaction', id)
            : node.replace('interaction', id, { index }, inAnHour()),
        );
        expect(await nodes[1].read('interaction', id)).to.equal(undefined);
      }
    });

    it('a code is consumed or removed, and nothing brings it back', async () => {
      for (let round = 0; round < rounds; round += 1) {
        const id = newId();
        await nodes[0].write('code', id, {}, inAnHour());
        await together((node, index) =>
          index === round % PARALLEL
            ? node.remove('code', id)
            : node.consumeCode(id, `attempt${index}`),
        );
        expect(await nodes[1].read('code', id)).to.equal(undefined);
      }
    });
  });
}

export function defineCleaningRace(): void {
  forEachDatabase('token store, cleaned by two nodes at once', (open) => {
    it('each expired row is deleted once, and neither node waits for the other', async () => {
      const database = await open();
      const store = createPostgresStore({ database, clock: () => Date.now() + 3_700_000 });
      for (let number = 0; number < 60; number += 1) {
        await store.write('code', newId(), {}, inAnHour());
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
