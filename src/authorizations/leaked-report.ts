/** Reads values that were found in public, from a scanner's JSON list or any other text. */
import { formTest, SECRET_KINDS, type SecretKind } from '../base/random-id.ts';
import { Refusal } from '../base/refusal.ts';
import { decoded, secretsIn } from '../base/secrets-in-text.ts';
import { cut, withoutSecrets } from '../clients/storable-text.ts';

export interface FoundValue {
  readonly kind: SecretKind;
  readonly token: string;
  /** Where the value was found, as text to show; never fetched if it is a URL. Empty if the report names no place. */
  readonly foundAt: string;
}

const TESTS = SECRET_KINDS.map((kind) => ({ kind, isOne: formTest(kind) }));
const MAX_VALUES = 1_000;
const MAX_PLACE_LENGTH = 200;

/** @throws Refusal `report_invalid` or `too_many_values` for the whole report */
export function readLeakReport(json: string) {
  const entries = parsed(json);
  if (!Array.isArray(entries)) throw new Refusal('report_invalid', ...NO_LIST);
  if (entries.length > MAX_VALUES) throw new Refusal('too_many_values', ...TOO_MANY);
  return valuesIn(entries);
}

/** Returns the values in a text. A value from an entry of a report has the place where it was found. */
export function findValues(text: string): readonly FoundValue[] {
  const list = parsed(text);
  const reported = Array.isArray(list) ? valuesIn(list).found : [];
  const known = new Set(reported.map(({ token }) => token));
  const others = new Map(secretsIn(decoded(text)).map(({ kind, value }) => [value, kind]));
  const unreported = [...others].filter(([value]) => !known.has(value));
  return [...reported, ...unreported.map(([token, kind]) => ({ kind, token, foundAt: '' }))];
}

/** `malformed` has the index of each entry that cannot be used. */
function valuesIn(entries: readonly unknown[]) {
  const found: FoundValue[] = [];
  const malformed = entries.flatMap((entry, index) => {
    const { token, url, source } = (entry ?? {}) as Record<string, unknown>;
    if (typeof token !== 'string') return { index, message: 'token is not a text' };
    const kind = TESTS.find(({ isOne }) => isOne(token))?.kind;
    if (!kind) return { index, message: 'token does not have the form of our values' };
    const places = [source ?? '', url ?? ''].filter((place) => place !== '');
    if (!places.every((place) => typeof place === 'string')) {
      return { index, message: 'url or source is not a text' };
    }
    found.push({ kind, token, foundAt: places.map(shownPlace).join(', ') });
    return [];
  });
  return { found, malformed };
}

/** Removes invisible characters and values of this service, because the place is stored, shown and mailed. */
function shownPlace(place: string): string {
  const visible = place.replace(/[\s\p{Z}]+/gu, ' ').replace(/\p{C}/gu, '');
  return cut(withoutSecrets(visible).trim(), MAX_PLACE_LENGTH);
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

const NO_LIST = [
  'The report is not a JSON list: nothing was done.',
  'Send [{"token": "…", "url": "…", "source": "…"}]; url and source may be absent.',
] as const;
const TOO_MANY = [
  `The report has more than ${MAX_VALUES} values: nothing was done.`,
  'Send the list in several requests.',
] as const;
