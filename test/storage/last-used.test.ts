import { expect } from 'chai';
import { pino } from 'pino';
import { createLastUsed, type LastUsed, type Use } from '../../src/storage/last-used.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';

const MINUTE = 60;

describe('last-used times', () => {
  let time: TestClock;
  let written: (readonly Use[])[];
  let isFailing: boolean;
  let duringWrite: () => void;
  let lastUsed: LastUsed<'key' | 'other'>;
  const logLines: string[] = [];

  beforeEach(() => {
    time = createTestClock();
    written = [];
    isFailing = false;
    duringWrite = () => {};
    lastUsed = createLastUsed({
      clock: time.clock,
      log: pino({}, { write: (line) => void logLines.push(line) }),
      writers: {
        key: async (uses) => {
          if (isFailing) throw new Error('unavailable');
          duringWrite();
          written.push(uses);
        },
        other: async () => {},
      },
    });
  });
  afterEach(async () => {
    await lastUsed.close();
    time.restore();
  });

  const at = (): Date => new Date(time.clock());

  it('last-used times are written after the request, several in one statement', async () => {
    lastUsed.record('key', 'b');
    lastUsed.record('key', 'a');
    lastUsed.record('key', 'a');
    expect(written).to.deep.equal([]);
    await lastUsed.flush();
    expect(written).to.deep.equal([
      [
        { id: 'a', at: at() },
        { id: 'b', at: at() },
      ],
    ]);
  });

  it('the last-used time of an item is written at most once in five minutes, with the latest use', async () => {
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    time.advance(5 * MINUTE - 1);
    lastUsed.record('key', 'a');
    lastUsed.record('key', 'b');
    await lastUsed.flush();
    expect(written[1]).to.deep.equal([{ id: 'b', at: at() }]);
    const latest = at();
    time.advance(1);
    await lastUsed.flush();
    expect(written[2]).to.deep.equal([{ id: 'a', at: latest }]);
    time.advance(5 * MINUTE);
    await lastUsed.flush();
    expect(written, 'neither is used again').to.have.length(3);
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    expect(written[3]).to.deep.equal([{ id: 'a', at: at() }]);
  });

  it('last-used times are written later if a write fails, and the request does not fail', async () => {
    isFailing = true;
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    expect(logLines.join()).to.include('could not be written');
    isFailing = false;
    await lastUsed.flush();
    expect(written).to.deep.equal([[{ id: 'a', at: at() }]]);
  });

  it('last-used times are written in batches of 500', async () => {
    for (let index = 0; index < 1_200; index += 1) lastUsed.record('key', `id-${index}`);
    await lastUsed.flush();
    expect(written.map((uses) => uses.length)).to.deep.equal([500, 500, 200]);
  });

  it('many uses of other items do not displace the last use of a key', async () => {
    for (let index = 0; index < 100_100; index += 1) lastUsed.record('other', `id-${index}`);
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    expect(written).to.deep.equal([[{ id: 'a', at: at() }]]);
  });

  it('the last-used time of an id in constant use is written every five minutes, even with many other ids', async () => {
    for (let minute = 0; minute < 6; minute += 1) {
      // More than 100,000 in five minutes.
      for (let index = 0; index < 25_000; index += 1) lastUsed.record('key', `${minute} ${index}`);
      lastUsed.record('key', 'a');
      await lastUsed.flush();
      time.advance(MINUTE);
    }
    const writes = written.flat().filter(({ id }) => id === 'a');
    expect(writes).to.have.length(2);
  });

  it('last-used times are still written after the clock was set back', async () => {
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    time.advance(-60 * MINUTE);
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    expect(written).to.have.length(2);
  });

  it('writing last-used times does not look at ids that were written recently', async () => {
    let idsRead = 0;
    /** An id that counts how often it is compared. */
    const countingId = (text: string) =>
      ({
        toString() {
          idsRead += 1;
          return text;
        },
      }) as string;
    const ids = Array.from({ length: 1_200 }, (_, index) => countingId(`id-${index}`));
    for (const id of ids) lastUsed.record('key', id);
    await lastUsed.flush();
    expect(idsRead).to.be.greaterThan(0);
    for (const id of ids) lastUsed.record('key', id);
    idsRead = 0;
    lastUsed.record('key', 'other');
    await lastUsed.flush();
    expect(written.at(-1)?.map(({ id }) => id)).to.deep.equal(['other']);
    expect(idsRead).to.equal(0);
  });

  it('if an id is used while its last-used time is being written, the newer time follows five minutes later', async () => {
    lastUsed.record('key', 'a');
    duringWrite = () => {
      time.advance(1);
      lastUsed.record('key', 'a');
    };
    await lastUsed.flush();
    duringWrite = () => {};
    const latest = at();
    time.advance(5 * MINUTE - 1);
    await lastUsed.flush();
    expect(written).to.have.length(1);
    time.advance(1);
    await lastUsed.flush();
    expect(written[1]).to.deep.equal([{ id: 'a', at: latest }]);
  });

  it('`close` writes the later time of an item that was used again, even while its first time was being written', async () => {
    lastUsed.record('key', 'a');
    duringWrite = () => {
      duringWrite = () => {};
      time.advance(1);
      lastUsed.record('key', 'a');
    };
    void lastUsed.flush();
    await Promise.resolve();
    await lastUsed.close();
    expect(written[1]).to.deep.equal([{ id: 'a', at: at() }]);
  });
});
