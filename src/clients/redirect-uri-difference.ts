/** Shows where a redirect URI that was sent differs from the most similar registered one. */

/** Both URIs, split at the same places; a stretch whose texts are not equal is a difference. */
type RedirectUriDifference = readonly Stretch[];

export interface Stretch {
  /** Empty if the URI that was sent lacks this stretch. */
  readonly sent: string;
  /** Empty if the URI that was sent should not have this stretch. */
  readonly registered: string;
}

/**
 * Compares whole words of the URIs (a scheme, a host, a segment of the path), because one differing
 * letter is easily overlooked: all between the common words of the start and the end is one difference. The most
 * similar registered URI has the most letters in common at its start and end.
 *
 * @returns undefined if a registered URI is equal, or no URI is registered.
 */
export function redirectUriDifference(sent: string, registered: readonly string[]): RedirectUriDifference | undefined {
  if (registered.includes(sent)) return undefined;
  const [nearest] = registered.toSorted((one, other) => unlikeness(sent, one) - unlikeness(sent, other));
  return nearest === undefined ? undefined : compare(splitUri(sent), splitUri(nearest));
}

export const isDifferent = ({ sent, registered }: Stretch): boolean => sent !== registered;

const splitUri = (uri: string): string[] => uri.match(/[\p{L}\p{N}._~%-]+|./gsu) ?? [];

function compare(ours: readonly string[], theirs: readonly string[]): Stretch[] {
  const { start, end } = commonEnds(ours, theirs);
  const [before, after] = [ours.slice(0, start).join(''), ours.slice(ours.length - end).join('')];
  const middle = (words: readonly string[]): string => words.slice(start, words.length - end).join('');
  return [
    { sent: before, registered: before },
    { sent: middle(ours), registered: middle(theirs) },
    { sent: after, registered: after },
  ].filter(({ sent, registered }) => sent !== '' || registered !== '');
}

/** Returns the number of letters of both URIs that differ. */
function unlikeness(sent: string, registered: string): number {
  const [ours, theirs] = [[...sent], [...registered]];
  const { start, end } = commonEnds(ours, theirs);
  return ours.length + theirs.length - 2 * (start + end);
}

function commonEnds(ours: readonly string[], theirs: readonly string[]) {
  const start = commonStart(ours, theirs);
  return { start, end: commonStart(ours.slice(start).toReversed(), theirs.slice(start).toReversed()) };
}

function commonStart(ours: readonly string[], theirs: readonly string[]): number {
  let length = 0;
  while (length < ours.length && ours[length] === theirs[length]) length += 1;
  return length;
}
