/** Describes why a value is malformed. A malformed value was never issued. */
import { CHECKSUM_LENGTH, FORMS, type ValueKind, withoutChecksum } from './random-id.ts';

const KINDS = Object.keys(FORMS) as readonly ValueKind[];
const PREFIXES = KINDS.map((kind) => FORMS[kind].prefix);

export interface Shape {
  /** Absent if the value contains no prefix of Gatehouse. */
  readonly kind?: ValueKind;
  /** Errors in the value's form, or none. Each error is the end of a sentence that begins with "the value". */
  readonly faults: readonly string[];
}

export function shapeOf(value: string): Shape {
  const kind = KINDS.find((kind) => value.includes(FORMS[kind].prefix));
  if (kind === undefined) return { faults: [unknownFormFault(value)] };
  const { prefix, minLength, maxLength } = FORMS[kind];
  const faults: string[] = [];
  const start = value.indexOf(prefix);
  if (start > 0) faults.push(`has ${shown(value.slice(0, start))} in front of ${prefix}`);
  const rest = value.slice(start + prefix.length);
  const [, body = '', tail = ''] = /^([A-Za-z0-9_-]*)(.*)$/s.exec(rest) ?? [];
  if (tail !== '') faults.push(`has ${shown(tail)} after character ${start + prefix.length + body.length}`);
  const checksumLength = kind === 'client_id' ? 0 : CHECKSUM_LENGTH;
  const [least, most] = [minLength + checksumLength, maxLength + checksumLength];
  if (body.length < least) {
    const missing = `is ${least - body.length} characters short of ${prefix.length + least}`;
    faults.push(tail === '' ? `${missing}: it was cut off` : missing);
  } else if (body.length > most) {
    faults.push(`is ${body.length - most} characters longer than the allowed ${prefix.length + most}`);
  } else if (checksumLength > 0 && !withoutChecksum(prefix + body)) {
    faults.push('has a wrong checksum: it was mistyped or cut off, or is not a value of Gatehouse');
  }
  return { kind, faults };
}

function unknownFormFault(value: string): string {
  if (value === '') return 'is empty';
  if (PREFIXES.some((prefix) => value.toLowerCase().includes(prefix))) {
    return 'is in the wrong letter case: copy it again';
  }
  const looks = /^eyJ[\w-]+\.[\w-]+\.[\w-]*$/.test(value) ? 'is a JWT, and ' : '';
  return `${looks}does not begin with a prefix of Gatehouse values (${PREFIXES.join(', ')})`;
}

/** Names only the first character, because the other characters may be part of a secret. */
function shown(text: string): string {
  const first = String.fromCodePoint(text.codePointAt(0) ?? 0);
  const more = text.length > first.length ? ` and ${text.length - first.length} more` : '';
  return (INVISIBLE[first] ?? (/\p{C}|\p{Z}/u.test(first) ? codePoint(first) : `'${first}'`)) + more;
}

const INVISIBLE: Readonly<Record<string, string>> = {
  ' ': 'a space',
  '\t': 'a tab',
  '\n': 'a line break',
  '\r': 'a line break',
  '\0': 'a NUL character',
};

const codePoint = (character: string): string =>
  `the character U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
