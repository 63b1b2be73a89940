import { expect } from 'chai';
import { pino } from 'pino';
import { createLastUsed, type LastUsed, type Use } from '../../src/storage/last-used.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';

const MINUTE = 60;

describe('when something was last used', () => {
  let time: TestClock;
  let written: (readonly Use[])[];
  let isAway: boolean;
  let lastUsed: LastUsed<'key' | 'other'>;
  const logLines: string[] = [];

  beforeEach(() => {
    time = createTestClock();
    written = [];
    isAway = false;
    lastUsed = createLastUsed({
      clock: time.clock,
      log: pino({}, { write: (line) => void logLines.push(line) }),
      writers: {
        key: async (uses) => {
          if (isAway) throw new Error('away');
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

  it('is written after the request, many things in one statement', async () => {
    lastUsed.note('key', 'b');
    lastUsed.note('key', 'a');
    lastUsed.note('key', 'a');
    expect(written).to.deep.equal([]);
    await lastUsed.flush();
    expect(written).to.deep.equal([
      [
        { id: 'a', at: at() },
        { id: 'b', at: at() },
      ],
    ]);
  });

  it('is written at most once in five minutes for each thing, then as of its latest use', async () => {
    lastUsed.note('key', 'a');
    await lastUsed.flush();
    time.advance(5 * MINUTE - 1);
    lastUsed.note('key', 'a');
    lastUsed.note('key', 'b');
    await lastUsed.flush();
    expect(written[1]).to.deep.equal([{ id: 'b', at: at() }]);
    const latest = at();
    time.advance(1);
    await lastUsed.flush();
    expect(written[2]).to.deep.equal([{ id: 'a', at: latest }]);
    await lastUsed.flush();
    expect(written).to.have.length(3);
  });

  it('is written at the end, whatever was written before', async () => {
    lastUsed.note('key', 'a');
    await lastUsed.flush();
    time.advance(1);
    lastUsed.note('key', 'a');
    await lastUsed.close();
    expect(written[1]).to.deep.equal([{ id: 'a', at: at() }]);
  });

  it('is tried again when it could not be written, and the request never knows', async () => {
    isAway = true;
    lastUsed.note('key', 'a');
    await lastUsed.flush();
    expect(logLines.join()).to.include('could not be written');
    isAway = false;
    await lastUsed.flush();
    expect(written).to.deep.equal([[{ id: 'a', at: at() }]]);
  });

  it('is written in batches', async () => {
    for (let index = 0; index < 1_200; index += 1) lastUsed.note('key', `id-${index}`);
    await lastUsed.flush();
    expect(written.map((uses) => uses.length)).to.deep.equal([500, 500, 200]);
  });
});
