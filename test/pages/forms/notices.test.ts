/** A notice is shown once, on the page it belongs to, to the user whose action it confirms. */
import { expect } from 'chai';
import { createSeals } from '../../../src/base/seals.ts';
import { createPerson, type Page, type Person } from '../../support/person.ts';
import { startSeeded } from '../../support/seeded.ts';
import { LIST, textOf } from '../client-owner.ts';
import { type SignedInPerson, signedIn } from '../signed-in-person.ts';

const CONNECTIONS = '/profile/connections';
const NOTICE_TEXT = 'Everything is disconnected';

describe('a notice after a redirect is shown once, to the right user, on the intended page', () => {
  const on = startSeeded({ clock: true });
  let person: SignedInPerson;

  beforeEach(async () => {
    person = await signedIn(on.service, on.seeded.person);
  });

  const noticesOn = ({ html }: Page) => html.match(/role="status"/g) ?? [];
  const cookieOf = (who: Person, name: string): string =>
    who
      .cookieHeader('/')
      .split('; ')
      .find((cookie) => cookie.startsWith(`${name}=`)) ?? '';
  /**
   * Disconnects all clients. The page of the redirect is not opened, so the notice is still
   * pending.
   */
  const disconnectAll = () => person.send(`${CONNECTIONS}/disconnect-all`);

  it('the notice after a form is shown once, on the intended page, and is not part of the URL', async () => {
    const { location } = await disconnectAll();
    expect(location?.href).to.equal(on.issuer + CONNECTIONS);
    const head = await fetch(on.issuer + CONNECTIONS, {
      method: 'HEAD',
      headers: { cookie: person.cookieHeader('/') },
    });
    expect(head.headers.getSetCookie().join()).to.not.include('gate_notice');
    expect(noticesOn(await person.get('/profile/security'))).to.deep.equal([]);
    expect(textOf((await person.get(CONNECTIONS)).html)).to.include(NOTICE_TEXT);
    expect(noticesOn(await person.get(CONNECTIONS))).to.deep.equal([]);
  });

  it('a notice is not shown after two minutes, on another page, to another user, or with a changed text', async () => {
    await disconnectAll();
    const notice = cookieOf(person, 'gate_notice');
    const session = () => person.cookieHeader('/').replace(/; gate_notice=[^;]*/, '');
    const noticesWith = async (cookie: string, path = CONNECTIONS) =>
      noticesOn(await createPerson(on.issuer).get(path, { cookie }));
    const other = await signedIn(on.service, on.seeded.other);
    expect(await noticesWith(`${other.cookieHeader('/')}; ${notice}`)).to.deep.equal([]);
    expect(await noticesWith(`${session()}; ${notice}`, LIST)).to.deep.equal([]);
    const [, value = ''] = notice.split('=');
    const [said = '', mac] = value.split('.');
    const forged = Buffer.from(said, 'base64url').toString().replace('Everything', 'Nothing');
    const changed = `gate_notice=${Buffer.from(forged).toString('base64url')}.${mac}`;
    expect(await noticesWith(`${session()}; ${changed}`)).to.deep.equal([]);
    expect(await noticesWith(`${session()}; ${notice}`)).to.have.length(1);
    on.clock.advance(121);
    expect(await noticesWith(`${session()}; ${notice}`)).to.deep.equal([]);
  });

  it('a notice appears in the language of the page; if its message key is unknown, its stored text appears', async () => {
    await disconnectAll();
    const session = person.cookieHeader('/').replace(/; gate_notice=[^;]*/, '');
    const [, value = ''] = cookieOf(person, 'gate_notice').split('=');
    const sent = JSON.parse(Buffer.from(value.split('.')[0] ?? '', 'base64url').toString());
    expect(sent.sentence).to.include(NOTICE_TEXT);
    const seals = createSeals('notice', on.service.settings.secrets.cookieKeys);
    const shown = async (notice: object) => {
      const cookie = `${session}; gate_notice=${seals.seal(notice)}`;
      const german = { cookie, 'accept-language': 'de' };
      return /role="status">([^<]*)/.exec((await createPerson(on.issuer).get(CONNECTIONS, german)).html)?.[1];
    };
    expect(await shown(sent)).to.include('Alle Apps sind getrennt.');
    const { message } = sent;
    const before = 'Everything is disconnected: <b>';
    const asItIs = 'Everything is disconnected: &lt;b&gt;';
    const later = { key: `${message.key}-of-a-later-version` };
    for (const unknown of [later, { ...message, values: { count: later } }]) {
      expect(await shown({ ...sent, sentence: before, message: unknown })).to.equal(asItIs);
    }
  });
});
