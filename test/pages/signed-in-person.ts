/** A signed-in user who uses the profile pages without JavaScript or sends requests directly. */
import { type Credentials, createPerson, type Fields, type Page, type Person } from '../support/person.ts';
import type { TestService } from '../support/service.ts';

export interface SignedInPerson extends Person {
  /** Sends form fields with the token of this browser. Does not follow the redirect. */
  send(path: string, fields?: Fields, headers?: Record<string, string>): Promise<Page>;
  /** Submits the form of a page and follows the redirect. */
  fillIn(path: string, fields?: Fields): Promise<Page>;
}

/** @returns the user, with what `credentials` says about them */
export async function signedIn<Who extends Credentials>(
  { issuer }: Pick<TestService, 'issuer'>,
  credentials: Who,
): Promise<SignedInPerson & Who> {
  const person = createPerson(issuer);
  await person.signIn(credentials);
  // Fetch the token for each request: a new sign-in of this user makes the earlier token invalid.
  const formToken = async () => fieldOf(await person.get('/errors'), 'form_token');
  return {
    ...credentials,
    ...person,
    async send(path, fields = {}, headers) {
      const token = fields.form_token ?? (await formToken());
      return person.post(path, { ...fields, form_token: token }, headers);
    },
    async fillIn(path, fields = {}) {
      return person.follow(await person.submit(await person.get(path), fields));
    },
  };
}

/** Returns the first value that a form of the page sends for this field. */
export function fieldOf({ forms }: Page, name: string): string {
  const pairs = forms.flatMap((form) => form.values);
  return pairs.find(([field]) => field === name)?.[1] ?? '';
}
