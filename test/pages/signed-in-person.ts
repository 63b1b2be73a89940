/** A person who is signed in and uses the pages of the profile, without JavaScript or by hand. */
import {
  type Credentials,
  createPerson,
  type Fields,
  type Page,
  type Person,
} from '../support/person.ts';
import type { TestService } from '../support/service.ts';

export interface SignedInPerson extends Person {
  /** A form sent by hand, with the token of this browser. No redirect is followed. */
  send(path: string, fields?: Fields, headers?: Record<string, string>): Promise<Page>;
  /** Sends the form of a page and goes where it leads. */
  fillIn(path: string, fields?: Fields): Promise<Page>;
}

export async function signedIn(
  { issuer }: Pick<TestService, 'issuer'>,
  credentials: Credentials,
): Promise<SignedInPerson> {
  const person = createPerson(issuer);
  await person.signIn(credentials);
  // Of now: another sign-in of this person makes it another one.
  const formToken = async () => fieldOf(await person.get('/errors'), 'form_token');
  return {
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

/** The first value of a field that some form of the page would send. */
export function fieldOf({ forms }: Page, name: string): string {
  const pairs = forms.flatMap((form) => form.values);
  return pairs.find(([field]) => field === name)?.[1] ?? '';
}
