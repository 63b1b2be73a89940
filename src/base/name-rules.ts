/** Rules for names that other people read: allowed characters, and names that look alike. */
import unhomoglyph from 'unhomoglyph';

/**
 * Characters that do not show or that change how others show: controls, lone surrogates, direction
 * overrides, zero-width characters and blank letters such as U+3164.
 */
export const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Letters without a visible shape: a name made of them looks empty. */
const BLANK_LETTER = /[\u115f\u1160\u2800\u3164\uffa0]/u;

export const hasBlankLetter = (name: string): boolean => BLANK_LETTER.test(name);

const MAX_MARKS = 2;
/** Nonspacing and enclosing marks, but not Tibetan ones, because some are subjoined letters. */
const MARKS = /[[\p{Mn}\p{Me}]--\p{Script=Tibetan}]/gv;

/** True if a letter has so many marks that they cover the text around it. */
export function isOverloaded(name: string): boolean {
  return Array.from(graphemes.segment(name.normalize('NFC'))).some(({ segment }) => {
    // A letter that Unicode has precomposed with all of its marks is a letter of some language.
    if (marksIn(segment) === 0) return false;
    return marksIn(segment.normalize('NFD')) > MAX_MARKS;
  });
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const marksIn = (text: string): number => text.match(MARKS)?.length ?? 0;

/** A problem that can be thrown as one of the problems of a `Refusal`. */
export interface NameProblem {
  readonly code: 'name_marks' | 'name_scripts' | 'name_address';
  readonly message: string;
}

/** Returns the problems of a name that could mislead its readers. */
export function claimProblems(name: string): NameProblem[] {
  const problems: NameProblem[] = [];
  if (isOverloaded(name)) {
    const message = `Use at most ${MAX_MARKS} accents or other marks on one letter.`;
    problems.push({ code: 'name_marks', message });
  }
  if (!isOfOneWriting(name)) {
    const message =
      'Use letters of one alphabet: those of two can look the same. Latin letters may stand next ' +
      'to Chinese, Japanese or Korean ones.';
    problems.push({ code: 'name_scripts', message });
  }
  if (holdsAddress(name)) {
    const message = 'Leave out the web address: a name does not prove whose address it is.';
    problems.push({ code: 'name_address', message });
  }
  return problems;
}

/** Scripts recommended for identifiers (UAX #31, table 5), without Latin and the East Asian ones below. */
const SINGLE_SCRIPTS =
  'Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Hebrew ' +
  'Kannada Khmer Lao Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan';

/** UTS #39 §5.2, "highly restrictive": a name uses one script or one of these sets. */
const WRITINGS: readonly RegExp[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
  ...SINGLE_SCRIPTS.split(' ').map((script) => [script]),
].map((scripts) => {
  const allowed = [...scripts, 'Common', 'Inherited'];
  return new RegExp(`^[${allowed.map((script) => `\\p{scx=${script}}`).join('')}]*$`, 'u');
});

function isOfOneWriting(name: string): boolean {
  const letters = name.normalize('NFC').replace(/[^\p{L}\p{M}]/gu, '');
  return WRITINGS.some((writing) => writing.test(letters));
}

/** Common top-level domains, except endings that are usual in program names, such as `js`. */
const ENDINGS = new Set(
  'app biz cloud com dev edu gov info int mil net online org shop site store tech test xyz'.split(
    ' ',
  ),
);
const REGIONS = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

function holdsAddress(name: string): boolean {
  // Normalizes full-width dots and slashes.
  const text = name.normalize('NFKC').toLowerCase();
  if (text.includes('://')) return true;
  return text.split(/[^\p{L}\p{M}\p{N}.-]/u).some(isHost);
}

function isHost(word: string): boolean {
  const labels = word.replace(/\.$/, '').split('.');
  const last = labels.at(-1) ?? '';
  if (labels.length < 2 || labels.includes('')) return false;
  if (labels[0] === 'www' || ENDINGS.has(last) || last.startsWith('xn--')) return true;
  // Two-letter top-level domains belong to countries.
  return /^[a-z]{2}$/.test(last) && REGIONS.of(last.toUpperCase()) !== undefined;
}

/**
 * Returns the skeleton of a name: names with the same skeleton look alike (UTS #39 §4). It ignores
 * letter case, accents, spaces and punctuation, and letters of other scripts and digits count as the
 * letter that they look like.
 */
export function lookOf(name: string): string {
  const plain = name.normalize('NFKD');
  // Convert twice, because letters may look alike only as capitals, or only as small letters.
  const seen = unhomoglyph(unhomoglyph(plain).toLowerCase()).normalize('NFKD');
  // `I` and `l` look the same in many fonts.
  const look = seen.replace(/i/g, 'l').replace(UNSEEN, '');
  return look === '' ? plain.replace(/\s/g, '') : look;
}

/** Everything but letters, digits and the marks of a script, such as vowel signs. */
const UNSEEN = /[^[\p{L}\p{N}\p{M}]--[[\p{M}&&\p{Script=Inherited}]--[\u3099\u309a]]]/gv;

/** A word that names may not contain, because it stands for the operator of the service. */
export interface ReservedWord {
  readonly look: string;
  /** True if also refused inside a longer word: only for words too long to occur by chance. */
  readonly isAnywhere: boolean;
}

const SHORTEST_ANYWHERE = 6;
/** The name of the service if the operator has given it no other. */
export const PRODUCT = 'Gatehouse';
/** Second-level domains under which domains are registered, as in `example.co.uk`. */
const SECOND_LEVEL = new Set('ac co com edu gov net org'.split(' '));

/** Returns the names of product, brand and issuer: of `auth.acme.example` it is `acme`. */
export function reservedWords(issuer: string, brandNames: readonly string[] = []): ReservedWord[] {
  const { hostname } = new URL(issuer);
  const labels = /^[\d.]+$|:/.test(hostname) ? [] : hostname.split('.').slice(0, -1);
  if (SECOND_LEVEL.has(labels.at(-1) ?? '')) labels.pop();
  const words = new Set([PRODUCT, ...brandNames, labels.at(-1) ?? '']);
  words.delete('');
  return [...words].map((word) => ({
    look: lookOf(word),
    isAnywhere: word.length >= SHORTEST_ANYWHERE,
  }));
}

export const holdsReserved = (name: string, reserved: readonly ReservedWord[]): boolean =>
  reserved.some(({ look, isAnywhere }) =>
    isAnywhere
      ? lookOf(name).includes(look)
      : lookOf(name) === look ||
        name.split(/[^\p{L}\p{N}\p{M}]/u).some((word) => lookOf(word) === look),
  );
