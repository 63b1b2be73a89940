/** Finds the values and IDs in a text, by their form alone, and names the faults of those that are wrong. */
import { isAccountId } from '../../accounts/account.ts';
import { isApiKeyId } from '../../accounts/api-keys/api-key.ts';
import { normalizeEmail } from '../../accounts/email.ts';
import { isOrganizationId, isWarehouseId } from '../../accounts/organizations/places.ts';
import { isPasskeyId } from '../../accounts/passkeys/passkey.ts';
import { isSessionId } from '../../accounts/session-list.ts';
import {
  CHECKSUM_LENGTH,
  FORMS,
  holdsSecret,
  isClientId,
  percentDecoded,
  SECRET_KINDS,
  type SecretKind,
  secretsIn,
  type ValueKind,
  withoutChecksum,
} from '../../base/random-id.ts';

const KINDS = Object.keys(FORMS) as readonly ValueKind[];
const PREFIXES = KINDS.map((kind) => FORMS[kind].prefix);

interface IdForm {
  readonly name: string;
  readonly test: (id: string) => boolean;
  /** Shows what an incomplete ID was meant to be. */
  readonly prefix?: string;
}

function isConnectionId(id: string): boolean {
  const [accountId = '', clientId = '', ...rest] = id.split('/');
  return isAccountId(accountId) && isClientId(clientId) && rest.length === 0;
}

/** False for a URL or a query with an address in it. */
const isEmail = (id: string): boolean =>
  normalizeEmail(id) !== undefined && !/[\s"`<>()[\],;:/\\]|^\??[\w-]+=/.test(id);

const IDS = {
  connection: { name: 'connection', test: isConnectionId },
  account: { name: 'account', test: isAccountId, prefix: 'acc_' },
  organization: { name: 'organization', test: isOrganizationId, prefix: 'org_' },
  warehouse: { name: 'warehouse', test: isWarehouseId, prefix: 'wh_' },
  session: { name: 'browser session', test: isSessionId, prefix: 'ses_' },
  api_key_id: { name: 'API key', test: isApiKeyId, prefix: 'key_' },
  passkey: { name: 'passkey', test: isPasskeyId, prefix: 'pk_' },
  request: { name: 'request', test: (id) => /^req_[0-9a-f]{16}$/.test(id), prefix: 'req_' },
  email: { name: 'email address', test: isEmail },
  authorization: { name: 'authorization', test: (id) => /^[\w-]{22}$/.test(id) },
  // The token of a one-time link, or a session in the URL of a page: only the database can tell.
  opaque: { name: 'value of 43 characters', test: (id) => /^[\w-]{43}$/.test(id) },
} as const satisfies Readonly<Record<string, IdForm>>;

type IdKind = keyof typeof IDS;
export type Kind = ValueKind | IdKind;

const ID_FORMS: readonly (readonly [IdKind, IdForm])[] = Object.entries(IDS) as never;

export const kindName = (kind: Kind): string => ({ ...FORMS, ...IDS })[kind].name;

const isSecret = (kind: Kind): kind is SecretKind => (SECRET_KINDS as readonly Kind[]).includes(kind);

/**
 * Returns an ID itself; of a secret, and of what no store knows but may be a secret of another
 * service, only the ends; of a faulty text nothing.
 */
export function publicForm({ text, kind, faults }: FoundValue, isUnknown: boolean): string {
  if (kind === undefined || faults.length > 0) return '';
  if (kind === 'email' && isUnknown) return `…${text.slice(text.lastIndexOf('@'))}`;
  if (kind === 'opaque' || (kind === 'authorization' && isUnknown)) return `…${text.slice(-4)}`;
  return isSecret(kind) ? `${FORMS[kind].prefix}…${text.slice(-4)}` : text;
}

export interface Shape {
  /** Absent if the value contains none of our prefixes. */
  readonly kind?: ValueKind;
  /** Clauses that continue "the value …"; empty if the form is valid. */
  readonly faults: readonly string[];
}

export interface FoundValue extends Omit<Shape, 'kind'> {
  readonly text: string;
  readonly kind: Kind | undefined;
}

const ADDRESS = '[^\\s\\p{C}"`<>()\\[\\]{},;|=&?:\\\\*/%#“”‘’«»…!\'@]';

/** What may be an ID: a connection, an address outside of a URL's user part, a prefix, 22 or 43 characters. */
const CANDIDATES = new RegExp(
  [
    '(?<![A-Za-z0-9])acc_[\\w-]{16}/gate_ci_[\\w-]{22}(?![\\w-])',
    `(?<!://[^\\s/?#]{0,200})(?<!${ADDRESS})(?:${ADDRESS}|(?<=\\w)'(?=\\w)){1,64}@${ADDRESS}+\\.${ADDRESS}+`,
    '(?:(?<![A-Za-z0-9])|(?<==3D))[a-z]{2,4}_[\\w-]+',
    '(?<![\\w.-])(?:[\\w-]{43}|[\\w-]{22})(?![\\w@-]|\\.\\w)',
  ].join('|'),
  'gu',
);

/**
 * Returns each value and ID of ours in a text once. If there is none, returns what is wrong with the
 * text. In longer texts, an ordinary word is never taken for an incomplete ID.
 */
export function valuesIn(given: string): readonly [FoundValue, ...FoundValue[]] {
  const alone = given.trim();
  const whole = wholeValue(alone);
  // A client that sends an invisible character after a value is refused.
  if (whole || /^gate_[\w-]+\p{C}+$/u.test(alone)) return [whole ?? wrongValue(given.replace(/\r?\n$/, ''))];
  const text = percentDecoded(given);
  const secrets = secretsIn(text);
  const found = secrets.map(
    ({ kind, value, start }) => [start, { text: value, kind, faults: [] } as FoundValue] as const,
  );
  let rest = '';
  // Write spaces for a secret, so that no part of it is taken for an ID.
  for (const { start, end } of secrets) rest += text.slice(rest.length, start).padEnd(end - rest.length);
  for (const { 0: word, index } of `${rest}${text.slice(rest.length)}`.matchAll(CANDIDATES)) {
    const one = candidate(word.replace(/(?<!\.)\.+$/, ''));
    if (one) found.push([index, one]);
  }
  const sorted = found.sort(([a], [b]) => a - b).map(([, one]) => [one.text, one] as const);
  const [first, ...others] = new Map(sorted).values();
  const isOneWord = !/\s/.test(alone);
  if (isOneWord && (!first || (first.faults.length > 0 && alone.startsWith(first.text)))) return [wrongValue(alone)];
  return first ? [first, ...others] : [{ text, kind: undefined, faults: ['contains no value or ID of Gatehouse'] }];
}

/** Returns an ID, or a value of ours that was cut off or mistyped. */
function candidate(word: string): FoundValue | undefined {
  const whole = wholeValue(word);
  if (whole) return isOrdinary(whole) ? undefined : whole;
  const prefix = PREFIXES.find((prefix) => word.startsWith(prefix));
  return prefix && word.length >= prefix.length + 8 ? wrongValue(word) : undefined;
}

/** True for a long word without mixed case: 22 or 43 random characters always have that. */
const isOrdinary = ({ kind, text }: FoundValue): boolean =>
  (kind === 'authorization' || kind === 'opaque') && !(/[a-z]/.test(text) && /.[A-Z]/.test(text));

function wholeValue(text: string): FoundValue | undefined {
  const { kind, faults } = shapeOf(text);
  if (kind && faults.length === 0) return { text, kind, faults };
  // A token that was cut to 22 or 43 characters is no ID, and what contains a secret is no address.
  if (holdsSecret(text) || (kind && text.startsWith(FORMS[kind].prefix))) return undefined;
  const [id] = ID_FORMS.find(([, { test }]) => test(text)) ?? [];
  return id && { text, kind: id, faults: [] };
}

function wrongValue(text: string): FoundValue {
  const [id] = ID_FORMS.find(([, { prefix }]) => prefix !== undefined && text.startsWith(prefix)) ?? [];
  return id ? { text, kind: id, faults: ['is not a complete ID'] } : { text, kind: undefined, ...shapeOf(text) };
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

/** Shows one character, by name if it is invisible: more may be part of a secret. */
function shown(text: string): string {
  const [first = ''] = text;
  const more = [...text].length > 1 ? ` and ${[...text].length - 1} more` : '';
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
