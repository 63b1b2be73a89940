/** `revoke --client` for a client that 20,000 users have connected: how long it takes. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { operatorFor } from './run-operator.ts';

const PEOPLE = Number(process.env.PEOPLE ?? 20_000);
/**
 * Adds connections with the trigger disabled, so that no announcements are pending when the command
 * starts.
 */
const CONNECT = [
  'ALTER TABLE connections DISABLE TRIGGER connections_named',
  `INSERT INTO accounts (id, email, email_key, name, created_at)
    SELECT 'many_' || lpad(n::text, 8, '0'), n || '@many.test', n || '@many.test', 'Many', now()
      FROM generate_series(1, $1) AS n`,
  `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name,
      consented_hosts, generation)
    SELECT 'many_' || lpad(n::text, 8, '0'), $2, now(), now(), 'Partner', '{}', 1
      FROM generate_series(1, $1) AS n`,
  'ALTER TABLE connections ENABLE TRIGGER connections_named',
];

describeOn([postgresServer], 'operator revoke, for a client with very many connections', () => {
  const on = startSeeded({ on: 'postgres', timeoutFactor: 100 });

  it(`one command ends ${PEOPLE} connections, whose tokens are refused within the first second`, async () => {
    const { confidential } = on.clients;
    const { accessToken } = await on.partner.tokens(confidential);
    const { database } = on.service;
    for (const statement of CONNECT) {
      const values = [PEOPLE, confidential.id].slice(0, new Set(statement.match(/\$\d/g)).size);
      await database.query(statement, values);
    }
    await database.query('ANALYZE connections');
    const startedAt = performance.now();
    let refusedAfter = 0;
    const refused = eventually(async () => {
      expect(await on.partner.isActive(accessToken)).to.equal(false);
      refusedAfter = performance.now() - startedAt;
    });
    const run = operatorFor(on.service);
    const ended = await run(`revoke --client ${confidential.id} --yes`);
    const seconds = (performance.now() - startedAt) / 1000;
    await refused;
    expect(ended.exitCode, ended.errors).to.equal(0);
    expect(ended.output).to.include(`${PEOPLE + 1} people`);
    expect(await on.service.connections.countOf(confidential.id)).to.equal(0);
    process.stdout.write(`      refused after ${refusedAfter.toFixed(0)} ms, all rows after ${seconds.toFixed(1)} s\n`);
  });
});
