/** An unreachable provider: its users get an explanation, and other sign-ins are not affected. */
import { expect } from 'chai';
import { said } from '../pages/client-owner.ts';
import { GRACE, startWithUpstream, WITH_PLATFORM } from './service.ts';

describe('an unreachable provider stops neither the service nor other sign-in methods', () => {
  const on = startWithUpstream({ hasSecond: true });
  const asked = (): number =>
    on.upstream.requests.filter((path) => path === '/.well-known/openid-configuration').length;

  const visit = async () => {
    const person = on.traveller();
    return person.submit(await person.get('/login'), WITH_PLATFORM);
  };

  // Each test begins after the time for which the service remembers a failed request of the one before.
  beforeEach('the provider breaks', () => {
    on.clock.advance(31);
    on.upstream.state = 'broken';
  });

  it('if a provider is unreachable, the service starts, and its users get an explanation and other methods', async () => {
    expect(asked()).to.equal(0);
    const page = await visit();
    expect(page.status).to.equal(503);
    expect(page.headers.get('retry-after')).to.equal('30');
    expect(page.html).to.include('<bdi>Warehouse platform</bdi> does not answer');
    expect(on.service.logLines.join()).to.include(said('upstream.away-heading', { provider: 'a sign-in provider' }));
    expect((await on.traveller().signIn(on.seeded.other)).html).to.include('Oscar Other');
    on.second.account = GRACE;
    const person = on.traveller();
    const there = await person.submit(await person.get('/login'), { sign_in_with: 'partner' });
    expect((await person.travel(there)).html).to.include('Grace Person');
  });

  it('after a failed request to the provider, sign-ins are refused for half a minute without another request', async () => {
    const before = asked();
    for (let times = 0; times < 3; times += 1) expect((await visit()).status).to.equal(503);
    expect(asked()).to.equal(before + 1);
  });

  it('a request to a provider that never answers ends with a timeout', async () => {
    on.upstream.state = 'hung';
    const before = asked();
    expect((await visit()).status).to.equal(503);
    expect(asked()).to.equal(before + 1);
  });

  it('a recovered provider is used again; while it is unreachable, a callback signs no user in', async () => {
    expect((await visit()).status).to.equal(503);
    const before = asked();
    on.upstream.state = 'up';
    on.clock.advance(31);
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    expect(asked()).to.equal(before + 1);
    const person = on.traveller();
    const callback = await person.untilCallback(await person.submit(await person.get('/login'), WITH_PLATFORM));
    on.upstream.state = 'broken';
    const page = await person.get(callback);
    expect(page.status).to.equal(503);
    expect((await person.get('/profile')).status).to.equal(303);
  });

  it('unfinished sign-ins with a provider are limited per network; finished ones do not count', () =>
    on.service.withSettings({ limits: { waitingSignInsPerAddress: 3 } }, async () => {
      on.upstream.state = 'up';
      on.upstream.account = GRACE;
      const first = on.traveller();
      expect((await first.travel(await first.submit(await first.get('/login'), WITH_PLATFORM))).html).to.include(
        'Grace',
      );
      for (let times = 0; times < 3; times += 1) expect((await visit()).status).to.equal(303);
      const page = await visit();
      expect(page.status).to.equal(429);
      expect(Number(page.headers.get('retry-after'))).to.be.within(1, 600);
    }));
});
