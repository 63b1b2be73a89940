/** Measures sign-ins of new users while one account, at one address, signs in all the time. */
import { type Credentials, createPerson, type Person } from '../test/support/person.ts';
import { postgresServer, redisServer } from '../test/support/requirements.ts';
import { startDeployment } from './deployment.ts';
import { type LoadRequest, type Measurement, measure, measurementOf } from './load.ts';
import { table } from './table.ts';

/** Newcomers are accounts, each at its own address, that sign in for the first time. */
const MAX_NEWCOMERS = 300;
/** Number of newcomers who sign in before the attack, for comparison. */
const UNDISTURBED = 20;
const ATTACKER = { 'x-forwarded-for': '192.0.2.66' };

/** Prints the result. @param seconds the duration of the attack */
export async function measureSignIn(seconds: number): Promise<void> {
  const hasServers = postgresServer.program !== undefined && redisServer.program !== undefined;
  const deployment = await startDeployment(hasServers ? 'postgres+redis' : 'embedded', {
    people: 1 + UNDISTURBED + MAX_NEWCOMERS,
  });
  const { issuer, people } = deployment;
  const [attacker, ...newcomers] = people;
  if (!attacker) throw new Error('no accounts');
  const undisturbed = await signInEach(issuer, newcomers.slice(0, UNDISTURBED), () => true);

  const requests = await attackOf(issuer, attacker);
  let isRunning = true;
  let turn = 0;
  const attack = measure(issuer, { seconds }, () => {
    // Half of the connections are a known browser, half an unknown one.
    const request = requests[turn++ % requests.length];
    if (!request) throw new Error('no requests');
    return { next: () => request };
  }).finally(() => {
    isRunning = false;
  });
  const disturbed = await signInEach(issuer, newcomers.slice(UNDISTURBED), () => isRunning);
  const rows = [
    row(`${undisturbed.count} newcomers, alone`, undisturbed.measurement),
    row(`${disturbed.count} newcomers, under attack`, disturbed.measurement),
    row('the attack (its failures are refusals)', await attack),
  ];
  await deployment.stop();
  console.log(table(['sign-in', 'per second', 'p50 ms', 'p99 ms', 'failures'], rows));
}

/** Signs in one user after the other, page and form, while `continues` returns true. */
async function signInEach(
  issuer: string,
  people: readonly Credentials[],
  continues: () => boolean,
): Promise<{ count: number; measurement: Measurement }> {
  const durations: number[] = [];
  const begin = performance.now();
  let failures = 0;
  for (const [index, { email, password }] of people.entries()) {
    if (!continues()) break;
    const address = { 'x-forwarded-for': `198.18.${index >> 8}.${index & 255}` };
    const browser = createPerson(issuer);
    const began = performance.now();
    const isIn = await browser
      .get('/login', address)
      .then((form) => browser.submit(form, { email, password }, address))
      // Rejected: the connection was closed without an answer.
      .then(
        ({ status }) => status === 303,
        () => false,
      );
    durations.push(performance.now() - began);
    if (!isIn) failures += 1;
  }
  const milliseconds = performance.now() - begin;
  return {
    count: durations.length,
    measurement: measurementOf(durations, { milliseconds, failures }),
  };
}

/** Returns sign-in requests of the account: from a known browser, and from an unknown one. */
async function attackOf(issuer: string, credentials: Credentials): Promise<LoadRequest[]> {
  const known = createPerson(issuer);
  await known.submit(await known.get('/login', ATTACKER), { ...credentials }, ATTACKER);
  await known.submit(await known.get('/logout', ATTACKER), {}, ATTACKER);
  return Promise.all([known, createPerson(issuer)].map((it) => signInOf(issuer, it, credentials)));
}

async function signInOf(issuer: string, browser: Person, { email, password }: Credentials): Promise<LoadRequest> {
  const { forms } = await browser.get('/login', ATTACKER);
  const values = Object.fromEntries(forms[0]?.values ?? []);
  return {
    method: 'POST',
    path: '/login',
    headers: {
      ...ATTACKER,
      cookie: browser.cookieHeader('/login'),
      origin: new URL(issuer).origin,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ ...values, email, password }).toString(),
  };
}

const row = (name: string, { requestsPerSecond, p50, p99, failures }: Measurement): string[] => [
  name,
  requestsPerSecond.toFixed(1),
  p50.toFixed(0),
  p99.toFixed(0),
  String(failures),
];
