/** Shows where a redirect URI that was sent differs from the most similar registered one. */

/** Both URIs, split at the same positions. A stretch with two different texts is a difference. */
type RedirectUriDifference = readonly Stretch[];

export interface Stretch {
  /** Empty if the URI that was sent lacks this stretch. */
  readonly sent: string;
  /** Empty if the URI that was sent should not have this stretch. */
  readonly registered: string;
}

/** Maximum product of both numbers of words. For longer URIs, only the common start and end are found. */
const MAX_COMPARISONS = 10_000;

/**
 * Compares whole words of the URIs (a scheme, a host, a segment of the path), because one differing
 * letter is easily overlooked. The most similar registered URI has the fewest differing letters.
 *
 * @returns undefined if a registered URI is equal, or no URI is registered.
 */
export function redirectUriDifference(sent: string, registered: readonly string[]): RedirectUriDifference | undefined {
  if (registered.includes(sent)) return undefined;
  const words = splitUri(sent);
  const [nearest] = registered
    .map((uri) => compare(words, splitUri(uri)))
    .sort((one, other) => unlikeness(one) - unlikeness(other));
  return nearest;
}

export const isDifferent = ({ sent, registered }: Stretch): boolean => sent !== registered;

const splitUri = (uri: string): string[] => uri.match(/[\p{L}\p{N}._~%-]+|./gsu) ?? [];

function compare(ours: readonly string[], theirs: readonly string[]): Stretch[] {
  const start = commonStart(ours, theirs);
  const end = commonStart(ours.slice(start).toReversed(), theirs.slice(start).toReversed());
  const before = ours.slice(0, start).join('');
  const after = ours.slice(ours.length - end).join('');
  const middle = between(ours.slice(start, ours.length - end), theirs.slice(start, theirs.length - end));
  return [{ sent: before, registered: before }, ...middle, { sent: after, registered: after }].filter(
    ({ sent, registered }) => sent !== '' || registered !== '',
  );
}

/** Splits two texts with different ends along their longest common subsequence of words. */
function between(ours: readonly string[], theirs: readonly string[]): Stretch[] {
  if (ours.length * theirs.length > MAX_COMPARISONS) {
    return [{ sent: ours.join(''), registered: theirs.join('') }];
  }
  const common = commonLengths(ours, theirs);
  const commonAt = (row: number, column: number): number => common[row]?.[column] ?? 0;
  const stretches: { sent: string; registered: string }[] = [];
  let [row, column] = [0, 0];
  while (row < ours.length || column < theirs.length) {
    const [our = '', their = ''] = [ours[row], theirs[column]];
    const isCommon = our !== '' && our === their;
    const isOurs = !isCommon && commonAt(row + 1, column) >= commonAt(row, column + 1);
    const takesOurs = isCommon || their === '' || (our !== '' && isOurs);
    const sent = takesOurs ? our : '';
    const registered = isCommon || !takesOurs ? their : '';
    const last = stretches.at(-1);
    if (last && isDifferent(last) !== isCommon) {
      last.sent += sent;
      last.registered += registered;
    } else {
      stretches.push({ sent, registered });
    }
    if (sent !== '') row += 1;
    if (registered !== '') column += 1;
  }
  return stretches;
}

/** Returns, for each pair of positions, the length of the longest common subsequence that begins there or later. */
function commonLengths(ours: readonly string[], theirs: readonly string[]): number[][] {
  const lengths = Array.from({ length: ours.length + 1 }, () => new Array<number>(theirs.length + 1).fill(0));
  for (let row = ours.length - 1; row >= 0; row -= 1) {
    const [here = [], below = []] = [lengths[row], lengths[row + 1]];
    for (let column = theirs.length - 1; column >= 0; column -= 1) {
      here[column] =
        ours[row] === theirs[column]
          ? (below[column + 1] ?? 0) + 1
          : Math.max(below[column] ?? 0, here[column + 1] ?? 0);
    }
  }
  return lengths;
}

/** Returns the number of differing letters within the differing words. */
function unlikeness(stretches: readonly Stretch[]): number {
  let letters = 0;
  for (const { sent, registered } of stretches.filter(isDifferent)) {
    const [ours, theirs] = [[...sent], [...registered]];
    const start = commonStart(ours, theirs);
    const end = commonStart(ours.slice(start).toReversed(), theirs.slice(start).toReversed());
    letters += ours.length + theirs.length - 2 * (start + end);
  }
  return letters;
}

function commonStart(ours: readonly string[], theirs: readonly string[]): number {
  let length = 0;
  while (length < ours.length && ours[length] === theirs[length]) length += 1;
  return length;
}
