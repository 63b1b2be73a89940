/** Finds the known word that is most similar to a mistyped one. */

/**
 * Returns undefined if no word of `known` is similar enough. Ignores how the parts of a word are joined, so
 * `retryWindow` and `retry-window` match `retry_window`.
 */
export function nearestWord(typed: string, known: readonly string[]): string | undefined {
  const [closest] = known
    .map((word) => ({ word, edits: editDistance(lettersOf(typed), lettersOf(word)) }))
    .filter(({ word, edits }) => edits <= (word.length < 6 ? 1 : 2))
    .sort((a, b) => a.edits - b.edits);
  return closest?.word;
}

const lettersOf = (word: string): string => word.toLowerCase().replace(/[_-]/g, '');

/** Counts the insertions, deletions, replacements and swaps of neighbors that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let previous: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let line = 1; line <= from.length; line += 1) {
    const next = [line];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[line - 1] === to[column - 1];
      const isSwapped = from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1];
      next.push(
        Math.min(
          at(row, column - 1) + (isSame ? 0 : 1),
          at(row, column) + 1,
          at(next, column - 1) + 1,
          isSwapped ? at(previous, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    previous = row;
    row = next;
  }
  return at(row, to.length);
}

const at = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY;
