/** Attackers who guess passwords, and the browsers of the account owners. */
import { expect } from 'chai';
import { type Credentials, createPerson, type Page, type Person } from '../../support/person.ts';
import { addPerson, type SeededPerson } from '../../support/seed.ts';
import type { TestService } from '../../support/service.ts';

/** Failed attempts per account, from all addresses together. */
export const PER_ACCOUNT = 5;
/** One proxy hop, so that a test can choose the client address. */
export const settings = {
  server: { proxyHops: 1 },
  limits: {
    signInFailures: 3,
    signInFailuresPerAddress: 4,
    signInFailuresPerAccount: PER_ACCOUNT,
  },
};

/** Adds an account without failed sign-ins. */
export const newPerson = (service: TestService): Promise<SeededPerson> => addPerson(service, 'Known Person');

/** Tries to sign in from this address, signing out first if needed. */
export async function attempt(browser: Person, { email, password }: Credentials, from: string) {
  const headers = { 'x-forwarded-for': from };
  let page = await browser.get('/login', headers);
  if (page.location) {
    await browser.submit(await browser.get('/logout', headers), {}, headers);
    page = await browser.get('/login', headers);
  }
  return browser.submit(page, { email, password }, headers);
}

export const wrong = ({ email }: Credentials): Credentials => ({
  email,
  password: 'seven red forklifts',
});

/** Guesses once per address, each in a new browser. @returns the statuses. */
export async function guesses(
  service: TestService,
  person: Credentials,
  addresses: readonly string[],
): Promise<number[]> {
  const seen: number[] = [];
  for (const from of addresses) {
    seen.push((await attempt(createPerson(service.issuer), wrong(person), from)).status);
  }
  return seen;
}

export const retryAfter = ({ headers }: Page): number => Number(headers.get('retry-after'));

/** Sends as many attempts at once, from this address, in browsers without a cookie of ours. */
export async function atOnce(service: TestService, count: number, { email, password }: Credentials, from: string) {
  const headers = { 'x-forwarded-for': from };
  const browser = createPerson(service.issuer);
  const page = await browser.get('/login', headers);
  return Promise.all(Array.from({ length: count }, () => browser.submit(page, { email, password }, headers)));
}

/** As many wrong passwords at once as one after another are compared, and then the address is refused, no other. */
export async function expectLimitUsedUp(service: TestService, count: number, [from, other]: readonly [string, string]) {
  const person = await newPerson(service);
  const statuses = (await atOnce(service, count, wrong(person), from)).map(({ status }) => status);
  // On a busy machine, those that waited may have been refused, which does not count.
  while (statuses.at(-1) !== 429 || statuses.length === count) {
    statuses.push((await attempt(createPerson(service.issuer), wrong(person), from)).status);
  }
  expect(statuses.filter((status) => status === 401)).to.have.length(settings.limits.signInFailures);
  expect(new Set(statuses)).to.deep.equal(new Set([401, 429]));
  const next = await attempt(createPerson(service.issuer), person, from);
  expect([next.status, retryAfter(next) > 5]).to.deep.equal([429, true]);
  expect((await attempt(createPerson(service.issuer), person, other)).status).to.equal(303);
}

/** Returns distinct addresses of one network. */
export const spread = (count: number, network: number): string[] =>
  Array.from({ length: count }, (_, index) => `10.${network}.${index}.1`);

export const problemOf = ({ html }: Page): string | undefined => /role="alert">.*?<p>(.*?)<\/p>/s.exec(html)?.[1];
