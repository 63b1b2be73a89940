/** A person's passkey in software, made and used by way of our pages. */
import { type Lie, makePasskey, type SoftPasskey } from '../../support/authenticator.ts';
import type { Page, Person } from '../../support/person.ts';

export const SECURITY = '/profile/security';
export const NEW = `${SECURITY}/passkeys/new`;

/** What the script would ask the browser for. */
export async function optionsFor(person: Person, what: 'sign-in' | 'confirm' | 'add') {
  const { html } = await person.get(`/passkey-options/${what}`);
  return JSON.parse(html) as {
    readonly challenge: string;
    readonly user: { readonly id: string; readonly name: string };
    readonly rpId: string;
    readonly allowCredentials: readonly { readonly id: string }[];
    readonly excludeCredentials: readonly { readonly id: string }[];
  };
}

/** For who has just signed in. @returns the passkey, and what the page answered. */
export async function addPasskey(
  issuer: string,
  person: Person,
  { name = 'Laptop', lie }: { readonly name?: string; readonly lie?: Lie } = {},
): Promise<{ passkey: SoftPasskey; answer: Page }> {
  const page = await person.get(NEW);
  const { passkey, made } = makePasskey(issuer, await optionsFor(person, 'add'), lie);
  return { passkey, answer: await person.submit(page, { name, made_passkey: made }) };
}

/** Signs in on the way to `path`. @returns what the form was answered. */
export async function signInWith(
  person: Person,
  passkey: SoftPasskey,
  { path = '/login', lie }: { readonly path?: string | URL; readonly lie?: Lie } = {},
): Promise<Page> {
  const page = await person.follow(await person.get(path));
  const answer = passkey.answer(await optionsFor(person, 'sign-in'), lie);
  return person.submit(page, { passkey: answer });
}
