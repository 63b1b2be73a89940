/** A software passkey that is registered and used through the pages. */
import { type Lie, makePasskey, type SoftPasskey } from '../../support/authenticator.ts';
import type { Page, Person } from '../../support/person.ts';

export const SECURITY = '/profile/security';
export const NEW = `${SECURITY}/passkeys/new`;

/** The options that the page's script would pass to the browser. */
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

/**
 * Adds a passkey; the browser needs a recent sign-in. @returns the passkey and the answer of the
 * page.
 */
export async function addPasskey(
  issuer: string,
  person: Person,
  { name = 'Laptop', lie }: { readonly name?: string; readonly lie?: Lie } = {},
): Promise<{ passkey: SoftPasskey; answer: Page }> {
  const page = await person.get(NEW);
  const { passkey, made } = makePasskey(issuer, await optionsFor(person, 'add'), lie);
  return { passkey, answer: await person.submit(page, { name, made_passkey: made }) };
}

/** Opens `path`, and signs in on the page that it redirects to. @returns the answer to the form. */
export async function signInWith(
  person: Person,
  passkey: SoftPasskey,
  { path = '/login', lie }: { readonly path?: string | URL; readonly lie?: Lie } = {},
): Promise<Page> {
  const page = await person.follow(await person.get(path));
  const answer = passkey.answer(await optionsFor(person, 'sign-in'), lie);
  return person.submit(page, { passkey: answer });
}
