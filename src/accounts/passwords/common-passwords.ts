/** Finds passwords that attackers try first: leaked ones, and data of the user. */

/** About 50,000 leaked passwords. Most are too short to be set, but users lengthen them, for example by repetition. */
let leaked: ReadonlySet<string> | undefined;
/** The demo password is no secret, because the first start prints it. */
export const DEMO_PASSWORD = 'gatehouse-demo';
const SERVICE_NAME = 'gatehouse';
/** A password that repeats a text shorter than this is as weak as a short password. */
const MIN_UNIT_LENGTH = 6;

/**
 * True if a password is a leaked one, the name of this service, the demo password or one of the user's `words`, even in
 * other letter case, repeated, or with digits and punctuation around it.
 */
export async function isCommonPassword(password: string, words: readonly string[]): Promise<boolean> {
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

/** Returns the texts that attackers try: for `Ada Lovelace <ada@demo.test>` the whole text and each word. */
function partsOf(words: string): string[] {
  const lower = words.normalize('NFC').toLowerCase();
  return [lower, lower.replaceAll(' ', ''), ...lower.split(/[\s@]+/)].filter((part) => part !== '');
}

/** Returns `abc` for `abcabcabc`, and a text without repetition unchanged. */
function repeatedUnit(text: string): string {
  // In `text + text`, the second `text` begins one repeated unit after the first.
  return text.slice(0, (text + text).indexOf(text, 1));
}
