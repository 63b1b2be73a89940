/** A managed Redis: TLS, an account with few rights, and an INFO that does not show everything. */
import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { explained } from '../../src/service/startup-errors.ts';
import { createRedis } from '../../src/storage/redis/redis.ts';
import { redisLimits } from '../../src/storage/shared-limits.ts';
import { examine } from '../doctor/doctor-findings.ts';
import { storesOf } from '../operator/run-operator.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { clientCredentials, exchangeCode, refresh, revokeCurrent } from '../support/oauth.ts';
import { freePort } from '../support/programs.ts';
import { ask } from '../support/redis-groups.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, openssl, postgresServer, redisServer } from '../support/requirements.ts';
import { writeCertificate } from '../support/reverse-proxies.ts';
import { type Seeded, startSeeded } from '../support/seeded.ts';
import { startsOn } from '../support/service.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { TIMEOUT_FACTOR } from '../support/timeout-factor.ts';
import { failureOf } from './waiting.ts';

const DEPLOYMENT_GUIDE = new URL('../../docs/operations/deploy.md', import.meta.url);
const PASSWORD = 'the password of this test';

/** Issues, refreshes and revokes tokens of a person and of a machine. */
async function expectLifeOfTokens({ issuer, partner, clients }: Seeded): Promise<void> {
  const { confidential, machine } = clients;
  const exchanged = tokensOf(await exchangeCode(issuer, confidential, await partner.code(confidential)));
  expect(await partner.isActive(exchanged.accessToken)).to.equal(true);
  const renewed = tokensOf(await refresh(issuer, confidential, exchanged.refreshToken));
  const { accessToken } = tokensOf(await clientCredentials(issuer, machine));
  for (const token of [renewed.accessToken, accessToken]) {
    expect(await partner.isActive(token)).to.equal(true);
    expect((await revokeCurrent(issuer, token)).status).to.equal(204);
    expect(await partner.isActive(token)).to.equal(false);
  }
}

const warningsOf = ({ service }: Pick<Seeded, 'service'>): readonly string[] =>
  service.logLines
    .map((line) => JSON.parse(line))
    .flatMap(({ level, msg }) => (level === 40 && String(msg).startsWith('Redis') ? [String(msg)] : []));

describeOn([postgresServer, redisServer, openssl], 'a Redis with TLS and restricted rights', () => {
  let redis: RedisServer;
  let redisUrl: string;
  const trusted = getCACertificates();
  before(async () => {
    const [certificate, key] = writeCertificate(temporaryDirectory('managed-redis'));
    setDefaultCACertificates([...trusted, readFileSync(certificate, 'utf8')]);
    const tlsPort = await freePort();
    redis = await startRedisServer({
      'tls-port': String(tlsPort),
      'tls-auth-clients': 'no',
      'tls-cert-file': certificate,
      'tls-key-file': key,
    });
    const [, rule = ''] = /^user gatehouse (.*)$/m.exec(readFileSync(DEPLOYMENT_GUIDE, 'utf8')) ?? [];
    const rights = rule.split(' ').map((word) => (word.startsWith('>') ? `>${PASSWORD}` : word));
    await ask(redis, 'ACL', 'SETUSER', 'gatehouse', ...rights);
    redisUrl = `rediss://gatehouse:${encodeURIComponent(PASSWORD)}@localhost:${tlsPort}`;
  });
  after(() => setDefaultCACertificates(trusted));
  const start = startsOn('postgres');
  const on = startSeeded({
    on: (options) => start({ ...options, settings: { storage: { redisUrl } } }),
  });

  /** Returns the commands and keys that were refused since the last call. */
  async function refused(): Promise<readonly string[]> {
    const entries = (await ask(redis, 'ACL', 'LOG')) as string[][];
    await ask(redis, 'ACL', 'LOG', 'RESET');
    return entries.map((entry) => String(entry[entry.indexOf('object') + 1]));
  }

  it('the rights that the deployment guide grants suffice to issue, use and revoke tokens', async () => {
    await expectLifeOfTokens(on);
    expect(await refused()).to.deep.equal([]);
    expect(warningsOf(on)).to.deep.equal([]);
  });

  it('the restricted rights in Redis suffice for rate limits', async () => {
    const client = createRedis(redisUrl, { timeoutFactor: TIMEOUT_FACTOR });
    await client.connect();
    try {
      const options = { name: 'test', attempts: 1, windowSeconds: 60 };
      const limit = redisLimits(client, { warn: expect.fail }).createAttemptLimit({
        ...options,
        onStoreUnavailable: 'throw',
      });
      expect(await limit.count('key')).to.equal(undefined);
      expect(await limit.count('key')).to.include({ isFirst: true });
      await limit.refund('key');
      await limit.forget('key');
    } finally {
      client.disconnect();
    }
    expect(await refused()).to.deep.equal([]);
  });

  it('the doctor can make all its checks of Redis with the restricted rights', async () => {
    const { of } = await examine({ GATEHOUSE_ISSUER: on.issuer, ...storesOf(on.service) });
    for (const check of ['redis', 'redis_eviction', 'redis_persistence']) {
      expect(of(check).status, check).to.equal('ok');
    }
    expect(await refused(), 'the doctor does without it').to.deep.equal(['config|get']);
  });

  it('a request whose Redis script lacks a right gets 503, and 200 once the right is granted', async () => {
    const { clients, partner } = on;
    const code = await partner.code(clients.confidential);
    await ask(redis, 'ACL', 'SETUSER', 'gatehouse', '-set');
    const exchange = () => exchangeCode(on.issuer, clients.confidential, code);
    expect((await exchange()).status).to.equal(503);
    await ask(redis, 'ACL', 'SETUSER', 'gatehouse', '+set');
    expect((await exchange()).status).to.equal(200);
    expect(await refused()).to.include('set');
  });

  it('a Redis account without the right to use INFO is refused at once with a remedy', async () => {
    await ask(redis, 'ACL', 'SETUSER', 'gatehouse', '-info');
    const warn = console.warn;
    // ioredis prints the refusal, too.
    console.warn = () => {};
    try {
      const failure = await failureOf(start({ settings: { storage: { redisUrl } } }));
      expect(explained(failure)).to.contain('NOPERM').and.contain('grant the missing privilege');
    } finally {
      console.warn = warn;
      await ask(redis, 'ACL', 'SETUSER', 'gatehouse', '+info');
    }
  });
});

describeOn([postgresServer, redisServer], 'a Redis whose INFO does not show everything', () => {
  const { info } = Redis.prototype;
  const usual = /^(maxmemory|used_memory|redis_version)/;
  let hidden = usual;
  before(() => {
    // As a managed service that leaves out fields; what else such a service refuses, the suite above does.
    const withoutFields = async function (this: Redis, ...words: string[]): Promise<string> {
      const text = await Reflect.apply(info, this, words);
      const lines = String(text).split('\r\n');
      return lines.filter((line) => !hidden.test(line)).join('\r\n');
    };
    Object.assign(Redis.prototype, { info: withoutFields });
  });
  after(() => void Object.assign(Redis.prototype, { info }));
  const start = startsOn('postgres+redis');
  const on = startSeeded({ on: start });

  it('if Redis does not report its maxmemory-policy, tokens still work, and the service warns once', async () => {
    await expectLifeOfTokens(on);
    expect(warningsOf(on)).to.deep.equal([
      'Redis does not report its maxmemory-policy: make sure that it is noeviction, because any ' +
        'other policy would lose tokens',
    ]);
  });

  it('the doctor names the checks that it could not make', async () => {
    const { of, troubles } = await examine({ GATEHOUSE_ISSUER: on.issuer, ...storesOf(on.service) });
    expect(of('redis_eviction')).to.include({
      status: 'not_checked',
      message: 'not checked: Redis does not report its maxmemory-policy',
    });
    expect(of('redis_persistence').status).to.equal('ok');
    expect(troubles.filter(({ check }) => check.startsWith('redis'))).to.deep.equal([]);
  });

  it('a Redis that does not report whether it saves its data is accepted with a warning', async () => {
    hidden = /^aof_/;
    const service = await start().finally(() => {
      hidden = usual;
    });
    const warnings = warningsOf({ service });
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.include('does not report whether it keeps an append-only file');
  });
});
