/** What a token store holds of a grant that is refreshed again and again. */
import { expect } from 'chai';
import { Redis } from 'ioredis';
import { refresh, type TestClient } from '../support/oauth.ts';
import type { TestService } from '../support/service.ts';
import { type PartnerTokens, tokensOf } from './partner-tokens.ts';

/** Refreshes a new grant `times` times: one record is there, hardly larger than the first one. */
export async function expectOneRecord(
  service: TestService,
  partner: PartnerTokens,
  client: TestClient,
  times: number,
): Promise<void> {
  const before = await refreshRecords(service);
  let { refreshToken } = await partner.tokens(client);
  const first = await refreshRecords(service);
  for (let time = 0; time < times; time += 1) {
    const answer = await refresh(service.issuer, client, refreshToken);
    expect(answer.status, answer.text).to.equal(200);
    ({ refreshToken } = tokensOf(answer));
  }
  const last = await refreshRecords(service);
  expect(first.count - before.count, 'records of a new grant').to.equal(1);
  expect(last.count - before.count, 'records in the end').to.equal(1);
  // What counts rotations grows by some digits, and nothing else does.
  expect(last.bytes - first.bytes, 'bytes that were added').to.be.below(64);
}

async function refreshRecords({
  settings,
  database,
}: TestService): Promise<{ count: number; bytes: number }> {
  const { redisUrl } = settings.storage;
  if (redisUrl === undefined) {
    const [row] = await database.query<{ count: number; bytes: number }>(
      `SELECT count(*)::int AS count, coalesce(sum(length(data::text)), 0)::int AS bytes
        FROM refresh_families`,
    );
    if (!row) throw new Error('no row');
    return row;
  }
  const redis = new Redis(redisUrl);
  const keys = await redis.keys('gh:r:*');
  const sizes = await Promise.all(keys.map((key) => redis.strlen(key)));
  redis.disconnect();
  return { count: keys.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}
