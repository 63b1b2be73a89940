import { expect } from 'chai';
import { describeInBrowser } from '../support/browser.ts';
import { addPerson } from '../support/seed.ts';
import { startTestService, type TestService } from '../support/service.ts';

describeInBrowser('the sign-in page in a browser', (visit) => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('takes an address outside of ASCII as it was typed', async () => {
    // A field of the type email refuses such a name, and sends another spelling of such a domain.
    const person = await addPerson(service, 'Jörg', 'jörg@müller.example');
    const { page, problems } = await visit();
    await page.goto(`${service.issuer}/login`);
    await page.getByLabel('Email address').fill(person.email);
    await page.getByLabel('Password', { exact: true }).fill(person.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Your profile' }).waitFor();
    expect(problems).to.deep.equal([]);
  });
});
