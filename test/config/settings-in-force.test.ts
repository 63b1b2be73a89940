/**
 * Settings of the server, the stores and the tokens have their effect with values other than their defaults, as those of
 * the limits have in failure-limits.test.ts, sign-in-limits.test.ts and known-devices.test.ts.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { expect } from 'chai';
import { knownSettings } from '../../src/config/schema/known-settings.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/metrics.ts';
import { clientCredentials, exchangeCode, introspect, refresh } from '../support/oauth.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';

const SOURCE = path.join(import.meta.dirname, '../../src');

describe('no setting is without effect', () => {
  const all = [...knownSettings.values()];

  it('each setting is read by the service', () => {
    const readers = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('config/'))
      .map((name) => readFileSync(path.join(SOURCE, name), 'utf8'));
    const code = readers.join('\n').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    const unread = all.filter(({ codePath }) => !new RegExp(`\\b${codePath.at(-1)}\\b`).test(code));
    expect(unread.map(({ name }) => name)).to.deep.equal([]);
  });
});

const CONNECTIONS = 12;
const settings = {
  server: { host: '127.0.0.1', maxConnections: CONNECTIONS },
  storage: { databaseConnections: 4, rememberedPeople: 1 },
  tokens: {
    authorizationCodeSeconds: 60,
    accessTokenSeconds: 120,
    machineAccessTokenSeconds: 90,
    refreshTokenSeconds: 1_000,
    absoluteAgeSeconds: 2_500,
  },
};

/** Maximum seconds by which the clocks of the stores differ from the test clock. */
const SLACK = 10;

describeOn([postgresServer, redisServer], 'a service with other settings', () => {
  const on = startSeeded({ on: 'postgres+redis', clock: true, settings });
  const port = (): number => Number(new URL(on.issuer).port);

  it('server.host is the only address at which the service listens', async () => {
    const [error] = await once(connect(port(), '127.0.0.2'), 'error');
    expect(error).to.have.property('code', 'ECONNREFUSED');
  });

  it('server.max_connections limits the open connections, and further ones are closed', async () => {
    const sockets = Array.from({ length: CONNECTIONS + 5 }, () => connect(port(), '127.0.0.1'));
    let closed = 0;
    for (const socket of sockets) {
      socket.on('error', () => {});
      socket.on('close', () => {
        closed += 1;
      });
    }
    await eventually(() => expect(closed).to.be.at.least(5));
    expect(closed).to.be.below(sockets.length);
    for (const socket of sockets) socket.destroy();
    await eventually(async () => {
      expect((await clientCredentials(on.issuer, on.clients.machine)).status).to.equal(200);
    });
  });

  it('storage.database_connections limits the open connections', async () => {
    const { database } = on.service;
    const { promise: seen, resolve: release } = Promise.withResolvers<void>();
    const held = Array.from({ length: 7 }, () => database.transaction(() => seen));
    await eventually(() => {
      const { used, waiting } = database.connections();
      expect(used).to.equal(4);
      // The service's own queries may wait as well.
      expect(waiting).to.be.at.least(3);
    }).finally(release);
    await Promise.all(held);
  });

  it('storage.remembered_people limits the number of users in the cache', async () => {
    const [first, second] = await Promise.all(
      ['First', 'Second'].map((name) => apiKeyOf(on.service, on.seeded.person, name)),
    );
    const present =
      (...keys: (typeof first)[]) =>
      async () => {
        for (const key of keys) await introspect(on.issuer, on.clients.resourceServer, key?.value ?? '');
      };
    const remembered = await queriesOf(on.service, present(first, first));
    expect(await queriesOf(on.service, present(first, second))).to.be.above(remembered);
  });

  it('tokens.* set the lifetimes of codes and tokens', async () => {
    const { confidential, machine } = on.clients;
    const { isActive } = on.partner;
    const code = await on.partner.code(confidential);
    on.clock.advance(60 + SLACK);
    expect((await exchangeCode(on.issuer, confidential, code)).body.error).to.equal('invalid_grant');

    const issued = await clientCredentials(on.issuer, machine);
    expect(issued.body.expires_in).to.equal(90);
    on.clock.advance(90 - SLACK);
    expect(await isActive(tokensOf(issued).accessToken)).to.equal(true);
    on.clock.advance(2 * SLACK);
    expect(await isActive(tokensOf(issued).accessToken)).to.equal(false);

    const tokens = await on.partner.tokens(confidential);
    on.clock.advance(120 - SLACK);
    expect(await isActive(tokens.accessToken)).to.equal(true);
    on.clock.advance(2 * SLACK);
    expect(await isActive(tokens.accessToken)).to.equal(false);

    const { refreshToken: unused } = await on.partner.tokens(confidential);
    on.clock.advance(1_000 + SLACK);
    const late = await refresh(on.issuer, confidential, unused);
    expect(late.body.error_description).to.include('refresh token has expired');

    let { refreshToken } = await on.partner.tokens(confidential);
    for (const seconds of [900, 900, 600]) {
      on.clock.advance(seconds);
      const answer = await refresh(on.issuer, confidential, refreshToken);
      expect(answer.status, answer.text).to.equal(200);
      ({ refreshToken } = tokensOf(answer));
    }
    // The last access token expires with its authorization.
    const last = await refresh(on.issuer, confidential, refreshToken);
    expect(Number(last.body.expires_in)).to.be.within(100 - SLACK, 100 + SLACK);
    on.clock.advance(100 + SLACK);
    expect(await isActive(tokensOf(last).accessToken)).to.equal(false);
    const old = await refresh(on.issuer, confidential, tokensOf(last).refreshToken);
    const cause = 'the authorization has reached its greatest age, connect again';
    expect(old.body).to.include({ error: 'invalid_grant', error_description: cause });
  });
});
