/** Rules for names that other users read: which characters are allowed, and which names look alike. */
import { isIPv4 } from 'node:net';
import { domainToASCII } from 'node:url';
import { tlds } from '@hapi/tlds';
import unhomoglyph from 'unhomoglyph';
import { message, type Values } from '../base/message.ts';
import type { Problem } from '../base/refusal.ts';
import { languages, problemOf, textsFor } from './texts.ts';

/**
 * Characters that are invisible or change how other characters are displayed: control characters, lone surrogates,
 * direction overrides, zero-width characters, and blank letters such as U+3164.
 */
export const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Invisible letters: a name that consists of them looks empty. */
const BLANK_LETTER = /[\u115f\u1160\u2800\u3164\uffa0]/u;

export const hasBlankLetter = (name: string): boolean => BLANK_LETTER.test(name);

const MAX_MARKS = 2;
/** Nonspacing and enclosing marks. Tibetan marks are excluded, because some of them are letters. */
const MARKS = /[[\p{Mn}\p{Me}]--\p{Script=Tibetan}]/gv;

/** True if a letter has so many marks that they may cover the surrounding text. */
export function isOverloaded(name: string): boolean {
  return Array.from(graphemes.segment(name.normalize('NFC'))).some(({ segment }) => {
    // If Unicode has one character for a letter with its marks, allow the letter, because some language uses it.
    if (marksIn(segment) === 0) return false;
    return marksIn(segment.normalize('NFD')) > MAX_MARKS;
  });
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });
const marksIn = (text: string): number => text.match(MARKS)?.length ?? 0;

export function nameProblem(
  code: 'missing' | 'too_long' | 'character' | 'marks' | 'scripts' | 'address' | 'reserved' | 'taken' | 'secret',
  values?: Values,
): Problem {
  return problemOf(`name_${code}`, message(`names.${code}`, values));
}

/** Returns the reasons for which a name could mislead its readers. */
export function claimProblems(name: string): Problem[] {
  const problems: Problem[] = [];
  if (isOverloaded(name)) problems.push(nameProblem('marks', { max: MAX_MARKS }));
  if (!isOfOneWriting(name)) problems.push(nameProblem('scripts'));
  if (holdsAddress(name)) problems.push(nameProblem('address'));
  if (speaksForService(name)) problems.push(nameProblem('reserved'));
  return problems;
}

/** Scripts that UAX #31, table 5, recommends for identifiers, except Latin and the East Asian scripts. */
const SINGLE_SCRIPTS =
  'Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Hebrew ' +
  'Kannada Khmer Lao Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan';

/** UTS #39 §5.2, "highly restrictive": all letters of a name must belong to one of these sets of scripts. */
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

/** Top-level domains for private use, tests and examples (RFC 6761 and others). */
const RESERVED_TLDS = 'alt example internal invalid local localhost onion test'.split(' ');
const TLDS: ReadonlySet<string> = new Set([...tlds, ...RESERVED_TLDS]);

function holdsAddress(name: string): boolean {
  // Browsers treat the ideographic full stop as a dot. The other replaced signs only look like dots and slashes.
  const text = name
    .normalize('NFKC')
    .replaceAll('。', '.')
    .replace(/ +/g, ' ')
    .replace(/ \. |[[({]\.[\])}]/g, '.')
    .replace(/[^\p{L}\p{M}0-9]/gu, (sign) => unhomoglyph(sign))
    .replaceAll('·', '.')
    .toLowerCase();
  if (text.includes('://') || text.includes('@localhost')) return true;
  return text.split(/[^\p{L}\p{M}\p{N}.-]/u).some(isHost);
}

function isHost(word: string): boolean {
  if (isIPv4(word)) return true;
  const labels = word.replace(/\.$/, '').split('.');
  const last = labels.at(-1) ?? '';
  if (labels.length < 2 || labels.includes('')) return false;
  return labels[0] === 'www' || last.startsWith('xn--') || TLDS.has(domainToASCII(last));
}

/**
 * Matches symbols, which readers could take for a sign of verification, and phonetic letters such as small capitals,
 * which could spell any word. Phonetic letters have no capital form, except `ɪ` and `ʀ`.
 */
const MISLEADING = /[[\p{So}--[©®°]]√ɪʀ[[\p{Ll}&&\p{Script=Latin}]--\p{Changes_When_Uppercased}]]/v;
/** Signs that readers take for a letter. */
const SIGN_LETTERS: Readonly<Record<string, string>> = { '¡': 'i', '!': 'i', $: 's', '@': 'a' };
const WORD_ENDS = /[^\p{L}\p{N}\p{M}]+|(?<=\p{Ll})(?=\p{Lu})/u;

/** True if the name has a misleading symbol, or a word such as "verified" that only the service may say of a client. */
function speaksForService(name: string): boolean {
  const plain = name.normalize('NFKC');
  if (MISLEADING.test(plain)) return true;
  const read = plain.replaceAll('|', 'l').replace(/[¡!$@](?=\p{L})/gu, (sign) => SIGN_LETTERS[sign] ?? sign);
  const harmless = looksOf('harmless-words');
  return [plain, read].some((text) => {
    const words = text.split(WORD_ENDS).map(lookOf);
    const look = words.filter((word) => !harmless.includes(word)).join('');
    return looksOf('reserved-words').some((word) => look.includes(word));
  });
}

/** Names shorter than this are ignored: others contain them by chance, as “Togo App” contains “to” and “Go”. */
const SHORTEST_WITH_VARIANTS = 4;

/** Returns a test: true for the look of a name to which `name` only adds numbers and generic words. */
export function variantTest(name: string): (look: string) => boolean {
  const variants = [name, name.replace(/v?\p{N}+/giu, '')].map(lookOf);
  return (look) =>
    look.length >= SHORTEST_WITH_VARIANTS &&
    variants.some((text) => text.includes(look) && isFramed(text, look)) &&
    // Ignore names of only generic words: otherwise a client named “Accounting” would make “My Accounting” unavailable.
    !reach(look, [0], looksOf('generic-words')).has(look.length);
}

/** True if the text is `word`, with only generic words before and after it. */
function isFramed(text: string, word: string): boolean {
  const generic = looksOf('generic-words');
  const starts = [...reach(text, [0], generic)].filter((at) => text.startsWith(word, at));
  const ends = starts.map((at) => at + word.length);
  return reach(text, ends, generic).has(text.length);
}

/** Returns each position at which a sequence of `words` can end if it starts at a position in `from`. */
function reach(text: string, from: readonly number[], words: readonly string[]): Set<number> {
  const reached = new Set(from);
  // The loop also visits the positions that it adds to the set.
  for (const at of reached) {
    for (const word of words) if (text.startsWith(word, at)) reached.add(at + word.length);
  }
  return reached;
}

const wordLooks = new Map<string, readonly string[]>();

/** Returns the `lookOf` result for each word of a list, in all languages. */
function looksOf(list: 'reserved-words' | 'harmless-words' | 'generic-words'): readonly string[] {
  const known = wordLooks.get(list);
  if (known) return known;
  const texts = languages().map((language) => textsFor(language)(`names.${list}`));
  const words = texts.join(' ').match(/\S+/g) ?? [];
  const found = [...new Set(words.map(lookOf))];
  wordLooks.set(list, found);
  return found;
}

/**
 * Returns the look of a name, which UTS #39 §4 calls its skeleton: names with the same look can be confused. The look
 * ignores case, accents, spaces and punctuation, and replaces each digit and each letter of another script by the Latin
 * letter that looks like it.
 */
export function lookOf(name: string): string {
  const plain = name.normalize('NFKD');
  // Convert twice, because some letters look alike only in upper case, and others only in lower case.
  const seen = unhomoglyph(unhomoglyph(plain).toLowerCase()).normalize('NFKD');
  // In many fonts, a capital `I` looks like `l`.
  const look = seen.replace(/i/g, 'l').replace(UNSEEN, '');
  return look === '' ? plain.replace(/\s/g, '') : look;
}

/** Matches everything except letters, digits and the marks of a script, such as vowel signs. */
const UNSEEN = /[^[\p{L}\p{N}\p{M}]--[[\p{M}&&\p{Script=Inherited}]--[\u3099\u309a]]]/gv;

/** A word that a client's name must not contain, because readers would take the client for the service. */
export interface ReservedWord {
  readonly look: string;
  /** True if the word is refused even within a longer word, because it is too long to occur there by chance. */
  readonly isAnywhere: boolean;
}

const SHORTEST_ANYWHERE = 6;
export const PRODUCT = 'Gatehouse';
/** Second-level domains under which anyone can register a domain, as in `example.co.uk`. */
const SECOND_LEVEL = new Set('ac co com edu gov net org'.split(' '));

/** Returns the names of the product, of the brand, and of the issuer (`acme` for `auth.acme.example`). */
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
      : lookOf(name) === look || name.split(/[^\p{L}\p{N}\p{M}]/u).some((word) => lookOf(word) === look),
  );
