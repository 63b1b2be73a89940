/** The time for which an API with a cache still accepts a token that another node revoked. */
import { expect } from 'chai';
import { eventually } from '../../../test/support/eventually.ts';
import { revokeCurrent } from '../../../test/support/oauth.ts';
import { repeated } from '../../../test/support/repetitions.ts';
import { describeOn, postgresServer, redisServer } from '../../../test/support/requirements.ts';
import { startSeeded } from '../../../test/support/seeded.ts';
import { startsOn } from '../../../test/support/service.ts';
import { bearer, introspectorOf } from './stand-in.ts';

const TIMES = repeated(100);

describeOn([postgresServer, redisServer], 'a cached caller of an API, with two nodes', () => {
  const on = startSeeded();
  const start = startsOn();

  it(`a cached caller is refused after each of ${TIMES} answered revocations`, async () => {
    const { issuer } = await start({ sharing: on.service });
    let ahead = 0;
    const clock = () => Date.now() + ahead;
    const api = introspectorOf(on.clients.resourceServer, {
      issuer,
      live: true,
      clock,
      onFailure: () => {},
    });
    const statusOf = async (token: string) => (await api.identify(bearer(token))).refusal?.status ?? 200;
    /**
     * True if the answer is cached: only such an answer arrives in the same turn of the event loop.
     */
    const isRemembered = (token: string) =>
      Promise.race([statusOf(token).then(() => true), new Promise((later) => setImmediate(later))]);

    const tokens: string[] = [];
    while (tokens.length < TIMES) {
      tokens.push((await on.partner.tokens(on.clients.confidential)).accessToken);
    }
    // Move the time beyond the announcements of the new authorizations, so that callers are cached.
    ahead = 60_000;
    await eventually(async () => {
      for (const token of tokens) await statusOf(token);
      for (const token of tokens) expect(await isRemembered(token)).to.equal(true);
    });
    const waited: number[] = [];
    for (const token of tokens) {
      await eventually(async () => expect(await isRemembered(token)).to.equal(true));
      expect((await revokeCurrent(on.issuer, token)).status).to.equal(204);
      const answered = performance.now();
      while ((await statusOf(token)) !== 401) await new Promise(setImmediate);
      waited.push(performance.now() - answered);
    }
    waited.sort((a, b) => a - b);
    const share = (part: number) => waited[Math.floor(waited.length * part)]?.toFixed(1);
    console.log(`      median ${share(0.5)} ms, p99 ${share(0.99)} ms, longest ${waited.at(-1)?.toFixed(1)} ms`);
  });
});
