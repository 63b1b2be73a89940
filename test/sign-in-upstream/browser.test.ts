/** The provider buttons in a real browser: content security policy and accessibility. */
import { expect } from 'chai';
import { expectAccessible, PHONE } from '../support/axe.ts';
import { describeInBrowser } from '../support/browser.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { GRACE, startWithUpstream } from './service.ts';

describeInBrowser('the sign-in page with providers, in Chromium', (visit) => {
  const on = startWithUpstream({ hasSecond: true });

  it('the button of a provider leads to the provider and back to the pending consent page', async () => {
    on.upstream.account = GRACE;
    const { page, problems } = await visit(PHONE);
    await page.goto(authorizationUrl(on.service.issuer, on.seeded.clients.confidential).href);
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Sign in with Warehouse platform' }).click();
    // Grace has a password, so the first sign-in with the provider asks what to keep.
    await page.getByRole('heading', { name: 'Do you recognize all of this?' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Keep everything' }).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await page.innerText('body')).to.include('Grace Person');
    expect(problems).to.deep.equal([]);
  });
});
