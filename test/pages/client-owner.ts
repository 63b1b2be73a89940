/** A person who is signed in and works on the pages of OAuth clients, without JavaScript. */
import { exchangeCode, type TestClient } from '../support/oauth.ts';
import { type Credentials, createPerson, type Fields, type Page } from '../support/person.ts';
import type { TestService } from '../support/service.ts';

export const LIST = '/profile/oauth-clients';
export const REDIRECT_URI = 'https://partner.example/callback';

export interface ClientOwner {
  get(path: string): Promise<Page>;
  /** A form sent by hand, with the token of this browser. No redirect is followed. */
  post(path: string, fields?: Fields, headers?: Record<string, string>): Promise<Page>;
  /** Any other method, which no page of ours sends. */
  request(path: string, method: string): Promise<Response>;
  submit(page: Page, fields: Fields): Promise<Page>;
  follow(page: Page): Promise<Page>;
  /** Registers a client through the form. @returns what the page showed once. */
  createClient(name: string, redirectUris?: readonly string[]): Promise<Required<TestClient>>;
}

export async function signInOwner(
  { issuer }: Pick<TestService, 'issuer'>,
  credentials: Credentials,
): Promise<ClientOwner> {
  const person = createPerson(issuer);
  const page = await person.signIn(credentials, `${LIST}/new`);
  const formToken = fieldOf(page, 'form_token');
  return {
    get: person.get,
    post: (path, fields = {}, headers) =>
      person.post(path, { form_token: formToken, ...fields }, headers),
    request: (path, method) =>
      fetch(new URL(path, issuer), {
        method,
        headers: { cookie: person.cookieHeader(path), origin: issuer },
        redirect: 'manual',
      }),
    submit: person.submit,
    follow: person.follow,

    async createClient(name, redirectUris = [REDIRECT_URI]) {
      const form = await person.get(`${LIST}/new`);
      const sent = await person.submit(form, { name, redirect_uris: redirectUris });
      const shown = await person.follow(sent);
      return { ...shownOn(shown), redirectUri: redirectUris[0] ?? '' };
    },
  };
}

/** What the page for a new secret shows. */
export function shownOn({ html }: Page): { id: string; secret: string } {
  const [, id = ''] = /<code data-client-id[^>]*>([^<]*)</.exec(html) ?? [];
  const [, secret = ''] = /<code data-secret[^>]*>([^<]*)</.exec(html) ?? [];
  return { id, secret };
}

/** The first value of a field that some form of the page would send. */
export function fieldOf({ forms }: Page, name: string): string {
  const pairs = forms.flatMap((form) => form.values);
  return pairs.find(([field]) => field === name)?.[1] ?? '';
}

/** The text of a page or a part of it, as it reads. */
export const textOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#39;/g, "'")
    .replace(/\s+/g, ' ');

/** Whether the secret still proves who the client is: any code then fails for its own sake. */
export async function isSecretGood(issuer: string, client: TestClient): Promise<boolean> {
  const { body } = await exchangeCode(issuer, client, `gate_ac_${'x'.repeat(43)}`);
  return body.error === 'invalid_grant';
}
