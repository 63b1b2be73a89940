import { expect } from 'chai';
import { pino } from 'pino';
import { createLastUsed, type LastUsed, type Use } from '../../src/storage/last-used.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';

const MINUTE = 60;

describe('last-used times', () => {
  let time: TestClock;
  let written: (readonly Use[])[];
  let isFailing: boolean;
  let lastUsed: LastUsed<'key' | 'other'>;
  const logLines: string[] = [];

  beforeEach(() => {
    time = createTestClock();
    written = [];
    isFailing = false;
    lastUsed = createLastUsed({
      clock: time.clock,
      log: pino({}, { write: (line) => void logLines.push(line) }),
      writers: {
        key: async (uses) => {
          if (isFailing) throw new Error('unavailable');
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
    await lastUsed.flush();
    expect(written).to.have.length(3);
  });

  it('last-used times are written on close, even if the last write was less than five minutes ago', async () => {
    lastUsed.record('key', 'a');
    await lastUsed.flush();
    time.advance(1);
    lastUsed.record('key', 'a');
    await lastUsed.close();
    expect(written[1]).to.deep.equal([{ id: 'a', at: at() }]);
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
});
