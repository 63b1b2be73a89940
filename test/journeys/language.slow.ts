/** Every kind of page in German and in the made-up language, whose texts are longer. */
import { expect } from 'chai';
import { LIST, signInOwner } from '../pages/client-owner.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { expectFitting, PHONE } from '../support/axe.ts';
import { describeInBrowser, enterAs } from '../support/browser.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { PSEUDO, pseudoLanguage } from '../support/pseudo-language.ts';
import { startSeeded } from '../support/seeded.ts';

describeInBrowser('the language of the pages in a browser', (visit) => {
  const on = startSeeded();

  // `accessibility.slow.ts` looks at the same pages in English: only the texts differ here.
  it('pages in German and in the made-up language fit on a phone', async () => {
    const { person } = on.seeded;
    await on.partner.tokens(on.clients.confidential);
    const connection = `/profile/connections/${on.clients.confidential.id}`;
    const consent = authorizationUrl(on.issuer, on.clients.otherConfidential).href;
    const { id } = await (await signInOwner(on.service, person)).createClient('Stock Sync');
    const client = `${LIST}/${id}`;
    const parts = ['', '/connect', '/settings', '/secrets', '/problems', '/links', '/test', '/delete'];
    const developers = [LIST, `${LIST}/new`, ...parts.map((part) => client + part), '/errors', '/errors/invalid_grant'];
    const paths = ['/profile', '/profile/connections', connection, '/profile/organizations', ...developers];
    const look = async (language: string): Promise<void> => {
      await on.service.accounts.setLanguage(person.accountId, language);
      const { page, problems } = await visit(PHONE);
      await enterAs(page, on.issuer, await signedIn(on.service, person));
      for (const path of [...paths, '/profile/security', '/profile/activity', consent]) {
        await page.goto(new URL(path, on.issuer).href);
        expect(await page.getAttribute('html', 'lang')).to.equal(language);
        await expectFitting(page, `${language} ${path}`);
        expect(problems).to.deep.equal([]);
      }
    };
    await look('de');
    await pseudoLanguage(() => look(PSEUDO));
  });
});
