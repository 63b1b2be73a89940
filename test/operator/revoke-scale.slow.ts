/** Ending what was issued to a client that very many people have connected. */
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { operatorBeside } from './run-operator.ts';

const PEOPLE = Number(process.env.PEOPLE ?? 20_000);
/** No change of these is announced, so the service has heard every announcement when the command begins. */
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

describeOn([postgresServer], 'operator revoke, a client of very many people', () => {
  const on = startSeeded({ on: 'postgres', patience: 100 });

  it(`ends ${PEOPLE} connections, which count for nothing from the first second on`, async () => {
    const { confidential } = on.clients;
    const { accessToken } = await on.partner.tokens(confidential);
    const { database } = on.service;
    for (const statement of CONNECT) {
      const values = [PEOPLE, confidential.id].slice(0, new Set(statement.match(/\$\d/g)).size);
      await database.query(statement, values);
    }
    await database.query('ANALYZE connections');
    const begun = performance.now();
    let refusedAfter = 0;
    const refused = eventually(async () => {
      expect(await on.partner.isActive(accessToken)).to.equal(false);
      refusedAfter = performance.now() - begun;
    });
    const run = operatorBeside(on.service);
    const ended = await run(`revoke --client ${confidential.id} --yes`);
    const seconds = (performance.now() - begun) / 1000;
    await refused;
    expect(ended.exitCode, ended.errors).to.equal(0);
    expect(ended.output).to.include(`${PEOPLE + 1} people`);
    expect(await on.service.connections.countOf(confidential.id)).to.equal(0);
    process.stdout.write(
      `      refused after ${refusedAfter.toFixed(0)} ms, all rows after ${seconds.toFixed(1)} s\n`,
    );
  });
});
