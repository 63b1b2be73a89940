/** `clients renew` and `revoke --client` for a client that 20,000 users have connected. */
import { expect } from 'chai';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { refresh } from '../support/oauth.ts';
import { describeOn, postgresServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { operatorFor } from './run-operator.ts';

/** How long a node may accept a token after it was ended. */
const MAX_ACCEPTANCE_MS = 1_000;
const PEOPLE = Number(process.env.PEOPLE ?? 20_000);
/** Rows of each statement that adds people: more would exceed its time limit. */
const BATCH = 100_000;
const TRIGGER = 'TRIGGER connections_named';
const ADD_PEOPLE = `INSERT INTO accounts (id, email, email_key, name, created_at)
    SELECT 'many_' || lpad(n::text, 8, '0'), n || '@many.test', n || '@many.test', 'Many', now()
      FROM generate_series($1::int, $2::int) AS n`;
const CONNECT = `INSERT INTO connections (account_id, client_id, connected_at, approved_at, consented_name,
      consented_hosts, generation)
    SELECT 'many_' || lpad(n::text, 8, '0'), $3, now(), now(), 'Partner', '{}', 1
      FROM generate_series($1::int, $2::int) AS n`;

describeOn([postgresServer], 'operator revoke, for a client with very many connections', () => {
  const on = startSeeded({ on: 'postgres', timeoutFactor: 100 });

  it(`tokens of a client of ${PEOPLE} connections are refused within a second of its renewal and of its end`, async () => {
    const { confidential } = on.clients;
    const { accessToken, refreshToken } = await on.partner.tokens(confidential);
    const { database } = on.service;
    // Without this trigger, no announcements are pending when the command starts.
    await database.query(`ALTER TABLE connections DISABLE ${TRIGGER}`);
    for (let from = 1; from <= PEOPLE; from += BATCH) {
      const range = [from, Math.min(PEOPLE, from + BATCH - 1)];
      await database.query(ADD_PEOPLE, range);
      await database.query(CONNECT, [...range, confidential.id]);
    }
    await database.query(`ALTER TABLE connections ENABLE ${TRIGGER}`);
    await database.query('ANALYZE connections');
    const run = operatorFor(on.service);
    /** Returns when the node refuses the token. */
    const untilRefused = async (token: string): Promise<number> => {
      await eventually(async () => expect(await on.partner.isActive(token)).to.equal(false));
      return Date.now();
    };
    const recordedAt = async (action: string): Promise<number> => {
      const [entry] = await database.query<{ at: Date }>('SELECT at FROM activity WHERE action = $1', [action]);
      return entry?.at.getTime() ?? 0;
    };
    const refusedAt = untilRefused(accessToken);
    const renewed = await run(`clients renew ${confidential.id} --yes --json`);
    const renewalMs = (await refusedAt) - (await recordedAt('client_renewed'));
    expect(renewed.exitCode, renewed.errors).to.equal(0);
    const { client_secret: secret } = JSON.parse(renewed.output);
    const lifted = tokensOf(await refresh(on.issuer, { ...confidential, secret }, refreshToken));

    const startedAt = performance.now();
    const endedAt = untilRefused(lifted.accessToken);
    const ended = await run(`revoke --client ${confidential.id} --yes`);
    const seconds = (performance.now() - startedAt) / 1000;
    const revocationMs = (await endedAt) - (await recordedAt('client_tokens_revoked'));
    expect(ended.exitCode, ended.errors).to.equal(0);
    expect(ended.output).to.include(`${PEOPLE + 1} people`);
    expect(await on.service.connections.countOf(confidential.id)).to.equal(0);
    const times = `renewed: refused after ${renewalMs} ms, revoked: after ${revocationMs} ms`;
    process.stdout.write(`      ${times}, all rows after ${seconds.toFixed(1)} s\n`);
    expect(Math.max(renewalMs, revocationMs), times).to.be.at.most(MAX_ACCEPTANCE_MS);
  });
});
