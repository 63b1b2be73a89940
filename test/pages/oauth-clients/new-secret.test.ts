/** The page of a new secret: no link loses the secret, and the .env file comes first. */
import { expect } from 'chai';
import { startSeeded } from '../../support/seeded.ts';
import { nameWarehouseApi } from '../../support/warehouse-api.ts';
import { type ClientOwner, LIST, REDIRECT_URI, signInOwner } from '../client-owner.ts';

describe('the page of a new secret', () => {
  const on = startSeeded();
  let owner: ClientOwner;

  before(() => nameWarehouseApi(on));

  beforeEach(async () => {
    owner = await signInOwner(on.service, on.seeded.person);
  });

  const makeClient = (name: string) => owner.fillIn(`${LIST}/new`, { name, redirect_uris: REDIRECT_URI });
  const makeKey = (name: string) => owner.fillIn('/profile/api-keys', { name, expires_in_days: '30' });

  it('no link or form leads away from an uncopied secret, also without JavaScript, except signing out', async () => {
    for (const { html } of [await makeClient('Safe'), await makeKey('Safe')]) {
      expect(html).to.include('data-secret');
      const elements = html.match(/<(?:a|form)\s[^>]*>/g) ?? [];
      const leading = elements.filter((element) => !element.includes('target="_blank"'));
      const known = /href="#content"|data-copied|action="\/logout"/;
      expect(leading.filter((element) => !known.test(element))).to.deep.equal([]);
      expect(leading).to.have.length(3);
    }
  });
});
