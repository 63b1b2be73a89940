/** Finds secrets of Gatehouse in any text, and decodes what logs, mails, web pages and terminals have encoded. */
import { CHECKSUM_LENGTH, FORMS, SECRET_KINDS, type SecretKind, withoutChecksum } from './random-id.ts';

export interface PlacedSecret {
  readonly kind: SecretKind;
  readonly value: string;
  /** Where the value begins in the text. Between `start` and `end` may be line breaks, which `value` does not have. */
  readonly start: number;
  readonly end: number;
}

/** Matches a line break that a mail program, a quotation, a shell or a terminal has inserted into a value. */
const BREAK = '(?:[ \\t]{0,80}[=\\\\]?\\r?\\n[ \\t>|]*)?';
const brokenPrefix = (kind: SecretKind): string => [...FORMS[kind].prefix].join(BREAK);
const ANY_PREFIX = new RegExp(SECRET_KINDS.map((kind) => `(${brokenPrefix(kind)})`).join('|'), 'g');
const CHARACTERS = new RegExp(`${BREAK}[A-Za-z0-9_-]`, 'g');
const BODIES = SECRET_KINDS.map(
  (kind) => new RegExp(`(?:${BREAK}[A-Za-z0-9_-]){1,${FORMS[kind].maxLength + CHECKSUM_LENGTH}}`, 'y'),
);

/** Finds secrets in a text, even if other characters follow directly: the checksum shows where a secret ends. */
export function secretsIn(text: string): readonly PlacedSecret[] {
  const found: PlacedSecret[] = [];
  ANY_PREFIX.lastIndex = 0;
  for (let match = ANY_PREFIX.exec(text); match; match = ANY_PREFIX.exec(text)) {
    const start = match.index;
    const place = match.slice(1).findIndex((prefix) => prefix !== undefined);
    const [kind, body] = [SECRET_KINDS[place], BODIES[place]];
    if (!kind || !body) continue;
    body.lastIndex = ANY_PREFIX.lastIndex;
    const { prefix, minLength } = FORMS[kind];
    const characters = body.exec(text)?.[0].match(CHARACTERS) ?? [];
    for (let length = characters.length; length >= minLength + CHECKSUM_LENGTH; length--) {
      const taken = characters.slice(0, length);
      const value = prefix + taken.map((character) => character.slice(-1)).join('');
      if (!withoutChecksum(value)) continue;
      ANY_PREFIX.lastIndex += taken.join('').length;
      found.push({ kind, value, start, end: ANY_PREFIX.lastIndex });
      break;
    }
  }
  return found;
}

const COLOR = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*[A-Za-z]`, 'g');
/** Matches the name of a JSON member. In JSON within a string of other JSON, backslashes precede the quotes. */
const MEMBER = /"[\w.-]{1,99}(\\{0,9})" *:/g;
const ESCAPE = /(?<!\\)(\\+)(?:u([0-9a-fA-F]{4})|([nrtbf/]))/g;
const SOFT_BREAK = /=\r?\n/g;
/** Quoted-printable breaks lines at 76 characters (RFC 2045 §6.7). At the end of a shorter line, `=` is real text. */
const MIN_BROKEN_LINE = 60;
const INVISIBLE = /[\u00ad\u200b\u200c\u2060\ufeff]|\u200d/g;

/** Decodes a text, so that secrets and ids can be found in it. */
export function decoded(text: string): string {
  // Windows PowerShell writes UTF-16 with a byte order mark, which becomes U+FFFD in UTF-8.
  let plain = /(?:[ -~]\0){8}/.test(text) ? text.replaceAll('\0', '').replace(/^\ufffd+/, '') : text;
  plain = plain.replace(COLOR, ' ').replace(INVISIBLE, '');
  let longest = 0;
  for (const [, slashes = ''] of plain.matchAll(MEMBER)) longest = Math.max(longest, slashes.length + 1);
  plain = plain.replace(ESCAPE, (all, slashes: string, hex?: string, letter?: string) => {
    // Keep an escape with more backslashes than JSON adds: the text itself contains them, as in `CORP\\nora`.
    if (slashes.length > longest) return all;
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
    return letter === '/' ? '/' : ' ';
  });
  return percentDecoded(withoutTransferEncoding(plain))
    .replaceAll('\\_', '_')
    .replace(/\bBasic\s+([\w+/-]{40,}={0,2})/gi, (_, pair: string) => ` ${Buffer.from(pair, 'base64')} `);
}

function withoutTransferEncoding(text: string): string {
  const isLong = (end: number): boolean => end - text.lastIndexOf('\n', end) > MIN_BROKEN_LINE;
  const mail = text.replace(SOFT_BREAK, (all, end: number) => (isLong(end) ? '' : all)).replaceAll('=3D', '=');
  // Keep the original text as well: if the text is not a mail, `=3D` may be a parameter's value that begins with `3D`.
  return mail === text ? text : `${text}\n\n${mail}`;
}

/** Decodes percent-encoding, even several layers, as in a URL that is a parameter of another URL. */
const percentDecoded = (text: string): string =>
  text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (all) => {
    const codes = all.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, '%');
    try {
      return decodeURIComponent(codes);
    } catch {
      return codes.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    }
  });
