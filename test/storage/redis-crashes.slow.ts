/** Redis is killed again and again while tokens are refreshed and revoked. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type PartnerTokens, partnerTokens, tokensOf } from '../provider/partner-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { refresh, revokeCurrent, type TestClient } from '../support/oauth.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { repeated } from '../support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { seed } from '../support/seed.ts';
import { startTestService } from '../support/service.ts';

const CRASHES = repeated(2);
const CHAINS = 8;
const REVOCATIONS = 30;
/** The crash comes after this many of them. */
const REVOKED_BEFORE = 15;
/** Milliseconds between two revocations. */
const PACE = 10;

describeOn([postgresServer, redisServer], 'tokens in a Redis that is killed', () => {
  for (const appendfsync of ['always', 'everysec'] as const) {
    it(`${CRASHES} kills of Redis lose no refresh token chain and undo no revocation (appendfsync ${appendfsync})`, async () => {
      const redis = await startRedisServer({ appendfsync });
      const settings = { storage: { redisUrl: redis.url } };
      const service = await startTestService({ deployment: 'postgres', settings });
      try {
        const seeded = await seed(service);
        const { issuer, operatorsUrl } = service;
        const { confidential } = seeded.clients;
        const partner = partnerTokens(issuer, seeded);
        const first = await tokensTimes(CHAINS, partner, confidential);
        const chains = first.map(({ refreshToken }) => chainOf(issuer, confidential, refreshToken));
        const revoked: string[] = [];
        for (let crash = 0; crash < CRASHES; crash += 1) {
          const toRevoke = await tokensTimes(REVOCATIONS, partner, confidential);
          const load = new AbortController();
          const working = [
            ...chains.map((chain) => chain.refreshUntil(load.signal)),
            revokeUntil(load.signal, issuer, toRevoke, revoked),
          ];
          const revokedUntil = revoked.length + REVOKED_BEFORE;
          await eventually(() => {
            expect(revoked.length, 'revocations').to.be.at.least(revokedUntil);
            for (const chain of chains) expect(chain.refreshes(), 'refreshes').to.be.above(1);
          });
          await redis.kill();
          load.abort();
          await Promise.all(working);
          await redis.restart();
          await eventually(async () => {
            expect((await fetch(`${operatorsUrl}/readyz`)).status).to.equal(200);
          });

          for (const chain of chains) await chain.expectValid();
          const undone = await Promise.all(revoked.map((token) => partner.isActive(token)));
          expect(undone.filter(Boolean), `revocations undone by crash ${crash}`).to.deep.equal([]);
        }
      } finally {
        await service.close();
        await redis.stop();
      }
    });
  }
});

const tokensTimes = async (count: number, partner: PartnerTokens, client: TestClient) => {
  const tokens = [];
  for (let each = 0; each < count; each += 1) tokens.push(await partner.tokens(client));
  return tokens;
};

/**
 * A client that retries until it succeeds, always with the latest refresh token that it received.
 */
function chainOf(issuer: string, client: TestClient, first: string) {
  let current = first;
  let refreshes = 0;
  async function step(): Promise<number> {
    const answer = await refresh(issuer, client, current);
    if (answer.status === 200) {
      current = tokensOf(answer).refreshToken;
      refreshes += 1;
    }
    return answer.status;
  }
  return {
    async refreshUntil(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) expect(await step()).to.be.oneOf([200, 503]);
    },
    /** The number of refreshes since `expectValid` was called last. */
    refreshes: () => refreshes,
    async expectValid(): Promise<void> {
      // Retry: readiness is checked only once a second, so the node may still be reconnecting to
      // Redis.
      await eventually(async () => expect(await step(), 'the next refresh').to.equal(200));
      refreshes = 0;
    },
  };
}

async function revokeUntil(
  signal: AbortSignal,
  issuer: string,
  tokens: readonly { accessToken: string }[],
  revoked: string[],
): Promise<void> {
  for (const { accessToken } of tokens) {
    if (signal.aborted) return;
    const { status } = await revokeCurrent(issuer, accessToken);
    if (status === 204) revoked.push(accessToken);
    await delay(PACE);
  }
}
