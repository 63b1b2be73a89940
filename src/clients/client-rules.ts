/** What may be registered as a client: its name and its redirect URIs, whoever registers it. */
import { claimProblems, INVISIBLE } from '../base/name-rules.ts';
import { type Problem, Refusal } from '../base/refusal.ts';
import {
  type ClientKind,
  type ClientLinks,
  LINKS,
  type LinkKind,
  redirectsPeople,
} from './client.ts';
import {
  type RedirectUriCode,
  type RedirectUriOptions,
  redirectUriProblem,
  redirectUriWarnings,
} from './redirect-uri-rules.ts';

export const MOST_REDIRECT_URIS = 20;
/** In characters as a person counts them (code points). */
const LONGEST_CLIENT_NAME = 100;

interface RedirectUriFindings {
  /** At most one per row; without `index` it is about the list. Empty: may be registered. */
  readonly problems: Problem[];
  /** Allowed, but worth a second look. Only looked for once there is no problem. */
  readonly warnings: Problem[];
}

export interface ClientDraft {
  readonly kind: ClientKind;
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly isNative: boolean;
  readonly links?: ClientLinks;
}

/** Looks at a whole list: 1 to 20 distinct URIs, each by the rules of `redirectUriProblem`. */
export function checkRedirectUris(
  uris: readonly string[],
  options: RedirectUriOptions,
): RedirectUriFindings {
  if (uris.length === 0) {
    const message = 'Enter at least one redirect URI.';
    return { problems: [{ code: 'none', message }], warnings: [] };
  }
  if (uris.length > MOST_REDIRECT_URIS) {
    const message = `Keep at most ${MOST_REDIRECT_URIS} redirect URIs.`;
    return { problems: [{ code: 'too_many', message }], warnings: [] };
  }
  const problems = uris.flatMap((uri, index): Problem<RedirectUriCode | 'duplicate'>[] => {
    const found = redirectUriProblem(uri, options);
    if (found && found.code !== 'spelling') return [{ ...found, index }];
    const twin = found ? otherSpelling(uri, index, uris) : firstOfSame(uri, uris, options);
    if (twin === index) return [];
    if (found && twin === -1) return [{ ...found, index }];
    const spelled = uris[twin] === uri ? '' : ', as browsers send it,';
    const message = `Remove it: it is${spelled} row ${twin + 1} again.`;
    return [{ code: 'duplicate', index, message }];
  });
  if (problems.length > 0) return { problems, warnings: [] };
  return {
    problems,
    warnings: uris.flatMap((uri, index) => warningsOf(uri, index, uris, options)),
  };
}

/** Who vouches for a name: a name that a client has already stays, whatever the rules are now. */
export type Naming = 'by its owner' | 'by the operator' | 'as before';

/** The problems of a name as it is kept (`normalizeClientName`); none when it is fine. */
export function checkClientName(name: string, naming: Naming = 'by its owner'): Problem[] {
  if (naming === 'as before') return [];
  const kept = normalizeClientName(name);
  if (kept === '') return [{ code: 'name_missing', message: 'Give the client a name.' }];
  if ([...kept].length > LONGEST_CLIENT_NAME) {
    const message = `Use at most ${LONGEST_CLIENT_NAME} characters for the name.`;
    return [{ code: 'name_too_long', message }];
  }
  if (INVISIBLE.test(kept)) {
    const message =
      'Remove the invisible or text-direction character: type the name instead of pasting it.';
    return [{ code: 'name_character', message }];
  }
  return naming === 'by the operator' ? [] : claimProblems(kept);
}

/** One sentence for every such name: it does not say whether there is such an organization. */
export const NAME_TAKEN: Problem = {
  code: 'name_taken',
  message: "Choose another name: this one could be taken for someone else's.",
};

/** How a name is kept: one spelling for what looks the same, no space around it. */
export const normalizeClientName = (name: string): string => name.normalize('NFC').trim();

/** @throws Refusal `client_invalid` with every problem of the draft. */
export function refuseInvalidClient(draft: ClientDraft, naming?: Naming): void {
  const links = checkLinks(draft.links ?? {}).map(({ code, message }) => ({
    code: `${code}_invalid`,
    message: `${code}: ${message}`,
  }));
  const problems = [...checkClientName(draft.name, naming), ...kindProblems(draft), ...links];
  if (problems.length > 0) throw invalidClient(problems, draft.redirectUris);
}

export function invalidClient(problems: readonly Problem[], uris: readonly string[]): Refusal {
  const remedy = problems.map((problem) => remedyLine(problem, uris)).join('\n');
  return new Refusal('client_invalid', 'The client cannot be registered like this.', remedy, {
    problems,
  });
}

function kindProblems({ kind, redirectUris, isNative }: ClientDraft): Problem[] {
  if (isNative && kind !== 'public') {
    return [{ code: 'native_not_public', message: 'Only public clients can be native.' }];
  }
  if (redirectsPeople(kind)) return checkRedirectUris(redirectUris, { native: isNative }).problems;
  if (redirectUris.length === 0) return [];
  const message = `Leave out the redirect URIs: nobody is sent back to a ${kind} client.`;
  return [{ code: 'redirect_uris_unused', message }];
}

function remedyLine({ index, message }: Problem, uris: readonly string[]): string {
  return index === undefined ? message : `${uris[index]}: ${message}`;
}

/** How a URI is written that browsers open alike: an origin needs no slash (RFC 3986 §6.2.3). */
export function spellingsOf(uri: string): string[] {
  const { href, origin } = new URL(uri);
  return href === `${origin}/` ? [origin, href] : [uri];
}

/** The first row that browsers open alike: an origin needs no slash (RFC 3986 §6.2.3). */
function firstOfSame(uri: string, uris: readonly string[], options: RedirectUriOptions): number {
  const { href } = new URL(uri);
  return uris.findIndex(
    (other) =>
      other === uri || (URL.parse(other)?.href === href && !redirectUriProblem(other, options)),
  );
}

/** The row that holds, or would once corrected hold, the same URI; -1 when there is none. */
function otherSpelling(uri: string, index: number, uris: readonly string[]): number {
  const { href } = new URL(uri);
  return uris.findIndex((other, row) => {
    if (row === index || URL.parse(other)?.href !== href) return false;
    // Of two that both need correcting the first stays.
    return row < index || other === href;
  });
}

function warningsOf(
  uri: string,
  index: number,
  uris: readonly string[],
  options: RedirectUriOptions,
): Problem[] {
  const warnings: Problem[] = redirectUriWarnings(uri, options);
  if (uris.includes(`${uri}/`)) {
    const message =
      'The same URI with a slash at its end is registered too; they are not the same.';
    warnings.push({ code: 'slash_twin', message });
  }
  return warnings.map((warning) => ({ ...warning, index }));
}

const LONGEST_LINK = 500;

/** The problems of links as they are kept, `code` being the kind; none where they are fine. */
export function checkLinks(links: ClientLinks): Problem<LinkKind>[] {
  return LINKS.flatMap((kind) => {
    const url = links[kind];
    if (url === undefined || isAcceptable(url)) return [];
    const message = `Enter a full address that begins with https://, at most ${LONGEST_LINK} characters.`;
    return [{ code: kind, message }];
  });
}

/** Printable ASCII, so that no host or path looks like another; without a name and password. */
function isAcceptable(url: string): boolean {
  if (url.length > LONGEST_LINK || !/^https:\/\/[!-~]+$/i.test(url) || !URL.canParse(url))
    return false;
  const { protocol, hostname, username, password } = new URL(url);
  return protocol === 'https:' && hostname.includes('.') && username === '' && password === '';
}
