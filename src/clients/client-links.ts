/** Pages about a client that its owner names: shown as theirs, and never looked at by this service. */
import type { Problem } from '../refusal.ts';

/** The kinds, in the order in which they are shown. */
export const LINKS = ['homepage', 'support', 'privacy'] as const;

export type LinkKind = (typeof LINKS)[number];

/** Absolute `https:` URLs, each absent where none is named. */
export type ClientLinks = { readonly [Kind in LinkKind]?: string };

const LONGEST = 500;

/** As they are kept: what was left empty is absent. */
export const normalizeLinks = (
  entered: {
    readonly [Kind in LinkKind]?: string | undefined;
  },
): ClientLinks =>
  Object.fromEntries(
    LINKS.map((kind) => [kind, entered[kind]?.trim()]).filter(([, url]) => url),
  ) as ClientLinks;

/** The problems of links as they are kept, `code` being the kind; none where they are fine. */
export function checkLinks(links: ClientLinks): Problem<LinkKind>[] {
  return LINKS.flatMap((kind) => {
    const url = links[kind];
    if (url === undefined || isAcceptable(url)) return [];
    const message = `Enter a full address that begins with https://, at most ${LONGEST} characters.`;
    return [{ code: kind, message }];
  });
}

export const isSameLinks = (a: ClientLinks, b: ClientLinks): boolean =>
  LINKS.every((kind) => a[kind] === b[kind]);

/** Printable ASCII, so that no host or path looks like another; without a name and password. */
function isAcceptable(url: string): boolean {
  if (url.length > LONGEST || !/^https:\/\/[!-~]+$/i.test(url) || !URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  return protocol === 'https:' && hostname.includes('.') && username === '' && password === '';
}
