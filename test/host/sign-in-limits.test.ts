/** Password guesses are limited per account and address, and lock no user out elsewhere. */
import { expect } from 'chai';
import type { Credentials } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { addPerson } from '../support/seed.ts';
import { type Overrides, startsOn, type TestService } from '../support/service.ts';
import { windowOf } from '../support/stopwatch.ts';

const FAILURES = 3;
const WINDOW_SECONDS = 15 * 60;

describe('sign-in limits', () => {
  const start = startsOn();
  let service: TestService;

  before(async () => {
    service = await start({ settings: limited(0) });
  });

  it('after too many failed sign-ins even the right password is refused for a while', async () => {
    const person = await newPerson(service);
    const left = windowOf(WINDOW_SECONDS);
    for (let failure = 0; failure < FAILURES; failure += 1) {
      expect(await attempt(service, wrong(person))).to.deep.equal({
        status: 401,
        problem: 'Wrong email address or password.',
        retryAfter: null,
      });
    }
    for (const credentials of [wrong(person), person]) {
      const { status, problem, retryAfter } = await attempt(service, credentials);
      expect(status).to.equal(429);
      expect(problem).to.equal('Too many attempts. Try again in 15 minutes, or ask your administrator for a new link.');
      expect(Number(retryAfter)).to.be.within(left(), WINDOW_SECONDS);
    }
  });

  it('parallel password guesses are counted like sequential ones', async () => {
    const person = await newPerson(service);
    const guesses = Array.from({ length: 10 }, () => attempt(service, wrong(person)));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status).toSorted();
    expect(statuses).to.deep.equal([401, 401, 401, ...Array(7).fill(429)]);
  });

  it('sign-ins with an unknown email address are limited like those with a known address', async () => {
    const unknown = { email: 'unknown@example.test', password: 'seven red forklifts' };
    const answers = await failUntilLimited(service, unknown);
    expect(answers).to.deep.equal([401, 401, 401, 429]);
  });

  it('failed sign-ins from one IP address do not lock out the user at another address, or other users', async () => {
    const person = await newPerson(service);
    const neighbor = await newPerson(service);
    await failUntilLimited(service, wrong(person), { address: '127.0.0.66' });
    expect((await attempt(service, person, { address: '127.0.0.66' })).status).to.equal(429);
    expect((await attempt(service, person, { address: '127.0.0.2' })).status).to.equal(303);
    expect((await attempt(service, neighbor, { address: '127.0.0.66' })).status).to.equal(303);
  });

  it('another spelling of the email address does not start a new count of failed sign-ins', async () => {
    const person = await addPerson(service, 'Iris', 'iris@kiln.test');
    await failUntilLimited(service, wrong(person));
    const spellings = ['IRIS@kiln.test', ' iris@kiln.test ', '\uFF49ris@kiln.test', 'ir\u0130s@kiln.test'];
    for (const email of spellings) {
      expect((await attempt(service, { ...person, email })).status, email).to.equal(429);
    }
  });

  it('a successful sign-in before the limit resets the count of failures', async () => {
    const person = await newPerson(service);
    for (let round = 0; round < 2; round += 1) {
      for (let failure = 1; failure < FAILURES; failure += 1) {
        expect((await attempt(service, wrong(person))).status).to.equal(401);
      }
      expect((await attempt(service, person)).status).to.equal(303);
    }
  });

  it('without a proxy a client cannot forge its address with X-Forwarded-For', async () => {
    const person = await newPerson(service);
    await failUntilLimited(service, wrong(person));
    for (const forwardedFor of ['203.0.113.7', '127.0.0.1, 203.0.113.8', '']) {
      const { status } = await attempt(service, person, { forwardedFor });
      expect(status, forwardedFor).to.equal(429);
    }
  });
});

/** The X-Forwarded-For header for a caller's address, by the number of our own proxies that add to it. */
const proxies = {
  1: (caller: string) => caller,
  2: (caller: string) => `${caller}, 198.51.100.1`,
};

for (const [hops, from] of Object.entries(proxies)) {
  describe(`sign-in limits behind proxies that add ${hops} to the address`, () => {
    const start = startsOn();

    it('the caller’s IP address is the one added by the outermost trusted proxy; forged ones are ignored', async () => {
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
  limits: { signInFailures: FAILURES },
});

let people = 0;

/** Adds an account without failed sign-ins. */
function newPerson(service: TestService): Promise<Credentials> {
  people += 1;
  return addPerson(service, `Person ${people}`, `person-${people}@example.test`);
}

const wrong = ({ email }: Credentials): Credentials => ({ email, password: 'seven red forklifts' });

interface From {
  /** The address of the socket; default: 127.0.0.1. */
  readonly address?: string;
  /** The X-Forwarded-For header, from a proxy or forged. */
  readonly forwardedFor?: string;
}

/** Submits the sign-in page once. */
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

/** Signs in until an attempt is limited. @returns the status of each attempt */
async function failUntilLimited(service: TestService, credentials: Credentials, from: From = {}) {
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429 && statuses.length <= FAILURES) {
    statuses.push((await attempt(service, credentials, from)).status);
  }
  expect(statuses.at(-1)).to.equal(429);
  return statuses;
}
