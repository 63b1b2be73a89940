/** A node that runs while the next version has already migrated the database: it works as before. */
import { expect } from 'chai';
import { partnerTokens } from '../provider/partner-tokens.ts';
import { clientCredentials, introspect, refresh, revokeCurrent } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startTestService, type TestService } from '../support/service.ts';

describeOn([postgresServer, redisServer], 'a node on the schema of the next version', () => {
  const on = startSeeded({ on: 'postgres+redis' });

  before(async () => {
    const { database } = on.service;
    const tables = await database.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'`,
    );
    for (const { name } of tables) {
      if (name === 'gatehouse_migrations') continue;
      await database.query(`ALTER TABLE ${name} ADD COLUMN of_tomorrow text UNIQUE,
        ADD COLUMN also_of_tomorrow text NOT NULL DEFAULT 'new'`);
      await database.query(`CREATE INDEX ON ${name} (also_of_tomorrow)`);
    }
    await database.query('CREATE TABLE tomorrow (id text PRIMARY KEY)');
    await database.query("INSERT INTO gatehouse_migrations (name, run_on) VALUES ('9999_of-tomorrow', now())");
  });

  /** Makes requests that together use most of the tables. */
  async function everything({ issuer }: TestService): Promise<void> {
    const { confidential, machine, resourceServer } = on.clients;
    const partner = partnerTokens(issuer, on.seeded);
    const { refreshToken, accessToken } = await partner.tokens(confidential);
    expect((await introspect(issuer, resourceServer, accessToken)).body.active).to.equal(true);
    expect((await refresh(issuer, confidential, refreshToken)).status).to.equal(200);
    expect((await clientCredentials(issuer, machine)).status).to.equal(200);

    const { browser } = partner;
    const fill = async (at: string, fields: Record<string, string>): Promise<string> => {
      const answered = await browser.submit(await browser.get(at), fields);
      expect(answered.status, answered.html).to.be.oneOf([200, 303]);
      return (await browser.follow(answered)).html;
    };
    const client = { name: 'Tomorrow', redirect_uris: 'https://partner.example/tomorrow' };
    expect(await fill('/profile/oauth-clients/new', client)).to.include('data-secret');
    const key = { name: 'Tomorrow', expires_in_days: '30' };
    expect(await fill('/profile/api-keys', key)).to.include('data-secret');
    for (const page of ['', '/oauth-clients', '/connections', '/api-keys', '/activity']) {
      expect((await browser.get(`/profile${page}`)).status, page).to.equal(200);
    }
    expect((await revokeCurrent(issuer, accessToken)).status).to.equal(204);
    await on.service.lastUsed.flush();
  }

  it('a running node keeps working after the migration to the schema of the next version', () =>
    everything(on.service));

  it('a node can start on the schema of the next version, as in a rollback', async () => {
    const storage = { autoMigrate: false };
    const rolledBack = await startTestService({ sharing: on.service, settings: { storage } });
    await everything(rolledBack).finally(() => rolledBack.close());
  });
});
