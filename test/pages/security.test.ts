import { expect } from 'chai';
import { describeInBrowser } from '../support/browser.ts';
import { createTestClock, type TestClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { authorizationUrl, exchangeCode, introspect } from '../support/oauth.ts';
import { createPerson } from '../support/person.ts';
import { describeOn, postgresServer, redisServer } from '../support/requirements.ts';
import { addPerson, type Seed, type SeededPerson, seed } from '../support/seed.ts';
import { forEachDeployment, startTestService, type TestService } from '../support/service.ts';
import { textOf } from './client-owner.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

const PATH = '/profile/security';
const NEW_PASSWORD = 'eight blue pallets, stacked';
const IDLE = 3_600;
const ABSOLUTE = 86_400;

forEachDeployment('the page of password and sessions', (start) => {
  let service: TestService;
  let seeded: Seed;
  let credentials: SeededPerson;
  let person: SignedInPerson;
  let time: TestClock;
  let people = 0;

  before(async () => {
    time = createTestClock();
    const sessions = { idleSeconds: IDLE, absoluteSeconds: ABSOLUTE };
    service = await start({ clock: time.clock, settings: { sessions } });
    seeded = await seed(service);
  });
  beforeEach(async () => {
    people += 1;
    credentials = await addPerson(service, 'Pat', `pat-${people}@example.test`);
    person = await signedIn(service, credentials);
  });
  after(() => time.restore());

  const isSignedIn = async (who: SignedInPerson): Promise<boolean> =>
    (await who.get('/profile')).status === 200;
  const change = (fields = {}) =>
    person.fillIn(PATH, {
      ...{ current_password: credentials.password, new_password: NEW_PASSWORD, ...fields },
    });
  const canSignIn = async (password: string): Promise<boolean> => {
    const page = await createPerson(service.issuer).signIn({ ...credentials, password });
    return page.url.pathname === '/profile';
  };
  async function connect(): Promise<string> {
    const { confidential } = seeded.clients;
    const url = authorizationUrl(service.issuer, confidential);
    const answer = await person.authorize(url, credentials);
    const code = answer.searchParams.get('code') ?? '';
    const { body } = await exchangeCode(service.issuer, confidential, code);
    return String(body.access_token);
  }
  const isActive = async (token: string): Promise<unknown> =>
    (await introspect(service.issuer, seeded.clients.resourceServer, token)).body.active;
  const logged = async (): Promise<string[]> => {
    const log = await service.activity.of(credentials.accountId, { limit: 10 });
    return log.map(({ action }) => action);
  };

  it('is for who is signed in, and a form sent too late leads there', async () => {
    const stranger = createPerson(service.issuer);
    const page = await stranger.get(PATH);
    expect(page.location?.searchParams.get('return_to')).to.equal(PATH);
    for (const form of ['password', 'sign-out-everywhere']) {
      expect((await person.get(`${PATH}/${form}`)).location?.pathname).to.equal(PATH);
    }
  });

  it('a changed password is the only one from now on, and ends the other sessions', async () => {
    const elsewhere = await signedIn(service, credentials);
    const token = await connect();
    const page = await change();
    expect(page.url.pathname).to.equal(PATH);
    expect(textOf(page.html)).to.include('Your password is changed');
    expect(await isSignedIn(person)).to.equal(true);
    expect(await isSignedIn(elsewhere)).to.equal(false);
    expect(await canSignIn(credentials.password)).to.equal(false);
    expect(await canSignIn(NEW_PASSWORD)).to.equal(true);
    expect(await isActive(token)).to.equal(true);
    expect(await logged()).to.include('password_changed');
  });

  it('a session copied before the change of the password is over as well', async () => {
    const headers = { cookie: person.cookieHeader('/profile') };
    await change();
    const thief = createPerson(service.issuer);
    expect((await thief.get('/profile', headers)).status).to.equal(303);
  });

  it('ends the connections too, when asked to', async () => {
    expect((await person.get(PATH)).html).not.to.include('end_connections');
    const token = await connect();
    expect((await person.get(PATH)).html).to.include('end_connections');
    const page = await change({ end_connections: 'yes' });
    expect(textOf(page.html)).to.include('nothing acts for you any more');
    expect(await isActive(token)).to.equal(false);
    expect(await logged()).to.include('disconnected');
  });

  it('a wrong current password changes nothing and counts as a failed sign-in', async () => {
    const elsewhere = await signedIn(service, credentials);
    const page = await person.send(`${PATH}/password`, {
      ...{ current_password: 'not this one, no', new_password: NEW_PASSWORD },
    });
    expect(page.status).to.equal(422);
    expect(page.html).to.match(/<a href="#current-password">This is not your current password/);
    expect(page.html).not.to.include(NEW_PASSWORD).and.not.include('not this one');
    expect(await isSignedIn(elsewhere)).to.equal(true);
    expect(await canSignIn(credentials.password)).to.equal(true);

    const fields = { current_password: 'not this one, no', new_password: NEW_PASSWORD };
    const answers = [];
    // Ten of a browser that knows the account, and then ten of the address like any other.
    for (let tries = 0; tries < 21; tries += 1) {
      answers.push((await person.send(`${PATH}/password`, fields)).status);
    }
    expect(answers.at(-1)).to.equal(429);
    const right = { ...fields, current_password: credentials.password };
    expect((await person.send(`${PATH}/password`, right)).status).to.equal(429);
  });

  it('a password that may not be set is refused beside its field, and nothing changes', async () => {
    await connect();
    const bad = [
      '',
      'short',
      'x'.repeat(257),
      'passwordpassword',
      credentials.email,
      'gatehouse1234',
    ];
    for (const new_password of bad) {
      const current_password = credentials.password;
      const fields = { current_password, new_password, end_connections: 'yes' };
      const page = await person.send(`${PATH}/password`, fields);
      expect(page.status, new_password).to.equal(422);
      expect(page.html).to.match(/id="new-problem"/);
      expect(page.html).to.match(/name="end_connections"[^>]*checked/);
    }
    expect(await isSignedIn(person)).to.equal(true);
    expect(await canSignIn(credentials.password)).to.equal(true);
  });

  it('signing out everywhere leaves this browser signed in, and no other', async () => {
    const elsewhere = [await signedIn(service, credentials), await signedIn(service, credentials)];
    const copied = { cookie: person.cookieHeader('/profile') };
    const page = await person.follow(await person.send(`${PATH}/sign-out-everywhere`));
    expect(textOf(page.html)).to.include('Every other browser is signed out');
    for (const other of elsewhere) expect(await isSignedIn(other)).to.equal(false);
    expect(await isSignedIn(person)).to.equal(true);
    // A copy of this browser's own session is another browser.
    expect((await createPerson(service.issuer).get('/profile', copied)).status).to.equal(303);
    expect(await logged()).to.include('signed_out_everywhere');
  });

  it('signing out everywhere makes no sign-in younger: it neither confirms nor extends it', async () => {
    time.advance(1_000);
    await person.send(`${PATH}/sign-out-everywhere`);
    const asked = await person.send('/profile/api-keys', { name: 'x', expires_in_days: '30' });
    expect(textOf(asked.html)).to.include('Confirm it is you');
    for (let age = 1_000; age < ABSOLUTE; age += IDLE / 2) {
      await person.send(`${PATH}/sign-out-everywhere`);
      time.advance(IDLE / 2);
    }
    expect(await isSignedIn(person)).to.equal(false);
  });

  it('nothing happens from elsewhere, without the form’s token or by a link', async () => {
    const other = await signedIn(service, credentials);
    const elsewhere = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    const fields = { current_password: credentials.password, new_password: NEW_PASSWORD };
    for (const path of [`${PATH}/password`, `${PATH}/sign-out-everywhere`]) {
      expect((await person.send(path, fields, elsewhere)).status).to.equal(403);
      expect((await person.post(path, fields)).status).to.equal(403);
      await person.get(`${path}?${new URLSearchParams(fields)}`);
    }
    expect(await isSignedIn(other)).to.equal(true);
    expect(await canSignIn(credentials.password)).to.equal(true);
  });

  it('whoever visits pages stays signed in past the idle limit, never past the absolute one', async () => {
    const begun = time.clock();
    while (time.clock() - begun < (ABSOLUTE - IDLE) * 1000) {
      time.advance(IDLE - 1);
      expect(await isSignedIn(person)).to.equal(true);
    }
    time.set(new Date(begun + ABSOLUTE * 1000));
    expect(await isSignedIn(person)).to.equal(false);
  });

  it('whoever visits none is signed out after the idle limit', async () => {
    time.advance(IDLE);
    expect(await isSignedIn(person)).to.equal(false);
  });
});

describeOn([postgresServer, redisServer], 'sessions on several nodes', () => {
  it('a session begun anew is good at once everywhere, and the ones before it end everywhere', async () => {
    const first = await startTestService({ deployment: 'postgres+redis' });
    const second = await startTestService({ deployment: 'postgres+redis', beside: first });
    try {
      const { person: credentials } = await seed(first);
      const person = await signedIn(first, credentials);
      const statusAtSecond = async (cookie: string): Promise<number> => {
        const headers = { cookie };
        const url = `${second.issuer}/profile`;
        return (await fetch(url, { headers, redirect: 'manual' })).status;
      };
      for (let times = 0; times < 10; times += 1) {
        const before = person.cookieHeader('/profile');
        // The second node remembers the account as it was.
        expect(await statusAtSecond(before)).to.equal(200);
        await person.send(`${PATH}/sign-out-everywhere`);
        expect(await statusAtSecond(person.cookieHeader('/profile'))).to.equal(200);
        await eventually(async () => expect(await statusAtSecond(before)).to.equal(303));
      }
    } finally {
      await second.close();
      await first.close();
    }
  });
});

describeInBrowser('password and sessions in a browser', (visit) => {
  let service: TestService;
  let seeded: Seed;
  let time: TestClock;

  before(async () => {
    time = createTestClock();
    const sessions = { idleSeconds: IDLE, absoluteSeconds: ABSOLUTE };
    service = await startTestService({ clock: time.clock, settings: { sessions } });
    seeded = await seed(service);
  });
  after(async () => {
    await service.close();
    time.restore();
  });

  async function arrive(credentials: SeededPerson, path: string) {
    const { page, problems } = await visit();
    await page.clock.install();
    await page.goto(`${service.issuer}${path}`);
    await page.getByLabel('Email address').fill(credentials.email);
    await page.getByLabel('Password', { exact: true }).fill(credentials.password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Your profile' }).waitFor();
    return { page, problems };
  }

  it('a page that is open and used keeps its person signed in, one that is left alone does not', async () => {
    const { page, problems } = await arrive(seeded.person, PATH);
    for (let minutes = 0; minutes < 120; minutes += 30) {
      await page.mouse.click(5, 5);
      const renewed = page.waitForResponse(/\/oauth\/token\/refresh$/);
      await page.clock.runFor(300_000);
      expect((await renewed).status()).to.equal(200);
      time.advance(1_800);
    }
    await page.reload();
    expect(new URL(page.url()).pathname).to.equal(PATH);

    await page.clock.runFor(3_600_000);
    time.advance(IDLE);
    await page.reload();
    expect(new URL(page.url()).pathname).to.equal('/login');
    expect(problems).to.deep.equal([]);
  });

  it('a person changes the password, corrected once, and signs in with it', async () => {
    const { page } = await arrive(seeded.other, PATH);
    await page.getByLabel('Current password').fill(seeded.other.password);
    await page.getByLabel('New password').fill('short');
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByRole('alert').getByText('Use at least 12 characters').waitFor();
    await page.getByLabel('Current password').fill(seeded.other.password);
    await page.getByLabel('New password').fill(NEW_PASSWORD);
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByRole('status').filter({ hasText: 'Your password is changed' }).waitFor();

    await page.getByRole('link', { name: 'Profile', exact: true }).click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in again' }).click();
    await page.getByLabel('Email address').fill(seeded.other.email);
    await page.getByLabel('Password', { exact: true }).fill(NEW_PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Your profile' }).waitFor();
  });
});
