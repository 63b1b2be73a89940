/** The doctor finds no problem behind the reverse proxies of docs/operations. */
import { expect } from 'chai';
import { environmentOf, nodeBehind, trusting } from '../doctor/behind-proxy.ts';
import { examine } from '../doctor/doctor-findings.ts';
import { eventually } from '../support/eventually.ts';
import { createOpened } from '../support/opened.ts';
import { describeOn, openssl, postgresServer, redisServer } from '../support/requirements.ts';
import { DOCUMENTED_PROXIES, startProxy } from './documented-proxies.ts';

for (const proxy of DOCUMENTED_PROXIES) {
  describeOn([postgresServer, redisServer, openssl, proxy], `behind ${proxy.name}`, () => {
    const opened = createOpened();
    after(opened.closeAll);

    it('the documented proxy configuration passes the checks of the doctor and redirects HTTP to HTTPS', async () => {
      const { issuer, plainOrigin, certificate, nodes } = await startProxy(opened, proxy);
      const [one, another] = nodes;
      const node = await nodeBehind(opened, issuer, { address: one });
      await nodeBehind(opened, issuer, { sharing: node, address: another });
      await trusting(certificate, async () => {
        await eventually(async () => expect((await fetch(issuer)).status).to.be.below(500));
        const { troubles, output, exitCode } = await examine(environmentOf(node));
        expect({ troubles, exitCode }, output).to.deep.equal({ troubles: [], exitCode: 0 });
      });
      const { status, headers } = await fetch(`${plainOrigin}/login?a=b`, { redirect: 'manual' });
      expect(status).to.be.within(301, 308);
      expect(headers.get('location')).to.match(/^https:\/\/localhost(:\d+)?\/login\?a=b$/);
    });
  });
}
