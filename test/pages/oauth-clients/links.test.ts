/** `/profile/oauth-clients/:id/links`: links that an owner may enter, and the error messages. */
import { expect } from 'chai';
import { startSeeded } from '../../support/seeded.ts';
import { LIST, textOf } from '../client-owner.ts';
import { signedIn } from '../signed-in-person.ts';

describe("the page of a client's links", () => {
  const on = startSeeded();
  const path = (): string => `${LIST}/${on.clients.confidential.id}/links`;
  const linksOf = async () => (await on.service.clients.find(on.clients.confidential.id))?.links;

  it('https links of a client are saved; any other link is refused with an error next to its field', async () => {
    const owner = await signedIn(on.service, on.seeded.other);
    const saved = await owner.fillIn(path(), {
      homepage_url: ' https://app.example/ ',
      support_url: '',
      privacy_url: '',
    });
    expect(textOf(saved.html)).to.include('The links are saved.');
    expect(await linksOf()).to.deep.equal({ homepage: 'https://app.example/' });
    const typed = {
      homepage_url: 'javascript:alert(1)',
      support_url: 'http://app.example/',
      privacy_url: `https://app.example/${'x'.repeat(500)}`,
    };
    const refused = await owner.submit(await owner.get(path()), typed);
    expect(refused.status).to.equal(422);
    expect(refused.html.match(/class="field-problem"/g)).to.have.length(3);
    expect(refused.html).to.include('value="http://app.example/"');
    expect(await linksOf()).to.deep.equal({ homepage: 'https://app.example/' });
  });
});
