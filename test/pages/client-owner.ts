/** A signed-in user who works on the pages of OAuth clients, without JavaScript. */
import type { Values } from '../../src/base/message.ts';
import { type Texts, textsFor } from '../../src/texts/texts.ts';
import { exchangeCode, type TestClient } from '../support/oauth.ts';
import type { Credentials, Page } from '../support/person.ts';
import type { TestService } from '../support/service.ts';
import { type SignedInPerson, signedIn } from './signed-in-person.ts';

export const LIST = '/profile/oauth-clients';
export const REDIRECT_URI = 'https://partner.example/callback';

export interface ClientOwner extends SignedInPerson {
  /** Registers a client through the form. @returns the values that the page shows once. */
  createClient(name: string, redirectUris?: readonly string[]): Promise<Required<TestClient>>;
}

export async function signInOwner<Who extends Credentials>(
  service: Pick<TestService, 'issuer'>,
  credentials: Who,
): Promise<ClientOwner & Who> {
  const person = await signedIn(service, credentials);
  return {
    ...person,
    async createClient(name, redirectUris = [REDIRECT_URI]) {
      const shown = await person.fillIn(`${LIST}/new`, { name, redirect_uris: redirectUris });
      return { ...shownOn(shown), redirectUri: redirectUris[0] ?? '' };
    },
  };
}

/** Reads client ID and secret from the page that shows a new secret. */
export function shownOn({ html }: Page): { id: string; secret: string } {
  const [, id = ''] = /<code data-client-id[^>]*>([^<]*)</.exec(html) ?? [];
  const [, secret = ''] = /<code data-secret[^>]*>([^<]*)</.exec(html) ?? [];
  return { id, secret };
}

/** Returns the visible text of a page or of a part of it. */
export const textOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#39;/g, "'")
    .replace(/\s+/g, ' ');

/** Returns the English text of this key as `textOf` returns it. @throws Error if it is empty: every page includes that */
export function said(key: string, values: Values = {}): string {
  const shown = (part: ReturnType<Texts['parts']>[number]): string => {
    if (typeof part === 'string') return part;
    return 'parts' in part ? ` ${part.parts.map(shown).join('')} ` : english.moment(part);
  };
  const text = english.parts(key, values).map(shown).join('').replace(/\s+/g, ' ').trim();
  if (text === '') throw new Error(`the text ${key} is empty`);
  return text;
}
const english = textsFor('en');

/** Returns true if the secret still authenticates the client (the code itself is invalid). */
export async function isSecretValid(issuer: string, client: TestClient): Promise<boolean> {
  const { body } = await exchangeCode(issuer, client, `gate_ac_${'x'.repeat(43)}`);
  return body.error === 'invalid_grant';
}
