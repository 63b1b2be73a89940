/** What `/profile` tells its user: what to do first, what protects and uses the account, and what happened. */
import { expect } from 'chai';
import { addPerson, addTestClient, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { said, textOf } from './client-owner.ts';
import { addPasskey } from './passkeys/soft-passkey.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const DAY_MS = 86_400_000;

describe('the home of a user', () => {
  const on = startSeeded({ clock: true });
  const query = (text: string, values: unknown[] = []) => on.service.database.query(text, values);
  let credentials: SeededPerson;
  let person: SignedInPerson;
  let people = 0;

  beforeEach(async () => {
    people += 1;
    credentials = await addPerson(on.service, 'Pat', `pat-${people}@example.test`);
    person = await signedIn(on.service, credentials);
  });

  const home = async (): Promise<string> => (await person.get('/profile')).html;
  const sectionOf = (html: string, id: string): string =>
    html.match(new RegExp(`<section[^>]*aria-labelledby="${id}"[\\s\\S]*?</section>`))?.[0] ?? '';

  /** Connects a client that was used as many days ago. */
  async function connect(name: string, days?: number): Promise<string> {
    const { id } = await addTestClient(on.service, name);
    const used = days === undefined ? null : new Date(on.clock.clock() - days * DAY_MS);
    await query(
      `INSERT INTO connections (account_id, client_id, connected_at, approved_at, last_used_at,
          consented_name, consented_hosts)
        VALUES ($1, $2, $3, $3, $4, '', '{}')`,
      [credentials.accountId, id, new Date(on.clock.clock()), used],
    );
    return id;
  }

  async function addKey(name: string, days?: number): Promise<void> {
    const { accountId } = credentials;
    const origin = { address: '::1', browser: '' };
    const { key } = await on.service.apiKeys.add({ accountId, name, expiresInDays: 30 }, origin);
    const used = days === undefined ? null : new Date(on.clock.clock() - days * DAY_MS);
    await query('UPDATE api_keys SET last_used_at = $2 WHERE id = $1', [key.id, used]);
  }

  const actingOn = (html: string): string[] =>
    [...sectionOf(html, 'acting').matchAll(/<strong><a href="[^"]*"><bdi>([^<]*)</g)].map(([, name = '']) => name);

  it('the profile says how the account is protected, in words and not by color alone', async () => {
    const protection = async () => textOf(sectionOf(await home(), 'protection'));
    expect(await protection()).to.include(said('profile.by-password'));
    expect(await home()).to.include('<a href="/profile/security">Sign-in methods</a>');
    await query('UPDATE accounts SET password_hash = NULL WHERE id = $1', [credentials.accountId]);
    on.service.accounts.forget(credentials.accountId);
    expect(await protection()).to.include(said('profile.by-nothing'));
    await addPasskey(on.issuer, person);
    expect(await protection()).to.match(/Good\. You can sign in with the passkey Laptop/);
  });

  it('the profile names the five apps and API keys that were used last, and leads to all of them', async () => {
    for (const [place, name] of ['A', 'B', 'C', 'D'].entries()) await connect(`App ${name}`, place);
    await connect('Unused app');
    await addKey('Fresh key', 0.5);
    await addKey('Old key', 20);
    const html = await home();
    expect(actingOn(html)).to.deep.equal(['App A', 'Fresh key', 'App B', 'App C', 'App D']);
    const section = sectionOf(html, 'acting');
    expect(section).to.match(/href="\/profile\/connections">All 5 connected apps</);
    expect(section).to.match(/href="\/profile\/api-keys">All 2 API keys</);
    expect(section.match(/<time /g)).to.have.length(5);
  });

  it('the profile names no app that is disconnected and no expired API key, and marks suspended apps', async () => {
    const gone = await connect('Gone app', 1);
    await connect('Limited app', 1);
    const suspended = await connect('Suspended app', 2);
    await addKey('Short key', 1);
    const { accountId } = credentials;
    await on.service.connections.end({ accountId, clientId: gone }, 'person_disconnected');
    await query(`UPDATE connections SET limit_until = $2 WHERE account_id = $1 AND client_id <> $3`, [
      accountId,
      new Date(on.clock.clock() + 20 * DAY_MS),
      suspended,
    ]);
    await on.service.clients.suspend(suspended);
    const html = await home();
    expect(actingOn(html)).to.have.members(['Limited app', 'Short key', 'Suspended app']);
    expect(textOf(html)).to.include('Suspended app suspended App');
    on.clock.advance((31 * DAY_MS) / 1000);
    person = await signedIn(on.service, credentials);
    expect(actingOn(await home())).to.deep.equal(['Suspended app']);
  });
});
