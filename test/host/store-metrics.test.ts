/** /metrics and /readyz name an unavailable store, until the store is available again, and users can sign out. */
import { expect } from 'chai';
import { granted } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { counted, readinessOf, scrape } from '../support/metrics.ts';
import { clientCredentials, introspect } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { SHORT_TIMEOUT_FACTOR } from '../support/timeout-factor.ts';

describeOn([postgresServer, redisServer], 'an unavailable store', () => {
  const start = startsOn();
  let redis: RedisServer;
  let postgres: PostgresServer;
  const on = startSeeded({
    async on(options) {
      [redis, postgres] = await Promise.all([startRedisServer(), startPostgresServer()]);
      const storage = { databaseUrl: await postgres.createDatabase(), redisUrl: redis.url };
      return start({ ...options, timeoutFactor: SHORT_TIMEOUT_FACTOR, settings: { storage } });
    },
  });

  const up = async () => counted(await scrape(on.service), 'gatehouse_store_up');

  const readiness = () => readinessOf(on.service);

  const untilNotReady = (stores: object): Promise<void> =>
    eventually(async () => {
      const { status, body } = await readiness();
      expect(status).to.equal(503);
      expect(body).to.include({ status: 'not ready', ...stores });
    });

  async function untilUp(): Promise<void> {
    const body = { status: 'ready', database: 'ok', tokens: 'ok' };
    await eventually(async () => expect(await readiness()).to.deep.equal({ status: 200, body }));
    await eventually(async () => expect(await up()).to.deep.equal({ '{store="database"}': 1, '{store="tokens"}': 1 }));
  }

  it('until Redis restarts, the metrics count Redis errors, and report Redis as down and the database as up', async () => {
    await untilUp();
    const lookUps = '{store="tokens",operation="read"}';
    const { accessToken } = await granted(clientCredentials(on.issuer, on.clients.machine));
    const before = counted(await scrape(on.service), 'gatehouse_store_errors_total');
    expect(before).to.deep.equal({});
    await redis.kill();
    for (let index = 0; index < 3; index += 1) {
      const answer = await introspect(on.issuer, on.clients.resourceServer, accessToken);
      expect(answer.status).to.equal(503);
    }
    const samples = await scrape(on.service);
    expect(counted(samples, 'gatehouse_store_errors_total')).to.include({ [lookUps]: 3 });
    await eventually(async () => expect(await up()).to.deep.equal({ '{store="database"}': 1 }));
    await untilNotReady({ database: 'ok', tokens: 'away' });
    await redis.restart();
    await untilUp();
  });

  it('while PostgreSQL hangs, the metrics report it as down, and signing out ends the session and clears the browser', async () => {
    await untilUp();
    const person = createPerson(on.issuer);
    await person.signIn(on.seeded.person);
    const page = await person.get('/logout');
    const copied = { cookie: person.cookieHeader('/profile') };
    const isSignedIn = async () => (await createPerson(on.issuer).get('/profile', copied)).status === 200;
    const before = await isSignedIn();
    postgres.pause();
    try {
      await untilNotReady({ database: 'away', tokens: 'ok' });
      const answer = await person.submit(page, {});
      expect(answer.status).to.equal(503);
      expect(answer.headers.get('clear-site-data')).to.equal('"cache", "storage"');
      expect(person.cookieHeader('/profile')).not.to.include('gate_session');
      await eventually(async () => expect(await up()).to.deep.equal({ '{store="tokens"}': 1 }));
      await eventually(async () => {
        const errors = counted(await scrape(on.service), 'gatehouse_store_errors_total');
        expect(errors['{store="database",operation="ping"}']).to.be.greaterThan(0);
      });
    } finally {
      postgres.resume();
    }
    await untilUp();
    expect([before, await isSignedIn()]).to.deep.equal([true, false]);
  });

  it('a node that is shutting down is not ready, although its stores are available', async () => {
    on.service.readiness.startDraining();
    expect(await readiness()).to.deep.equal({
      status: 503,
      body: { status: 'draining', database: 'ok', tokens: 'ok' },
    });
    expect((await fetch(`${on.service.operatorsUrl}/healthz`)).status).to.equal(200);
  });
});
