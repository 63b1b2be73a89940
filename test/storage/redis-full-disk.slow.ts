/** A Redis that cannot write to its disk: nothing is promised meanwhile, and nothing is lost. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import {
  clientCredentials,
  exchangeCode,
  postForm,
  refresh,
  revokeCurrent,
} from '../support/oauth.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { type Seed, seed } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';

describeOn([postgresServer, redisServer], 'Redis without a disk to write to', () => {
  let server: RedisServer;
  let redis: Redis;
  let service: TestService;
  let seeded: Seed;

  before(async () => {
    // A snapshot that fails makes Redis refuse writes (MISCONF), where it takes snapshots at all.
    const snapshots = { save: '3600 1000000', 'enable-protected-configs': 'yes' };
    server = await startRedisServer(snapshots);
    redis = new Redis(server.url);
    const settings = { storage: { redisUrl: server.url } };
    service = await startTestService({ deployment: 'postgres', settings });
    seeded = await seed(service);
  });
  after(async () => {
    await service?.close();
    redis?.disconnect();
    await server?.stop();
  });

  const snapshot = async (wanted: 'ok' | 'err'): Promise<void> => {
    await redis.bgsave();
    await eventually(async () => {
      const info = await redis.info('persistence');
      expect(info).to.include('rdb_bgsave_in_progress:0');
      expect(info).to.include(`rdb_last_bgsave_status:${wanted}`);
    });
  };

  it('answers 503 to what must be kept, revokes nothing by halves, and goes on afterwards', async () => {
    const { issuer, operatorsUrl } = service;
    const { confidential, machine } = seeded.clients;
    const partner = partnerTokens(issuer, seeded);
    const code = await partner.code(confidential);
    const { accessToken, refreshToken } = await partner.tokens(confidential);
    const [, directory = ''] = (await redis.config('GET', 'dir')) as string[];

    // No file can be made there, not even by root.
    await redis.config('SET', 'dir', '/proc');
    await snapshot('err');
    for (const [what, answer] of Object.entries({
      exchange: await exchangeCode(issuer, confidential, code),
      refresh: await refresh(issuer, confidential, refreshToken),
      'client credentials': await clientCredentials(issuer, machine),
      'revocation by the holder': await revokeCurrent(issuer, accessToken),
      'revocation by the client': await postForm(
        ...([issuer, '/oauth/revoke', { token: refreshToken }, { client: confidential }] as const),
      ),
    })) {
      expect([answer.status, answer.body.error], what).to.deep.equal([
        ...[503, 'temporarily_unavailable'],
      ]);
      expect(answer.headers.get('retry-after'), what).to.equal('2');
    }
    expect((await fetch(`${operatorsUrl}/readyz`)).status).to.equal(503);
    // What is there can still be read, and it is all there.
    expect(await partner.isActive(accessToken)).to.equal(true);

    await redis.config('SET', 'dir', directory);
    await snapshot('ok');
    await eventually(async () => {
      expect((await fetch(`${operatorsUrl}/readyz`)).status).to.equal(200);
    });
    const exchanged = await exchangeCode(issuer, confidential, code);
    expect(exchanged.status, exchanged.text).to.equal(200);
    const refreshed = await refresh(issuer, confidential, refreshToken);
    expect(refreshed.status, refreshed.text).to.equal(200);
    expect(await revokeCurrent(issuer, accessToken)).to.include({ status: 204 });
    expect(await partner.isActive(accessToken)).to.equal(false);
    expect(await partner.isActive(tokensOf(refreshed).accessToken)).to.equal(false);
  });
});
