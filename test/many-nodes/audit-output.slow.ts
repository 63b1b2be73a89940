/** Activity on the log when the node that writes it ends or is killed. */
import { expect } from 'chai';
import { openDatabase } from '../../src/storage/database.ts';
import type { Queries } from '../../src/storage/queries.ts';
import { operatorFor } from '../operator/run-operator.ts';
import { eventually } from '../support/eventually.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type StartOptions, startsOn, type TestService } from '../support/service.ts';
import { type RunningNode, startNode } from './running-node.ts';

const idsIn = (lines: readonly string[]): number[] =>
  lines.filter((line) => line.includes('"type":"audit"')).map((line) => JSON.parse(line).id as number);

describeOn([postgresServer, redisServer], 'activity on the log, by several nodes', () => {
  const startAny = startsOn('postgres+redis');
  const start = (options: StartOptions = {}) => startAny({ auditPauseMs: 1_000, ...options });
  const holderOf = async ({ database }: { readonly database: Queries }) =>
    (await database.query<{ holder: string | null }>('SELECT holder FROM audit_output'))[0]?.holder;
  const recordOn = async (service: TestService, count: number): Promise<void> => {
    for (let at = 0; at < count; at += 1) {
      await service.activity.record({ action: 'doctor_ran', actor: 'service' });
    }
  };
  const idsOf = async (service: TestService): Promise<number[]> => {
    const rows = await service.database.query<{ id: string }>('SELECT id FROM activity');
    return rows.map(({ id }) => Number(id));
  };

  it('one node puts out what every node and command recorded; when it is killed, another one continues and no entry is missing', async () => {
    const first = await start();
    let killed: RunningNode | undefined;
    try {
      await eventually(async () => expect(await holderOf(first)).to.be.a('string'));
      killed = await startNode({ sharing: first });
      const node = killed;
      await first.close();
      {
        const { storage } = first.settings;
        const database = await openDatabase(storage);
        await eventually(async () => expect(await holderOf({ database })).to.be.a('string'));
        await database.close();
      }
      const second = await start({ sharing: first });
      await eventually(async () => expect(await holderOf(second)).to.be.a('string'));
      await recordOn(second, 5);
      await operatorFor(second)('accounts add --email ada@example.test --name Ada --invite');
      await eventually(async () => {
        const lines = [...node.output().split('\n'), ...second.logLines];
        expect(idsIn(lines)).to.include.members(await idsOf(second));
      });
      expect(idsIn(second.logLines)).to.deep.equal([]);
      await recordOn(second, 5);
      await node.end('SIGKILL');
      const before = idsIn(node.output().split('\n'));
      await recordOn(second, 5);
      await eventually(async () => {
        const ids = [...before, ...idsIn(second.logLines)];
        expect(ids).to.include.members(await idsOf(second));
      });
    } finally {
      await killed?.end('SIGKILL');
    }
  });
});
