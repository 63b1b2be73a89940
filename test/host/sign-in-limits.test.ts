/** Password guesses are counted for an account and the address of the caller. `known-devices.test.ts` has their limits. */
import { expect } from 'chai';
import { newPerson, wrong } from '../pages/sign-in/password-guessing.ts';
import type { Credentials } from '../support/person.ts';
import { rawRequest } from '../support/raw-request.ts';
import { addPerson } from '../support/seed.ts';
import { startsOn, type TestService } from '../support/service.ts';
import { windowOf } from '../support/stopwatch.ts';

const FAILURES = 3;
const WINDOW_SECONDS = 15 * 60;
const HERE = { from: '127.0.0.66' };

/** The number of our own proxies, the caller that guesses, its requests with a forged address, and another caller. */
const CALLERS: readonly (readonly [hops: number, caller: From, forged: readonly From[], other: From])[] = [
  [0, HERE, ['203.0.113.7', '127.0.0.1, 203.0.113.8', ''].map((via) => ({ ...HERE, via })), { from: '127.0.0.2' }],
  [
    1,
    { via: '203.0.113.66' },
    ['203.0.113.7', '203.0.113.8, 203.0.113.9'].map((forged) => ({ via: `${forged}, 203.0.113.66` })),
    { via: '203.0.113.66, 203.0.113.2' },
  ],
  [
    2,
    { via: '203.0.113.66, 198.51.100.1' },
    [{ via: '203.0.113.7, 203.0.113.66, 198.51.100.1' }],
    { via: '203.0.113.66, 203.0.113.2, 198.51.100.1' },
  ],
];

describe('sign-in limits', () => {
  const start = startsOn();
  const startBehind = (proxyHops: number) =>
    start({ settings: { server: { proxyHops }, limits: { signInFailures: FAILURES } } });
  let service: TestService;
  before(async () => {
    service = await startBehind(0);
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

  it('another spelling of the email address does not start a new count of failed sign-ins', async () => {
    const person = await addPerson(service, 'Iris', 'iris@kiln.test');
    await useUp(service, person);
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

  for (const [hops, caller, forged, other] of CALLERS) {
    it(`behind ${hops} proxies that append to X-Forwarded-For, no client forges its address or locks users out elsewhere`, async () => {
      const behind = hops === 0 ? service : await startBehind(hops);
      const [person, neighbor] = [await newPerson(behind), await newPerson(behind)];
      await useUp(behind, person, caller);
      for (const from of forged) expect((await attempt(behind, person, from)).status, from.via).to.equal(429);
      expect((await attempt(behind, person, other)).status).to.equal(303);
      expect((await attempt(behind, neighbor, caller)).status).to.equal(303);
    });
  }
});

interface From {
  /** The address of the socket; default: 127.0.0.1. */
  readonly from?: string;
  /** The X-Forwarded-For header, from a proxy or forged. */
  readonly via?: string;
}

/** Submits the sign-in page once. */
async function attempt(service: TestService, { email, password }: Credentials, { from, via }: From = {}) {
  const { port } = service.settings.server;
  const host = `localhost:${port}`;
  const page = await rawRequest(port, '/login', { headers: { host } });
  const token = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const cookie = page.headers.getSetCookie().join().split(';')[0] ?? '';
  const { status, headers, text } = await rawRequest(port, '/login', {
    headers: { host, cookie, ...(via !== undefined && { 'x-forwarded-for': via }) },
    form: { email, password, form_token: token },
    from: from ?? '127.0.0.1',
  });
  const problem = /role="alert">.*?<p>(.*?)<\/p>/s.exec(text)?.[1];
  return { status, problem, retryAfter: headers.get('retry-after') };
}

/** Fails to sign in as often as the limit allows. */
async function useUp(service: TestService, person: Credentials, from: From = {}): Promise<void> {
  for (let failure = 0; failure < FAILURES; failure += 1) {
    expect((await attempt(service, wrong(person), from)).status).to.equal(401);
  }
}
