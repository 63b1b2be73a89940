/** The rules for a client's name, redirect URIs and links, which apply to users and to the operator. */

import { message } from '../base/message.ts';
import { holdsSecret } from '../base/random-id.ts';
import { type Problem, Refusal } from '../base/refusal.ts';
import { claimProblems, INVISIBLE, nameProblem } from '../texts/name-rules.ts';
import { problemOf } from '../texts/texts.ts';
import { type ClientKind, type ClientLinks, LINKS, type LinkKind, redirectsPeople } from './client.ts';
import {
  type RedirectUriCode,
  type RedirectUriOptions,
  redirectUriProblem,
  redirectUriWarnings,
} from './redirect-uri-rules.ts';

export const MAX_REDIRECT_URIS = 20;
/** The length is counted in code points, as users count characters. */
const MAX_CLIENT_NAME_LENGTH = 100;

interface RedirectUriFindings {
  /** At most one problem per row. A problem without `index` concerns the whole list. Empty if all URIs are valid. */
  readonly problems: Problem[];
  /** Probable mistakes that are allowed. Empty if there are problems. */
  readonly warnings: Problem[];
}

export interface ClientDraft {
  readonly kind: ClientKind;
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly isNative: boolean;
  readonly links?: ClientLinks;
}

/** Checks a whole list: 1 to 20 distinct URIs, each by the rules of `redirectUriProblem`. */
export function checkRedirectUris(uris: readonly string[], options: RedirectUriOptions): RedirectUriFindings {
  if (uris.length === 0) {
    return { problems: [problemOf('none', message('redirect-uri.none'))], warnings: [] };
  }
  if (uris.length > MAX_REDIRECT_URIS) {
    const text = message('redirect-uri.too_many', { max: MAX_REDIRECT_URIS });
    return { problems: [problemOf('too_many', text)], warnings: [] };
  }
  const problems = uris.flatMap((uri, index): Problem<RedirectUriCode | 'duplicate'>[] => {
    const found = redirectUriProblem(uri, options);
    if (found && found.code !== 'spelling') return [{ ...found, index }];
    const twin = found ? otherSpelling(uri, index, uris) : firstOfSame(uri, uris, options);
    if (twin === index) return [];
    if (found && twin === -1) return [{ ...found, index }];
    const key = uris[twin] === uri ? 'redirect-uri.duplicate' : 'redirect-uri.duplicate-sent';
    return [{ ...problemOf('duplicate', message(key, { row: twin + 1 })), index }];
  });
  if (problems.length > 0) return { problems, warnings: [] };
  return {
    problems,
    warnings: uris.flatMap((uri, index) => warningsOf(uri, index, uris, options)),
  };
}

/** Which rules apply to the name of a client. `as before`: none, because a client may keep its name. */
export type Naming = 'by its owner' | 'by the operator' | 'as before';

export function checkClientName(name: string, naming: Naming = 'by its owner'): Problem[] {
  if (naming === 'as before') return [];
  const kept = normalizeClientName(name);
  if (kept === '') return [nameProblem('missing')];
  if (holdsSecret(kept)) return [nameProblem('secret')];
  if ([...kept].length > MAX_CLIENT_NAME_LENGTH) {
    return [nameProblem('too_long', { max: MAX_CLIENT_NAME_LENGTH })];
  }
  if (INVISIBLE.test(kept)) return [nameProblem('character')];
  return naming === 'by the operator' ? [] : claimProblems(kept);
}

export const normalizeClientName = (name: string): string => name.normalize('NFC').trim();

/** @throws Refusal `client_invalid` with every problem of the draft */
export function refuseInvalidClient(draft: ClientDraft, naming?: Naming): void {
  const links = checkLinks(draft.links ?? {}).map(({ code, message }) => ({
    code: `${code}_invalid`,
    message: `${code}: ${message}`,
  }));
  const problems = [...checkClientName(draft.name, naming), ...kindProblems(draft), ...links];
  if (problems.length > 0) throw invalidClient(problems, draft.redirectUris);
}

export function invalidClient(problems: readonly Problem[], uris: readonly string[]): Refusal {
  const remedy = problems
    .map(({ index, message }) => (index === undefined ? message : `${uris[index]}: ${message}`))
    .join('\n');
  return new Refusal('client_invalid', 'The client cannot be registered with these values.', remedy, { problems });
}

function kindProblems({ kind, redirectUris, isNative }: ClientDraft): Problem[] {
  if (isNative && kind !== 'public') {
    return [{ code: 'native_not_public', message: 'Only public clients can be native.' }];
  }
  if (redirectsPeople(kind)) return checkRedirectUris(redirectUris, { native: isNative }).problems;
  if (redirectUris.length === 0) return [];
  return [problemOf('redirect_uris_unused', message('redirect-uri.unused', { kind }))];
}

function firstOfSame(uri: string, uris: readonly string[], options: RedirectUriOptions): number {
  const { href } = new URL(uri);
  return uris.findIndex(
    (other) => other === uri || (URL.parse(other)?.href === href && !redirectUriProblem(other, options)),
  );
}

/** Returns the index of another row that has the same URI, or will have it after a correction; -1 if no row has it. */
function otherSpelling(uri: string, index: number, uris: readonly string[]): number {
  const { href } = new URL(uri);
  return uris.findIndex((other, row) => {
    if (row === index || URL.parse(other)?.href !== href) return false;
    // If both rows have a wrong spelling, report only the later row as a duplicate.
    return row < index || other === href;
  });
}

function warningsOf(uri: string, index: number, uris: readonly string[], options: RedirectUriOptions): Problem[] {
  const warnings: Problem[] = redirectUriWarnings(uri, options);
  if (uris.includes(`${uri}/`)) {
    warnings.push(problemOf('slash_twin', message('redirect-uri.slash_twin')));
  }
  return warnings.map((warning) => ({ ...warning, index }));
}

const MAX_LINK_LENGTH = 500;

export function checkLinks(links: ClientLinks): Problem<LinkKind>[] {
  return LINKS.flatMap((kind) => {
    const url = links[kind];
    if (url === undefined || isAcceptable(url)) return [];
    return [problemOf(kind, message('client-links.invalid', { max: MAX_LINK_LENGTH }))];
  });
}

/** Allows only printable ASCII and no user information, so that no host or path can imitate another. */
function isAcceptable(url: string): boolean {
  if (url.length > MAX_LINK_LENGTH || !/^https:\/\/[!-~]+$/i.test(url) || !URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  return protocol === 'https:' && hostname.includes('.') && username === '' && password === '';
}
