/** What a name may be made of where others read it, and which names look alike. */
import unhomoglyph from 'unhomoglyph';

/**
 * Characters that do not show or that change how others show: controls, lone surrogates, direction
 * overrides, zero-width characters and blank letters such as U+3164.
 */
export const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Letters that show nothing: a name of them is an empty one. */
const BLANK_LETTER = /[\u115f\u1160\u2800\u3164\uffa0]/u;

export const hasBlankLetter = (name: string): boolean => BLANK_LETTER.test(name);

const MAX_MARKS = 2;
/** In Tibetan, letters below others are marks as well. */
const MARKS = /[[\p{Mn}\p{Me}]--\p{Script=Tibetan}]/gv;

/** Whether a letter carries so many marks that they cover what stands around it. */
export function isOverloaded(name: string): boolean {
  return Array.from(graphemes.segment(name.normalize('NFC'))).some(({ segment }) => {
    // What Unicode has as one letter with all of its marks is a letter of some language.
    if (marksIn(segment) === 0) return false;
    return marksIn(segment.normalize('NFD')) > MAX_MARKS;
  });
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const marksIn = (text: string): number => text.match(MARKS)?.length ?? 0;

/** As the refusals have their problems. */
export interface NameProblem {
  readonly code: 'name_marks' | 'name_scripts' | 'name_address';
  readonly message: string;
}

/** The problems of a name that others take for a claim; none where it is fine. */
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

/** Recommended for identifiers (UAX #31, table 5); Latin and the East Asian ones stand below. */
const SINGLE_SCRIPTS =
  'Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Hebrew ' +
  'Kannada Khmer Lao Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan';

/** UTS #39 §5.2: a name is of one script, or of one of these sets ("highly restrictive"). */
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

/** Top-level domains that names of programs end with by chance are left out, such as `js`. */
const ENDINGS = new Set(
  'app biz cloud com dev edu gov info int mil net online org shop site store tech test xyz'.split(
    ' ',
  ),
);
const REGIONS = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });

function holdsAddress(name: string): boolean {
  // Full-width dots and slashes are read as what they stand for.
  const text = name.normalize('NFKC').toLowerCase();
  if (text.includes('://')) return true;
  return text.split(/[^\p{L}\p{M}\p{N}.-]/u).some(isHost);
}

function isHost(word: string): boolean {
  const labels = word.replace(/\.$/, '').split('.');
  const last = labels.at(-1) ?? '';
  if (labels.length < 2 || labels.includes('')) return false;
  if (labels[0] === 'www' || ENDINGS.has(last) || last.startsWith('xn--')) return true;
  // The top-level domains of two letters are those of countries.
  return /^[a-z]{2}$/.test(last) && REGIONS.of(last.toUpperCase()) !== undefined;
}

/**
 * What a name looks like: names with the same look could be taken for each other (UTS #39 §4). Letter
 * case, accents, spaces and punctuation make no difference, and neither do letters of other scripts
 * and digits that look like a letter.
 */
export function lookOf(name: string): string {
  const plain = name.normalize('NFKD');
  // Twice, because what looks alike in capitals differs in small letters, and the other way round.
  const seen = unhomoglyph(unhomoglyph(plain).toLowerCase()).normalize('NFKD');
  // `i` and `l` are the same in capitals, as `I` and `l` are in many fonts.
  const look = seen.replace(/i/g, 'l').replace(UNSEEN, '');
  return look === '' ? plain.replace(/\s/g, '') : look;
}

/** All but letters, digits and the marks that belong to a script, such as vowel signs. */
const UNSEEN = /[^[\p{L}\p{N}\p{M}]--[[\p{M}&&\p{Script=Inherited}]--[\u3099\u309a]]]/gv;

/** A word that names may not contain, for it is who runs the service. */
export interface ReservedWord {
  readonly look: string;
  /** Also as part of a longer word: only where it is long enough not to be there by chance. */
  readonly isAnywhere: boolean;
}

const SHORTEST_ANYWHERE = 6;
const PRODUCT = 'Gatehouse';
/** Below these, domains are registered as below a top-level domain: `example.co.uk`. */
const SECOND_LEVEL = new Set('ac co com edu gov net org'.split(' '));

/** The name of this product, and what the issuer's host is called: `acme` of `auth.acme.example`. */
export function reservedWords(issuer: string): ReservedWord[] {
  const { hostname } = new URL(issuer);
  const labels = /^[\d.]+$|:/.test(hostname) ? [] : hostname.split('.').slice(0, -1);
  if (SECOND_LEVEL.has(labels.at(-1) ?? '')) labels.pop();
  const words = [PRODUCT, labels.at(-1) ?? ''].filter((word) => word !== '');
  return words.map((word) => ({
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
