/** Guessing a password stops being worth it, and locks out nobody who is somewhere else. */
import { expect } from 'chai';
import type { Credentials } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { addPerson } from '../support/seed.ts';
import { type Overrides, startsOn, type TestService } from '../support/service.ts';

const FAILURES = 3;
const WINDOW_SECONDS = 15 * 60;

describe('sign-in limits', () => {
  const start = startsOn();
  let service: TestService;

  before(async () => {
    service = await start({ settings: limited(0) });
  });

  it('after the allowed failures even the right password has to wait', async () => {
    const person = await newPerson(service);
    for (let failure = 0; failure < FAILURES; failure += 1) {
      expect(await attempt(service, wrong(person))).to.deep.equal({
        status: 401,
        problem: 'The email address or the password is not right.',
        retryAfter: null,
      });
    }
    for (const credentials of [wrong(person), person]) {
      const { status, problem, retryAfter } = await attempt(service, credentials);
      expect(status).to.equal(429);
      expect(problem).to.equal(
        'Too many attempts. Try again in 15 minutes, or ask whoever opened your account for a link ' +
          'to set a password, which lets you in now.',
      );
      expect(Number(retryAfter)).to.be.within(WINDOW_SECONDS - 10, WINDOW_SECONDS);
    }
  });

  it('guesses that come at once are counted like those that come one by one', async () => {
    const person = await newPerson(service);
    const guesses = Array.from({ length: 10 }, () => attempt(service, wrong(person)));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status).toSorted();
    expect(statuses).to.deep.equal([401, 401, 401, ...Array(7).fill(429)]);
  });

  it('an address nobody has an account for is limited with the same words', async () => {
    const nobody = { email: 'nobody@example.test', password: 'seven red forklifts' };
    const answers = await failUntilLimited(service, nobody);
    expect(answers).to.deep.equal([401, 401, 401, 429]);
  });

  it('the failures of a stranger keep the person out neither elsewhere nor others here', async () => {
    const person = await newPerson(service);
    const neighbor = await newPerson(service);
    await failUntilLimited(service, wrong(person), { address: '127.0.0.66' });
    expect((await attempt(service, person, { address: '127.0.0.66' })).status).to.equal(429);
    expect((await attempt(service, person, { address: '127.0.0.2' })).status).to.equal(303);
    expect((await attempt(service, neighbor, { address: '127.0.0.66' })).status).to.equal(303);
  });

  it('another way to write the email address does not begin a new count', async () => {
    const person = await addPerson(service, 'Iris', 'iris@kiln.test');
    await failUntilLimited(service, wrong(person));
    const spellings = [
      'IRIS@kiln.test',
      ' iris@kiln.test ',
      '\uFF49ris@kiln.test',
      'ir\u0130s@kiln.test',
    ];
    for (const email of spellings) {
      expect((await attempt(service, { ...person, email })).status, email).to.equal(429);
    }
  });

  it('a success before the limit forgets the failures', async () => {
    const person = await newPerson(service);
    for (let round = 0; round < 2; round += 1) {
      for (let failure = 1; failure < FAILURES; failure += 1) {
        expect((await attempt(service, wrong(person))).status).to.equal(401);
      }
      expect((await attempt(service, person)).status).to.equal(303);
    }
  });

  it('without a proxy nobody changes their address by writing another one', async () => {
    const person = await newPerson(service);
    await failUntilLimited(service, wrong(person));
    for (const forwardedFor of ['203.0.113.7', '127.0.0.1, 203.0.113.8', '']) {
      const { status } = await attempt(service, person, { forwardedFor });
      expect(status, forwardedFor).to.equal(429);
    }
  });
});

/** How many addresses our own proxies add, and what they then make of a caller's address. */
const proxies = {
  1: (caller: string) => caller,
  2: (caller: string) => `${caller}, 198.51.100.1`,
};

for (const [hops, from] of Object.entries(proxies)) {
  describe(`sign-in limits behind proxies that add ${hops} to the address`, () => {
    const start = startsOn();

    it('the address is the one that the outermost of them wrote, and nothing before it', async () => {
      const service = await start({ settings: limited(Number(hops)) });
      const person = await newPerson(service);
      const attack = { forwardedFor: from('203.0.113.66') };
      await failUntilLimited(service, wrong(person), attack);
      for (const forged of ['203.0.113.7', '203.0.113.8, 203.0.113.9']) {
        const forwardedFor = `${forged}, ${attack.forwardedFor}`;
        expect((await attempt(service, person, { forwardedFor })).status, forged).to.equal(429);
      }
      const elsewhere = { forwardedFor: `203.0.113.66, ${from('203.0.113.2')}` };
      expect((await attempt(service, person, elsewhere)).status).to.equal(303);
    });
  });
}

const limited = (proxyHops: number): Overrides => ({
  server: { proxyHops },
  limits: { signInFailures: FAILURES, signInFailureWindowSeconds: WINDOW_SECONDS },
});

let people = 0;

/** Nobody failed to sign in as them yet. */
function newPerson(service: TestService): Promise<Credentials> {
  people += 1;
  return addPerson(service, `Person ${people}`, `person-${people}@example.test`);
}

const wrong = ({ email }: Credentials): Credentials => ({ email, password: 'seven red forklifts' });

interface From {
  /** The address of the socket: 127.0.0.1 unless it is another. */
  readonly address?: string;
  /** What a proxy, or anybody, wrote. */
  readonly forwardedFor?: string;
}

/** One try on the sign-in page. */
async function attempt(service: TestService, { email, password }: Credentials, from: From = {}) {
  const { port } = service.settings.server;
  const { address = '127.0.0.1', forwardedFor } = from;
  const host = `localhost:${port}`;
  const page = await rawRequest(port, '/login', { headers: { host } });
  const token = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const cookie = page.headers.getSetCookie().join().split(';')[0] ?? '';
  const forwarded = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
  const { status, headers, text } = await rawRequest(port, '/login', {
    headers: { host, cookie, ...forwarded },
    form: { email, password, form_token: token },
    from: address,
  });
  const problem = /role="alert">.*?<p>(.*?)<\/p>/s.exec(text)?.[1];
  return { status, problem, retryAfter: headers.get('retry-after') };
}

/** Tries until it is told to wait. @returns each status. */
async function failUntilLimited(service: TestService, credentials: Credentials, from: From = {}) {
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length <= FAILURES) {
    statuses.push((await attempt(service, credentials, from)).status);
  }
  expect(statuses.at(-1)).to.equal(429);
  return statuses;
}
