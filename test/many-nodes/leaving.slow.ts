/**
 * A node that is ready can be stopped without losing a request. `main.test.ts` stops one in the middle of a request, and
 * `rolling-restarts.slow.ts` stops nodes under load.
 */
import { expect } from 'chai';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { launchNode } from './running-node.ts';

describeOn([postgresServer, redisServer], 'a node that receives SIGTERM', () => {
  const on = startSeeded({ on: 'postgres+redis' });

  it('a node reports that it is ready only when it can handle SIGTERM without losing a request', async () => {
    const { service } = on;
    const { database } = service;
    // The last write of a start, the first with which the node says that it is ready, waits here.
    await database.query(`CREATE FUNCTION hold_the_ready() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock(1946); RETURN new; END $$`);
    await database.query(`CREATE TRIGGER hold_the_ready BEFORE UPDATE ON node_keys FOR EACH ROW
      WHEN (new.state = 'ready' AND old.state = 'starting') EXECUTE FUNCTION hold_the_ready()`);
    const holder = new pg.Client({ connectionString: service.settings.storage.databaseUrl });
    await holder.connect();
    await holder.query('SELECT pg_advisory_lock(1946)');
    const isHeld = async (): Promise<boolean> =>
      (await holder.query("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).rowCount !== 0;
    const { node, atOnce } = await eventually(async () => {
      const launched = await launchNode({ sharing: service });
      await launched.waitUntil(async () => expect(await isHeld()).to.equal(true));
      const readyz = launched.readyz().then(({ status }) => status);
      const answer = await readyz.catch(() => 'no connection');
      if (await isHeld()) return { node: launched, atOnce: answer };
      await launched.end('SIGKILL');
      throw new Error('the write was over before the answer of /readyz: on a slow machine it has a time limit');
    }).finally(async () => {
      await holder.end();
      await database.query('DROP FUNCTION hold_the_ready CASCADE');
    });
    expect(atOnce).to.equal('no connection');
    await node.waitUntil(async () => expect((await node.readyz()).status).to.equal(200));
    process.kill(node.pid, 'SIGTERM');
    expect(await node.exitCode, node.output()).to.equal(0);
  });
});
