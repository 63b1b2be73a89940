/** A provider that is away: its people are told, and nobody else notices. */
import { expect } from 'chai';
import { GRACE, startWithUpstream, WAY } from './service.ts';

describe('while a provider is away', () => {
  const on = startWithUpstream({ hasSecond: true });
  const asked = (): number =>
    on.upstream.requests.filter((path) => path === '/.well-known/openid-configuration').length;

  it('the service starts, and its people are told calmly and shown the other ways', async () => {
    on.upstream.state = 'broken';
    expect(asked()).to.equal(0);
    const person = on.traveller();
    const page = await person.submit(await person.get('/login'), WAY);
    expect(page.status).to.equal(503);
    expect(page.headers.get('retry-after')).to.equal('30');
    expect(page.html).to.include('Warehouse platform does not answer');
    expect(page.html).to.include('Other ways to sign in');
    expect(on.service.logLines.join()).to.include('a provider of sign-ins does not answer');
  });

  it('the next ones are told at once, for half a minute', async () => {
    expect(asked()).to.equal(1);
    for (let times = 0; times < 3; times += 1) {
      const person = on.traveller();
      const page = await person.submit(await person.get('/login'), WAY);
      expect(page.status).to.equal(503);
    }
    expect(asked()).to.equal(1);
  });

  it('people with a password, and of another provider, come in', async () => {
    expect((await on.traveller().signIn(on.seeded.other)).html).to.include('Oscar Other');
    on.second.account = GRACE;
    const person = on.traveller();
    const there = await person.submit(await person.get('/login'), { sign_in_with: 'partner' });
    expect((await person.travel(there)).html).to.include('Grace Person');
  });

  it('one that takes requests and answers none is given up', async () => {
    on.clock.advance(31);
    on.upstream.state = 'hung';
    const person = on.traveller();
    const page = await person.submit(await person.get('/login'), WAY);
    expect(page.status).to.equal(503);
    expect(asked()).to.equal(2);
  });

  it('nobody is let in by what it said before: back, it is asked anew', async () => {
    on.upstream.state = 'up';
    on.clock.advance(31);
    expect((await on.signIn(GRACE)).html).to.include('Grace Person');
    expect(asked()).to.equal(3);
    const person = on.traveller();
    const callback = await person.untilCallback(
      await person.submit(await person.get('/login'), WAY),
    );
    on.upstream.state = 'broken';
    const page = await person.get(callback);
    expect(page.status).to.equal(503);
    expect((await person.get('/profile')).status).to.equal(303);
  });
});

describe('sign-ins with a provider that are begun and left', () => {
  const on = startWithUpstream({ settings: { limits: { waitingSignInsPerAddress: 3 } } });

  it('are kept up to a number for each network; one that is finished makes room', async () => {
    on.upstream.account = GRACE;
    const begin = async () => {
      const person = on.traveller();
      const page = await person.submit(await person.get('/login'), WAY);
      return { person, page };
    };
    const first = await begin();
    expect((await first.person.travel(first.page)).html).to.include('Grace Person');
    for (let times = 0; times < 3; times += 1) expect((await begin()).page.status).to.equal(303);
    const { page } = await begin();
    expect(page.status).to.equal(429);
    expect(Number(page.headers.get('retry-after'))).to.be.within(1, 600);
  });
});
