/** Settings that are reloaded repeatedly under load. */
import { expect } from 'chai';
import { startSeeded } from '../support/seeded.ts';
import type { Overrides } from '../support/service.ts';
import { mixedRequests } from './mixed-requests.ts';
import { startLoad } from './steady-load.ts';

describe('a reload', () => {
  let found: Overrides = {};
  const on = startSeeded({ reloaded: () => found });

  it('repeated reloads under load lose no request', async () => {
    const { partner } = on;
    const { accessToken } = await partner.tokens(on.clients.confidential);
    const about = { accessToken, session: partner.browser };
    const load = startLoad(mixedRequests(on.issuer, on.seeded, about));
    for (let turn = 0; turn < 10; turn += 1) {
      await load.more(20);
      found = {
        tokens: { machineAccessTokenSeconds: 100 + turn, retryWindowSeconds: turn },
        server: { proxyHops: turn % 2 },
        log: { level: turn % 2 === 0 ? 'silent' : 'debug' },
      };
      const { changed } = await on.service.reload();
      expect(changed).to.include('tokens.machine_access_token');
    }
    await load.stop();
    expect(load.failures).to.deep.equal([]);
  });
});
