import { expect } from 'chai';
import { outcomeOf } from '../provider/authorization-outcome.ts';
import { describeInBrowser, signInOn } from '../support/browser.ts';
import { refuseChanges } from '../support/databases.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl } from '../support/oauth.ts';
import { createPerson, isSignedIn, type Person } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addPerson, type SeededPerson } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { said, textOf } from './client-owner.ts';
import { connect as connectAs } from './organization-members.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/security';
const NEW_PASSWORD = 'eight blue pallets, stacked';
const IDLE = 3_600;
const ABSOLUTE = 86_400;

describe('the security page changes passwords and ends sessions', () => {
  const on = startSeeded({
    clock: true,
    settings: {
      sessions: { idleSeconds: IDLE, absoluteSeconds: ABSOLUTE },
      limits: { signInFailures: 3 },
    },
  });
  let person: SignedInPerson & SeededPerson;

  beforeEach(async () => {
    person = await signedIn(on.service, await addPerson(on.service, 'Pat'));
  });

  const change = (fields = {}) =>
    person.fillIn(PATH, { current_password: person.password, new_password: NEW_PASSWORD, ...fields });
  const canSignIn = async (password: string): Promise<boolean> => {
    const page = await createPerson(on.issuer).signIn({ ...person, password });
    return page.url.pathname === '/profile';
  };
  const connect = () => connectAs(on, person);
  const isActive = (token: string) => on.partner.isActive(token);
  const logged = async (): Promise<string[]> => {
    const log = await on.service.activity.of(person.accountId, { limit: 10 });
    return log.map(({ action }) => action);
  };

  describe('a user can list the active browser sessions and sign each one out', () => {
    const other = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

    /** Signs the same user in with another browser. */
    async function elsewhere(): Promise<Person> {
      const there = createPerson(on.issuer);
      const page = await there.follow(await there.get('/profile'));
      const { email, password } = person;
      await there.submit(page, { email, password }, { 'user-agent': other });
      return there;
    }
    const signOutPath = async (): Promise<string> =>
      (await person.get(PATH)).html.match(/action="([^"]*\/sessions\/[^"]*)"/)?.[1] ?? '';

    it('signing out one browser takes effect on every node, even for an approval that is in progress', async () => {
      const there = await elsewhere();
      const url = authorizationUrl(on.issuer, on.clients.confidential);
      const waiting = await there.follow(await there.get(url));
      const answered = await there.submit(waiting, { decision: 'approve' });
      const text = textOf((await person.get(PATH)).html);
      expect(text).to.match(/this browser .* Firefox on Linux 127\.0\.0\.1 Signed in \d/);
      const path = await signOutPath();
      const page = await person.follow(await person.send(path));
      expect(textOf(page.html)).to.include(said('security.signed-out-there')).and.not.include('Firefox on');
      expect([await isSignedIn(person), (await there.get('/profile')).status]).to.deep.equal([true, 303]);
      expect(await outcomeOf(there, answered)).to.equal('sign-in');
      const { accountId } = person;
      expect(await on.service.connections.find(accountId, on.clients.confidential.id)).to.equal(undefined);
      expect(await logged()).to.include('signed_out_elsewhere');
      const already = await person.follow(await person.send(path));
      expect(textOf(already.html)).to.include(said('security.already-signed-out-there'));
      // The same browser can sign in again, on the profile page and for a client's request.
      const asked = await there.follow(await there.get(url));
      const { email, password } = person;
      const back = await there.follow(await there.submit(asked, { email, password }));
      expect(await outcomeOf(there, back)).to.equal('consent');
      expect((await there.get('/profile')).status).to.equal(200);
    });

    it('later sign-ins do not hide a session: the pages of the list show every active one, and none that was signed out', async () => {
      const thief = await elsewhere();
      on.clock.advance(1);
      const there = await elsewhere();
      await there.submit(await there.get('/logout'), {});
      const ends = async (url: string) => (await person.get(url)).html.match(/[^"]*\/sessions\/[^"]*/g) ?? [];
      expect(await ends(PATH)).to.have.length(1);
      for (let active = 0; active < 25; active += 1) await createPerson(on.issuer).signIn(person);
      const { html } = await person.get(PATH);
      const next = html.match(/rel="next" href="([^"]*)#sessions"/)?.[1] ?? '';
      const pages = [await ends(PATH), await ends(next)];
      expect(pages.map(({ length }) => length)).to.deep.equal([25, 1]);
      await person.send(pages[1]?.at(-1) ?? '');
      expect((await thief.get('/profile')).location?.pathname).to.equal('/login');
    });

    it("the security page lists only the user's own sessions; expired ones are deleted", async () => {
      const there = await elsewhere();
      const path = await signOutPath();
      const stranger = await signedIn(on.service, on.seeded.other);
      // The same answer as for a session that has ended.
      expect((await stranger.send(path)).location?.pathname).to.equal(PATH);
      expect((await there.get('/profile')).status).to.equal(200);
      await there.submit(await there.get('/logout'), {});
      expect(await signOutPath()).to.equal('');
      const left = () => on.service.database.query('SELECT FROM browser_sessions');
      expect(await left()).to.not.have.length(0);
      on.clock.advance(ABSOLUTE + 1);
      await on.service.clean();
      expect(await left()).to.have.length(0);
    });
  });

  it('a new password replaces the old one and ends the other sessions', async () => {
    const elsewhere = await signedIn(on.service, person);
    const copied = { cookie: person.cookieHeader('/profile') };
    const token = await connect();
    const page = await change();
    expect(page.url.pathname).to.equal(PATH);
    expect(await isSignedIn(person)).to.equal(true);
    expect(await isSignedIn(elsewhere)).to.equal(false);
    // A stolen copy of this browser's session cookie is signed out, too.
    expect((await createPerson(on.issuer).get('/profile', copied)).status).to.equal(303);
    expect(await canSignIn(person.password)).to.equal(false);
    expect(await canSignIn(NEW_PASSWORD)).to.equal(true);
    expect(await isActive(token)).to.equal(true);
    expect(await logged()).to.include('password_changed');
  });

  it('a new password and the end of the connections are stored in one transaction', async () => {
    const token = await connect();
    const { database } = on.service;
    const accept = await refuseChanges(database, 'UPDATE ON connections');
    const fields = { current_password: person.password, new_password: NEW_PASSWORD, end_connections: 'yes' };
    const { status } = await person.send(`${PATH}/password`, fields).finally(accept);
    expect(status).to.equal(500);
    expect(await canSignIn(person.password)).to.equal(true);
    expect(await isActive(token)).to.equal(true);
    expect(await logged()).to.not.include('password_changed');
  });

  it('a wrong current password changes nothing and counts as a failed sign-in', async () => {
    const elsewhere = await signedIn(on.service, person);
    const page = await person.send(`${PATH}/password`, {
      current_password: 'not this one, no',
      new_password: NEW_PASSWORD,
    });
    expect(page.status).to.equal(422);
    expect(page.html).to.match(/<a href="#current-password">This is not your current password/);
    expect(page.html).not.to.include(NEW_PASSWORD).and.not.include('not this one');
    expect(await isSignedIn(elsewhere)).to.equal(true);
    expect(await canSignIn(person.password)).to.equal(true);

    const fields = { current_password: 'not this one, no', new_password: NEW_PASSWORD };
    const answers = [];
    // Three attempts count for the known browser, the next three for the network address; then all
    // are refused.
    for (let tries = 0; tries < 7; tries += 1) {
      answers.push((await person.send(`${PATH}/password`, fields)).status);
    }
    expect(answers.at(-1)).to.equal(429);
    const right = { ...fields, current_password: person.password };
    expect((await person.send(`${PATH}/password`, right)).status).to.equal(429);
  });

  it('an unacceptable new password is refused with an error next to the field, and nothing changes', async () => {
    await connect();
    const bad = ['', 'passwordpassword', person.email];
    for (const new_password of bad) {
      const current_password = person.password;
      const fields = { current_password, new_password, end_connections: 'yes' };
      const page = await person.send(`${PATH}/password`, fields);
      expect(page.status, new_password).to.equal(422);
      expect(page.html).to.match(/id="new-problem"/);
      expect(page.html).to.match(/name="end_connections"[^>]*checked/);
      expect(page.html).to.not.include(current_password).and.not.include('passwordpassword');
    }
    expect(await isSignedIn(person)).to.equal(true);
    expect(await canSignIn(person.password)).to.equal(true);
  });

  it('signing out everywhere neither makes the sign-in more recent nor extends the session', async () => {
    on.clock.advance(1_000);
    const page = await person.follow(await person.send(`${PATH}/sign-out-everywhere`));
    expect(textOf(page.html)).to.include(said('security.signed-out-others'));
    const asked = await person.send('/profile/api-keys', { name: 'x', expires_in_days: '30' });
    expect(textOf(asked.html)).to.include(said('confirm.title'));
    for (let age = 1_000; age < ABSOLUTE; age += IDLE - 1) {
      await person.send(`${PATH}/sign-out-everywhere`);
      on.clock.advance(IDLE - 1);
    }
    expect(await isSignedIn(person)).to.equal(false);
  });

  describeInBrowser('in a browser', (visit) => {
    async function arrive() {
      const { page, problems } = await visit();
      await page.clock.install();
      await page.goto(`${on.issuer}${PATH}`);
      await signInOn(page, person);
      await page.getByRole('navigation', { name: 'Your profile' }).waitFor();
      return { page, problems };
    }

    it('an open page that is used keeps its user signed in; an unused page does not', async () => {
      const { page, problems } = await arrive();
      for (let minutes = 0; minutes < 120; minutes += 30) {
        await page.mouse.click(5, 5);
        const renewed = page.waitForResponse(/\/oauth\/token\/refresh$/);
        await page.clock.runFor(300_000);
        expect((await renewed).status()).to.equal(200);
        on.clock.advance(1_800);
      }
      await page.reload();
      expect(new URL(page.url()).pathname).to.equal(PATH);

      await page.clock.runFor(3_600_000);
      on.clock.advance(IDLE);
      await page.reload();
      expect(new URL(page.url()).pathname).to.equal('/login');
      expect(problems).to.deep.equal([]);
    });
  });
});

describeOn([postgresServer, redisServer], 'sessions on several nodes', () => {
  const start = startsOn('postgres+redis');
  const settings = { server: { proxyHops: 1 }, limits: { signInFailuresPerAccount: 3 } };
  const on = startSeeded({ on: start, settings });
  let second: TestService;

  before(async () => {
    second = await start({ sharing: on.service });
  });

  it('a renewed session is valid on every node immediately, and earlier ones end on every node', async () => {
    const person = await signedIn(on.service, on.seeded.person);
    const statusAtSecond = async (cookie: string): Promise<number> => {
      const headers = { cookie };
      return (await fetch(`${second.issuer}/profile`, { headers, redirect: 'manual' })).status;
    };
    for (let times = 0; times < 3; times += 1) {
      const before = person.cookieHeader('/profile');
      // The second node still has the earlier state of the account in its cache.
      expect(await statusAtSecond(before)).to.equal(200);
      await person.send(`${PATH}/sign-out-everywhere`);
      expect(await statusAtSecond(person.cookieHeader('/profile'))).to.equal(200);
      await eventually(async () => expect(await statusAtSecond(before)).to.equal(303));
    }
  });

  it('a browser that is known to one node is known to every node while attackers guess the password', async () => {
    const { email, password: right } = on.seeded.other;
    const known = await signedIn(on.service, on.seeded.other);
    const device = /gate_device=[^;]+/.exec(known.cookieHeader('/'))?.[0] ?? '';
    const attempt = async (password: string, address: string, cookies = ''): Promise<number> => {
      const headers = { 'x-forwarded-for': address };
      const browser = createPerson(second.issuer);
      const page = await browser.get('/login', headers);
      const values = Object.fromEntries(page.forms[0]?.values ?? []);
      const cookie = [browser.cookieHeader('/login'), cookies].filter(Boolean).join('; ');
      const sent = { ...values, email, password };
      return (await createPerson(second.issuer).post('/login', sent, { ...headers, cookie })).status;
    };
    for (let at = 1; at <= 3; at += 1) expect(await attempt('not this one, no', `192.0.2.${at}`)).to.equal(401);
    expect(await attempt(right, '192.0.2.8')).to.equal(429);
    expect(await attempt(right, '192.0.2.9', device)).to.equal(303);
  });
});
