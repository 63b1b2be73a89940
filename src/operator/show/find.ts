/** Finds secret values and IDs in a text by their form, without a store. */
import { normalizeEmail } from '../../accounts/email.ts';
import { FORMS, holdsSecret, SECRET_KINDS, type SecretKind, type ValueKind } from '../../base/random-id.ts';
import { decoded, secretsIn } from '../../base/secrets-in-text.ts';
import { shapeOf } from '../../base/value-faults.ts';

const RANDOM = '[\\w-]{16}';
const IDS = {
  connection: { name: 'connection', prefix: '', rest: `acc_${RANDOM}/gate_ci_[\\w-]{22}` },
  account: { name: 'account', prefix: 'acc_', rest: RANDOM },
  organization: { name: 'organization', prefix: 'org_', rest: RANDOM },
  warehouse: { name: 'warehouse', prefix: 'wh_', rest: RANDOM },
  session: { name: 'browser session', prefix: 'ses_', rest: RANDOM },
  api_key_id: { name: 'API key', prefix: 'key_', rest: RANDOM },
  passkey: { name: 'passkey', prefix: 'pk_', rest: RANDOM },
  request: { name: 'request', prefix: 'req_', rest: '[0-9a-f]{16}' },
} as const;

const NAMES = {
  email: { name: 'email address' },
  authorization: { name: 'authorization' },
  // Only the database can tell whether this is the token of a one-time link, or the ID of a session from a page's URL.
  opaque: { name: 'value of 43 characters' },
} as const;

type IdKind = keyof typeof IDS;
export type Kind = ValueKind | IdKind | keyof typeof NAMES;

export const kindName = (kind: Kind): string => ({ ...FORMS, ...IDS, ...NAMES })[kind].name;

export interface FoundValue {
  readonly text: string;
  readonly kind: Kind | undefined;
  /** Errors in the value's form, or none. Each error is the end of a sentence that begins with "the value". */
  readonly faults: readonly string[];
  /** True if the text contains no token, code, secret or ID of Gatehouse. */
  readonly isNothing?: true;
}

const ID_KINDS = Object.keys(IDS) as readonly IdKind[];
const PREFIX = `gate_(?:${Object.values(FORMS)
  .map(({ prefix }) => prefix.slice(5, -1))
  .join('|')})_`;
const BEFORE_AT = '[^\\s\\p{C}"`<>()\\[\\]{},;|=&?:\\\\*/%#“”‘’«»…!\'@]';
const LABEL = '[\\p{L}\\p{M}\\p{N}-]+';

/** Matches a truncated token or ID. A capital letter or a digit distinguishes it from a name in program code. */
const CUT = `${PREFIX}(?=[a-z_-]{0,99}[A-Z0-9])[\\w-]{8,}`;

/** Each named capture group matches one kind of value. Group `email` does not match `user:password@host` in a URL. */
const FOUND = new RegExp(
  [
    `(?<!${BEFORE_AT})(?!(?<==)3D)(?<!://[^\\s/?#"'<>,;(){}[\\]|\\\\]{0,200})` +
      `(?<email>(?:${BEFORE_AT}|(?<=\\w)'(?=\\w)){1,64}@${LABEL}(?:\\.${LABEL})+)`,
    `(?<![A-Za-z0-9])(?:${ID_KINDS.map((kind) => `(?<${kind}>${IDS[kind].prefix}${IDS[kind].rest})`).join('|')}|` +
      '(?<client_id>gate_ci_[\\w-]{22}))(?![A-Za-z0-9])',
    `(?<![A-Za-z0-9])(?<cut>${CUT})`,
    `(?<![\\w.-])(?!${PREFIX}|_[a-z]{3}_)(?:(?<opaque>[\\w-]{43})|(?<authorization>[\\w-]{22}))(?![\\w@-]|\\.\\w)`,
  ].join('|'),
  'gu',
);

/** Matches a text that is only an email address, even with characters that end an address in a longer text. */
const WHOLE_EMAIL = /^(?![?*_'“‘]|[\w.-]+=)[^\s"`<>()[\],;:/\\%]+@[\p{L}\p{M}\p{N}.-]+$/u;
const MAX_ALONE = 400;

/**
 * Returns each token, secret or ID of Gatehouse in a text once. If there is none, returns what is wrong with the text.
 * An ordinary word of a longer text is not reported as an incomplete ID.
 */
export function valuesIn(given: string): readonly [FoundValue, ...FoundValue[]] {
  const alone = given.trim();
  const whole = alone.length > MAX_ALONE ? undefined : wholeValue(alone);
  // Report an invisible character after a value: the service refuses the value together with this character.
  if (whole || /^gate_[\w-]+\p{C}+$/u.test(alone)) return [whole ?? wrongValue(given.replace(/\r?\n$/, ''))];
  const text = decoded(given);
  const secrets = secretsIn(text);
  const found = secrets.map(({ kind, value, start }) => [start, valid(kind, value)] as const);
  let rest = '';
  // Replace each secret by spaces, so that no part of a secret is taken for an ID.
  for (const { start, end } of secrets) rest += text.slice(rest.length, start).padEnd(end - rest.length);
  rest += text.slice(rest.length);
  for (const match of rest.matchAll(FOUND)) {
    const one = foundBy(match);
    if (one) found.push([match.index, one]);
  }
  const sorted = found.sort(([a], [b]) => a - b).map(([, one]) => [one.text, one] as const);
  const [first, ...others] = new Map(sorted).values();
  const isWrong = first ? first.faults.length > 0 && others.length === 0 && alone.startsWith(first.text) : true;
  if (isWrong && !/\s/.test(alone)) return [wrongValue(alone)];
  const faults = ['contains no value or ID of Gatehouse'];
  return first ? [first, ...others] : [{ text, kind: undefined, faults, isNothing: true }];
}

const valid = (kind: Kind, text: string): FoundValue => ({ text, kind, faults: [] });

function foundBy({ 0: text, groups = {}, input, index }: RegExpExecArray): FoundValue | undefined {
  const kind = Object.keys(groups).find((name) => groups[name] !== undefined) as Kind | 'cut';
  if (kind === 'cut') return wrongValue(text);
  // A name in program code may begin like an ID, but has neither a capital letter nor a digit.
  if (kind in IDS && !/[A-Z\d]/.test(text)) return undefined;
  // 22 or 43 random characters nearly always mix upper and lower case, unlike a long word.
  if ((kind === 'authorization' || kind === 'opaque') && !(/[a-z]/.test(text) && /.[A-Z]/.test(text))) return undefined;
  if (kind !== 'email') return valid(kind, text);
  const isEmphasized = /^[_~]/.test(text) && input[index + text.length] === text[0];
  return emailIn(isEmphasized ? text.slice(1) : text);
}

/** A text that contains a secret is not an address. */
const emailIn = (text: string): FoundValue | undefined =>
  normalizeEmail(text) === undefined || holdsSecret(text) ? undefined : valid('email', text);

function wholeValue(text: string): FoundValue | undefined {
  const { kind, faults } = shapeOf(text);
  if (kind && faults.length === 0) return valid(kind, text);
  if (WHOLE_EMAIL.test(text)) return emailIn(text);
  const [match] = text.matchAll(FOUND);
  const [id] = Object.entries(match?.groups ?? {}).find(([, found]) => found === text) ?? [];
  return id === undefined || id === 'cut' ? undefined : valid(id as Kind, text);
}

function wrongValue(text: string): FoundValue {
  const id = ID_KINDS.find((kind) => IDS[kind].prefix !== '' && text.startsWith(IDS[kind].prefix));
  if (id) return { text, kind: id, faults: ['is not a complete ID'] };
  const { kind, faults } = shapeOf(text);
  return { text, kind, faults };
}

const isSecret = (kind: Kind): kind is SecretKind => (SECRET_KINDS as readonly Kind[]).includes(kind);

/**
 * Returns the printable form: a whole ID, only the two ends of a secret, and an empty text for a malformed value.
 *
 * @param isUnknown true if the value may be a secret of another service, so that it is shortened, too
 */
export function publicForm({ text, kind, faults }: FoundValue, isUnknown: boolean): string {
  if (kind === undefined || faults.length > 0) return '';
  if (kind === 'email' && isUnknown) return `…${text.slice(text.lastIndexOf('@'))}`;
  if (kind === 'opaque' || (kind === 'authorization' && isUnknown)) return `…${text.slice(-4)}`;
  return isSecret(kind) ? `${FORMS[kind].prefix}…${text.slice(-4)}` : text;
}
