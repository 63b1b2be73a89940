/** Finds our secrets in any text, and undoes the encodings of logs and web pages. */
import { CHECKSUM_LENGTH, FORMS, SECRET_KINDS, type SecretKind, withoutChecksum } from './random-id.ts';

export interface PlacedSecret {
  readonly kind: SecretKind;
  readonly value: string;
  /** The part of the text that contains the value, with the line breaks in it. */
  readonly start: number;
  readonly end: number;
}

/** A line break in a value, as mail programs, quotes, shells and terminals insert them. */
const BREAK = '(?:[ \\t]{0,80}[=\\\\]?\\r?\\n[ \\t>|]*)?';
const brokenPrefix = (kind: SecretKind): string => [...FORMS[kind].prefix].join(BREAK);
const ANY_PREFIX = new RegExp(SECRET_KINDS.map((kind) => `(${brokenPrefix(kind)})`).join('|'), 'g');
const CHARACTERS = new RegExp(`${BREAK}[A-Za-z0-9_-]`, 'g');
const BODIES = SECRET_KINDS.map(
  (kind) => new RegExp(`(?:${BREAK}[A-Za-z0-9_-]){1,${FORMS[kind].maxLength + CHECKSUM_LENGTH}}`, 'y'),
);

/** Finds each secret, whatever surrounds it: its checksum says where it ends. */
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

/** An escape of JSON, also of JSON that is a text in other JSON. */
const ESCAPE = /(?<!\\)\\+(?:u([0-9a-fA-F]{4})|([nrtbf/]))/g;
const INVISIBLE = /[\u00ad\u200b\u200c\u2060\ufeff]|\u200d/g;

/** Returns a text without its encodings, for `secretsIn` and the search for IDs. */
export const decoded = (text: string): string =>
  percentDecoded(
    text.replace(INVISIBLE, '').replace(ESCAPE, (_, hex?: string, letter?: string) => {
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16));
      return letter === '/' ? '/' : ' ';
    }),
  )
    .replaceAll('\\_', '_')
    .replace(/\bBasic\s+([\w+/-]{40,}={0,2})/gi, (_, pair: string) => ` ${Buffer.from(pair, 'base64')} `);

/** Decodes URLs, also a URL that is a parameter of another. */
const percentDecoded = (text: string): string =>
  text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (all) => {
    const codes = all.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, '%');
    try {
      return decodeURIComponent(codes);
    } catch {
      return codes.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    }
  });
