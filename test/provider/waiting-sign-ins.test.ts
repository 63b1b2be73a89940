/** Authorization requests that wait for a sign-in: their number and their size are limited. */
import { expect } from 'chai';
import { authorizationUrl, type Parameters } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { inRedis } from '../support/redis-server.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { startSeeded } from '../support/seeded.ts';

const MAX = 5;
const MAX_BYTES_EACH = 2_048 + 2_048;

describeOn([postgresServer, redisServer], 'requests that wait for a sign-in', () => {
  const on = startSeeded({
    on: 'postgres+redis',
    settings: { limits: { waitingSignInsPerAddress: MAX } },
  });

  const request = (parameters: Parameters = {}): URL =>
    authorizationUrl(on.issuer, on.clients.confidential, parameters);
  /** Returns the redirect that a new browser receives. */
  const answer = async (url: URL): Promise<URL | undefined> => (await createPerson(on.issuer).get(url)).location;

  const stored = () =>
    inRedis(on.service.settings.storage.redisUrl ?? '', async (redis) => {
      const keys = await redis.keys('*');
      const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key)));
      return { keys: keys.length, bytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0) };
    });

  it('an authorization request with a state longer than 2 kB is refused, and the client receives the reason', async () => {
    const before = await stored();
    for (const state of ['s'.repeat(2_047), 'ü'.repeat(1_024), 's'.repeat(14_000)]) {
      const { searchParams } = (await answer(request({ state }))) ?? new URL('none:');
      expect(searchParams.get('error')).to.equal('invalid_request');
      expect(searchParams.get('error_description')).to.include('state must not be longer than');
      expect(searchParams.get('state')).to.equal(state);
    }
    expect(await stored()).to.deep.equal(before);
  });

  it('answered authorization requests, and those of a signed-in user, do not count as waiting', async () => {
    const waiting = createPerson(on.issuer);
    for (let round = 0; round < 2 * MAX; round += 1) {
      const decision = round % 2 === 0 ? 'approve' : 'deny';
      const { searchParams } = await createPerson(on.issuer).authorize(request(), on.seeded.person, decision);
      expect(searchParams.get('error'), `round ${round}`).to.be.oneOf([null, 'access_denied']);
    }
    await waiting.signIn(on.seeded.person);
    for (let asked = 0; asked < 2 * MAX; asked += 1) {
      const { location } = await waiting.get(request({ prompt: 'consent' }));
      expect(location?.pathname).to.match(/^\/interaction\//);
    }
  });

  it('the number of pending sign-ins per address and their stored size are limited; more sign-ins get 429', async () => {
    const before = await stored();
    const long = { ui_locales: 'x'.repeat(4_000), login_hint: 'y'.repeat(4_000), display: 'page' };
    const url = request({ state: 's'.repeat(2_046), ...long });
    for (let asked = 0; asked < 4 * MAX; asked += 1) {
      const { status, location, headers, html } = await createPerson(on.issuer).get(url);
      if (asked < MAX) expect(location?.pathname).to.match(/^\/interaction\//);
      else {
        expect(status).to.equal(429);
        expect(Number(headers.get('retry-after'))).to.be.within(1, 600);
        expect(html).to.include('Too many sign-ins from your network');
      }
    }
    const after = await stored();
    // Allow one more key, for the counter.
    expect(after.keys - before.keys).to.be.within(MAX, MAX + 1);
    expect(after.bytes - before.bytes).to.be.below(MAX * MAX_BYTES_EACH);
  });
});
