/** Finds the values and IDs in a text, by their form alone, and names the faults of those that are wrong. */
import { isAccountId } from '../../accounts/account.ts';
import { isApiKeyId } from '../../accounts/api-keys/api-key.ts';
import { isOrganizationId, isWarehouseId } from '../../accounts/organizations/places.ts';
import { isPasskeyId } from '../../accounts/passkeys/passkey.ts';
import { isSessionId } from '../../accounts/session-list.ts';
import {
  CHECKSUM_LENGTH,
  FORMS,
  holdsSecret,
  isClientId,
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

const IDS = {
  connection: { name: 'connection', test: isConnectionId },
  account: { name: 'account', test: isAccountId, prefix: 'acc_' },
  organization: { name: 'organization', test: isOrganizationId, prefix: 'org_' },
  warehouse: { name: 'warehouse', test: isWarehouseId, prefix: 'wh_' },
  session: { name: 'browser session', test: isSessionId, prefix: 'ses_' },
  api_key_id: { name: 'API key', test: isApiKeyId, prefix: 'key_' },
  passkey: { name: 'passkey', test: isPasskeyId, prefix: 'pk_' },
  request: { name: 'request', test: (id) => /^req_[0-9a-f]{16}$/.test(id), prefix: 'req_' },
  email: { name: 'email address', test: (id) => /^[^\s@]+@[^\s@]+$/.test(id) },
  authorization: { name: 'authorization', test: (id) => /^[\w-]{22}$/.test(id) },
  // The token of a one-time link, or a session in the URL of a page: only the database can tell.
  opaque: { name: 'value of 43 characters', test: (id) => /^[\w-]{43}$/.test(id) },
} as const satisfies Readonly<Record<string, IdForm>>;

type IdKind = keyof typeof IDS;
export type Kind = ValueKind | IdKind;

const ID_FORMS: readonly (readonly [IdKind, IdForm])[] = Object.entries(IDS) as never;

export const NAME: Readonly<Record<ValueKind, string>> = {
  access_token: 'access token',
  machine_token: 'machine access token',
  refresh_token: 'refresh token',
  code: 'authorization code',
  client_secret: 'client secret',
  api_key: 'API key',
  client_id: 'client ID',
};

export const kindName = (kind: Kind): string => (kind in IDS ? IDS[kind as IdKind].name : NAME[kind as ValueKind]);

const isSecret = ({ kind, text }: FoundValue): boolean =>
  kind === undefined || kind === 'opaque' || (kind in NAME && kind !== 'client_id') || holdsSecret(text);

/** Returns an ID itself; of a secret only its kind and its last characters, of a faulty text nothing. */
export function publicForm(found: FoundValue): string {
  const { text, kind, faults } = found;
  if (!isSecret(found)) return text;
  if (kind === undefined || faults.length > 0) return '';
  return `${kind === 'opaque' ? '' : FORMS[kind as ValueKind].prefix}…${text.slice(-4)}`;
}

export interface Shape {
  /** Absent if the value contains none of our prefixes. */
  readonly kind?: ValueKind;
  /** Clauses that continue "the value …"; empty if the form is valid. */
  readonly faults: readonly string[];
}

export interface FoundValue {
  readonly text: string;
  readonly kind: Kind | undefined;
  /** Clauses that continue "the value …"; empty if the form is valid. */
  readonly faults: readonly string[];
}

/** What separates values in logs, JSON, CSV and prose: no value of ours contains any of it. */
const WORDS = /https?:\/\/[^\s"'`<>]+|[^\s"'`<>()[\]{},;|=&?:]+/g;

/**
 * Returns each value and ID of ours in a text once. If there is none, returns what is wrong with the
 * text. In longer texts, an ordinary word is never taken for an incomplete ID.
 */
export function valuesIn(text: string): readonly [FoundValue, ...FoundValue[]] {
  const words = (text.match(WORDS) ?? []).map((word) => word.replace(/[.!]+$/, ''));
  const found = words.flatMap((word) => valueIn(word, words.length === 1));
  const [first, ...others] = new Map(found.map((one) => [one.text, one])).values();
  if (first) return [first, ...others];
  if (words.length > 1) return [{ text, kind: undefined, faults: ['contains no value or ID of Gatehouse'] }];
  return [wrongValue(text.trim())];
}

function valueIn(word: string, isAlone: boolean): readonly FoundValue[] {
  if (/^https?:\/\//.test(word) && URL.canParse(word)) {
    const { searchParams, pathname } = new URL(word);
    const parts = [...pathname.split('/'), ...searchParams.values()].reverse();
    return parts.flatMap((part) => wholeValue(part) ?? []).slice(0, 1);
  }
  const whole = wholeValue(word);
  if (whole) return isAlone || !isOrdinary(whole) ? [whole] : [];
  return isAlone || PREFIXES.some((prefix) => word.includes(prefix)) ? [wrongValue(word)] : [];
}

/** True for a long word without mixed case: 22 or 43 random characters always have that. */
const isOrdinary = ({ kind, text }: FoundValue): boolean =>
  (kind === 'authorization' || kind === 'opaque') && !(/[a-z]/.test(text) && /.[A-Z]/.test(text));

function wholeValue(text: string): FoundValue | undefined {
  const { kind, faults } = shapeOf(text);
  if (kind && faults.length === 0) return { text, kind, faults };
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
