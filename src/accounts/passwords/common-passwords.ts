/** Which passwords are tried first: those of known leaks, and what is known of the person. */

/** About 50,000, most of them shorter than what we accept: they are looked for in their disguises. */
let leaked: ReadonlySet<string> | undefined;
/** Printed at the first start, so not a secret. */
export const DEMO_PASSWORD = 'gatehouse-demo';
const SERVICE_NAME = 'gatehouse';
/** A password that repeats fewer characters than this is a short password. */
const SHORTEST_UNIT = 6;

/**
 * Whether a password is a leaked one, the name of this service, the demo's or one of the person's `words`,
 * also with other letter case, repeated, or with digits and punctuation around it.
 */
export async function isCommonPassword(
  password: string,
  words: readonly string[],
): Promise<boolean> {
  const lower = password.toLowerCase();
  const unit = repeatedUnit(lower);
  if (unit !== lower && [...unit].length < SHORTEST_UNIT) return true;
  const core = /\p{L}(?:.*\p{L})?/su.exec(unit)?.[0] ?? '';
  const guessable = new Set([SERVICE_NAME, DEMO_PASSWORD, ...words.flatMap(partsOf)]);
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  leaked ??= new Set(dictionary['passwords-common']);
  const guessed = [leaked, guessable];
  return [lower, unit, core].some((form) => guessed.some((known) => known.has(form)));
}

/** `Ada Lovelace <ada@demo.test>` is guessed as a whole and by its words. */
function partsOf(words: string): string[] {
  const lower = words.normalize('NFC').toLowerCase();
  return [lower, lower.replaceAll(' ', ''), ...lower.split(/[\s@]+/)].filter((part) => part !== '');
}

/** `abcabcabc` is `abc` three times; a text that repeats nothing is its own unit. */
function repeatedUnit(text: string): string {
  // Where a text occurs in its own double before its end, it is a repetition of what precedes.
  return text.slice(0, (text + text).indexOf(text, 1));
}
