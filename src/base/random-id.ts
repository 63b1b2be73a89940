/** Random ids and secrets, their formats, and the hash under which secrets are stored. */
import { hash, randomFillSync } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Random bytes for many ids, because a system call takes longer than all other work for one id. */
const random = Buffer.alloc(4_096);
let taken = random.length;

/**
 * Returns the prefix and random characters of `[A-Za-z0-9_-]`, with 6 bits each.
 *
 * @param characters how many; for example 22 for 132 bits, or 43 for 258 bits (a secret)
 */
export function randomId(prefix: string, characters: number): string {
  const bytes = Math.ceil((characters * 6) / 8);
  if (taken + bytes > random.length) {
    randomFillSync(random);
    taken = 0;
  }
  const text = random.toString('base64url', taken, taken + bytes);
  // Erase the bytes of the id from memory, because some ids are secrets.
  random.fill(0, taken, taken + bytes);
  taken += bytes;
  return prefix + text.slice(0, characters);
}

/** True for a text that `randomId('', 43)` may have returned. */
export const isLongId = (value: unknown): value is string =>
  typeof value === 'string' && /^[A-Za-z0-9_-]{43}$/.test(value);

export const ACCOUNT_ID = /^acc_[A-Za-z0-9_-]{16}$/;

export type ValueKind = keyof typeof FORMS;

/**
 * The form of each kind of value. Secret scanners know the prefixes. The lengths count the `[A-Za-z0-9_-]` characters
 * between the prefix and the checksum, with which every kind ends except `client_id`. The length of a refresh token
 * varies, because it contains its rotation number.
 */
export const FORMS = {
  access_token: { name: 'access token', prefix: 'gate_at_', minLength: 89, maxLength: 89 },
  machine_token: { name: 'machine access token', prefix: 'gate_mt_', minLength: 43, maxLength: 43 },
  refresh_token: { name: 'refresh token', prefix: 'gate_rt_', minLength: 66, maxLength: 73 },
  code: { name: 'authorization code', prefix: 'gate_ac_', minLength: 65, maxLength: 65 },
  client_secret: { name: 'client secret', prefix: 'gate_cs_', minLength: 43, maxLength: 43 },
  api_key: { name: 'API key', prefix: 'gate_key_', minLength: 43, maxLength: 43 },
  client_id: { name: 'client ID', prefix: 'gate_ci_', minLength: 22, maxLength: 22 },
} as const;

export type SecretKind = Exclude<ValueKind, 'client_id'>;

/** All kinds of values except the client ID, which is public. */
export const SECRET_KINDS = (Object.keys(FORMS) as ValueKind[]).filter(
  (kind): kind is SecretKind => kind !== 'client_id',
);

/** Matches a secret's prefix and the next 30 characters. If a text has fewer, more than 70 bits are still secret. */
const SECRET = new RegExp(`(?:${SECRET_KINDS.map((kind) => FORMS[kind].prefix).join('|')})[A-Za-z0-9_-]{30}`);

/** True if the text contains a secret of Gatehouse, even if the end of the secret is missing. */
export const holdsSecret = (text: string): boolean => SECRET.test(text);

export const CHECKSUM_LENGTH = 6;

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Returns the CRC-32 in base64url, right-aligned in 36 bits, so that the first letter is A to D. */
function checksumOf(value: string): string {
  const bits = crc32(value);
  let text = '';
  // Do not use a Buffer: it would be slower, and each request checks several values.
  for (let shift = 30; shift >= 0; shift -= 6) text += BASE64URL[(bits >>> shift) & 63];
  return text;
}

export const withChecksum = (value: string): string => value + checksumOf(value);

/** Returns an empty text if the checksum is missing or wrong. */
export function withoutChecksum(value: string): string {
  const rest = value.slice(0, -CHECKSUM_LENGTH);
  return value.endsWith(checksumOf(rest)) ? rest : '';
}

/** Returns a function that is false for values which cannot have been issued, so that no store is queried for them. */
export function formTest(kind: ValueKind): (value: string) => boolean {
  const { prefix, minLength, maxLength } = FORMS[kind];
  const pattern = new RegExp(`^${prefix}[A-Za-z0-9_-]{${minLength},${maxLength}}$`);
  if (kind === 'client_id') return (value) => pattern.test(value);
  // Compare the prefix first, because most values are of another kind, and a checksum takes longer.
  return (value) => value.startsWith(prefix) && pattern.test(withoutChecksum(value));
}

/** Each character between the prefix and the checksum has 6 random bits. */
export function newValue(kind: 'client_secret' | 'api_key' | 'client_id' | 'machine_token'): string {
  const value = randomId(FORMS[kind].prefix, FORMS[kind].minLength);
  return kind === 'client_id' ? value : withChecksum(value);
}

/** Check an id before a query, because PostgreSQL throws for an id with a NUL byte. */
export const isClientId = formTest('client_id');

/**
 * Returns a function for HMAC-SHA-256 with the key (RFC 2104), in base64url. Preparing the key's pads only once makes
 * it twice as fast as Node's `createHmac` for short texts.
 */
export function hmacSha256(key: string): (text: string) => string {
  const bytes = Buffer.from(key);
  const block = Buffer.alloc(BLOCK_BYTES);
  (bytes.length > BLOCK_BYTES ? hash('sha256', bytes, 'buffer') : bytes).copy(block);
  const inner = Buffer.concat([block.map((byte) => byte ^ 0x36), Buffer.alloc(3 * SHORT_TEXT)]);
  const outer = Buffer.concat([block.map((byte) => byte ^ 0x5c), Buffer.alloc(32)]);
  return (text) => {
    const message =
      text.length > SHORT_TEXT
        ? Buffer.concat([inner.subarray(0, BLOCK_BYTES), Buffer.from(text)])
        : inner.subarray(0, BLOCK_BYTES + inner.write(text, BLOCK_BYTES));
    // Get the inner hash as a string, because allocating a buffer takes longer than hashing.
    outer.write(hash('sha256', message, 'binary'), BLOCK_BYTES, 'binary');
    return hash('sha256', outer, 'base64url');
  };
}

const BLOCK_BYTES = 64;
/** Maximum length in UTF-16 units, each of which has at most three bytes in UTF-8. */
const SHORT_TEXT = 200;

/** Returns an unsalted hash of 43 characters (base64url). Values of at least 256 random bits need no salt. */
export function sha256(value: string): string {
  return hash('sha256', value, 'base64url');
}
