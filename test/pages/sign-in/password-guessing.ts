/** Attackers who guess passwords, and the browsers of the account owners. */
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
let people = 0;

/** Adds an account without failed sign-ins. */
export function newPerson(service: TestService): Promise<SeededPerson> {
  people += 1;
  return addPerson(service, `Person ${people}`, `known-${people}@example.test`);
}

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

/** Returns distinct addresses of one network. */
export const spread = (count: number, network: number): string[] =>
  Array.from({ length: count }, (_, index) => `10.${network}.${index}.1`);

export const problemOf = ({ html }: Page): string | undefined => /role="alert">.*?<p>(.*?)<\/p>/s.exec(html)?.[1];
