/** The outcome of an authorization request: a page for the user, or an answer to the client. */
import { expect } from 'chai';
import type { Page, Person } from '../support/person.ts';

/**
 * Follows the redirects within Gatehouse and returns a name for the last page: `sign-in` or
 * `consent` for the user, `code` or an error code for the client, otherwise `page <status>`.
 */
export async function outcomeOf(person: Person, request: string | URL | Page): Promise<string> {
  const isPage = typeof request === 'object' && 'status' in request;
  const page = await person.follow(isPage ? request : await person.get(request));
  if (page.location) {
    const { searchParams: sent } = page.location;
    return sent.get('error') ?? (sent.has('code') ? 'code' : `no answer in ${page.location}`);
  }
  if (page.forms.some(({ names }) => names.has('password'))) return 'sign-in';
  if (page.forms.some(({ names }) => names.has('decision'))) return 'consent';
  return `page ${page.status}`;
}

/** Returns the parameters of a redirect to the client. */
export function answerIn(page: Page): Readonly<Record<string, string>> {
  expect(page.status, page.html).to.equal(303);
  expect(page.location?.origin, 'the client').to.not.equal(page.url.origin);
  return Object.fromEntries(page.location?.searchParams ?? []);
}
