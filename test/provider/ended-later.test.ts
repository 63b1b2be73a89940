/** Ending holds however long after the approval it comes: cleaning forgets nothing it must know. */
import { expect } from 'chai';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { refresh } from '../support/oauth.ts';
import { type Seed, seed } from '../support/seed.ts';
import { forEachDeployment, type TestService } from '../support/service.ts';
import { partnerTokens } from './partner-tokens.ts';

forEachDeployment('an authorization that is ended later', (start) => {
  let clock: TestClock;
  let service: TestService;
  let seeded: Seed;

  before(async () => {
    clock = createTestClock();
    service = await start({ clock: clock.clock });
    seeded = await seed(service);
  });
  after(() => clock?.restore());

  it('is over for good two minutes and several cleanings after the approval', async () => {
    const { confidential } = seeded.clients;
    const partner = partnerTokens(service.issuer, seeded);
    const { accessToken, refreshToken } = await partner.tokens(confidential);
    for (let minute = 0; minute < 2; minute += 1) {
      clock.advance(60);
      await service.clean();
    }
    expect(await partner.isActive(accessToken)).to.equal(true);
    const disconnect = await partner.askToDisconnect(confidential);
    await disconnect();
    expect(await partner.isActive(accessToken)).to.equal(false);
    const { status } = await refresh(service.issuer, confidential, refreshToken);
    expect(status).to.equal(400);
  });
});
