/** Finds passwords that attackers try first: leaked ones, and what is known of the user. */

/** About 50,000. Most are too short for us, but we find them in passwords that only vary them. */
let leaked: ReadonlySet<string> | undefined;
/** Printed at the first start, so not a secret. */
export const DEMO_PASSWORD = 'gatehouse-demo';
const SERVICE_NAME = 'gatehouse';
/** A password that only repeats fewer characters than this is as weak as a short one. */
const MIN_UNIT_LENGTH = 6;

/**
 * True if a password is a leaked one, the name of this service, the demo's or one of the user's
 * `words`, also with other letter case, repeated, or with digits and punctuation around it.
 */
export async function isCommonPassword(
  password: string,
  words: readonly string[],
): Promise<boolean> {
  const lower = password.toLowerCase();
  const unit = repeatedUnit(lower);
  if (unit !== lower && [...unit].length < MIN_UNIT_LENGTH) return true;
  const core = /\p{L}(?:.*\p{L})?/su.exec(unit)?.[0] ?? '';
  const guessable = new Set([SERVICE_NAME, DEMO_PASSWORD, ...words.flatMap(partsOf)]);
  const { dictionary } = await import('@zxcvbn-ts/language-common');
  leaked ??= new Set(dictionary['passwords-common']);
  const guessed = [leaked, guessable];
  return [lower, unit, core].some((form) => guessed.some((known) => known.has(form)));
}

/** Attackers guess `Ada Lovelace <ada@demo.test>` as a whole and by its words. */
function partsOf(words: string): string[] {
  const lower = words.normalize('NFC').toLowerCase();
  return [lower, lower.replaceAll(' ', ''), ...lower.split(/[\s@]+/)].filter((part) => part !== '');
}

/** Returns `abc` for `abcabcabc`; a text that repeats nothing is its own unit. */
function repeatedUnit(text: string): string {
  // If a text occurs in its own double before its end, it repeats what precedes that place.
  return text.slice(0, (text + text).indexOf(text, 1));
}
