/** Random ids and secrets, their formats, and the hash under which secrets are stored. */
import { hash, randomFillSync } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** Random bytes for many ids, because one system call per id would take longer than the rest of the work. */
const random = Buffer.alloc(4_096);
let taken = random.length;

/**
 * Returns the prefix, followed by that many random characters of `[A-Za-z0-9_-]`, with 6 bits each.
 *
 * @param characters 22 for 132 bits, 43 for 258 bits (a secret)
 */
export function randomId(prefix: string, characters: number): string {
  const bytes = Math.ceil((characters * 6) / 8);
  if (taken + bytes > random.length) {
    randomFillSync(random);
    taken = 0;
  }
  const text = random.toString('base64url', taken, taken + bytes);
  // Some ids are secrets, so erase their bytes from memory.
  random.fill(0, taken, taken + bytes);
  taken += bytes;
  return prefix + text.slice(0, characters);
}

export const ACCOUNT_ID = /^acc_[A-Za-z0-9_-]{16}$/;

export type ValueKind = keyof typeof FORMS;

/**
 * For each kind of value: its name; its prefix, which secret scanners know; and the length of the rest without the
 * checksum, in `[A-Za-z0-9_-]` characters. A refresh token ends with its rotation number, so its length varies. Every
 * kind except `client_id` ends with a checksum.
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

/** The kinds of values that give access: all except the client ID, which is public. */
export const SECRET_KINDS = (Object.keys(FORMS) as ValueKind[]).filter(
  (kind): kind is SecretKind => kind !== 'client_id',
);

/** Matches a long part of a secret: a shorter part leaves an attacker more than 70 unknown bits. */
const SECRET = new RegExp(`(?:${SECRET_KINDS.map((kind) => FORMS[kind].prefix).join('|')})[A-Za-z0-9_-]{30}`);

/** True if part of the text has the form of one of our secrets, even if the end of the secret is missing. */
export const holdsSecret = (text: string): boolean => SECRET.test(text);

export const CHECKSUM_LENGTH = 6;

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Returns the CRC-32 in base64url. The 32 bits are right-aligned in 36 bits, so the first letter is A to D. */
function checksumOf(value: string): string {
  const bits = crc32(value);
  let text = '';
  // Do not use a Buffer, which is slower: each request checks several values.
  for (let shift = 30; shift >= 0; shift -= 6) text += BASE64URL[(bits >>> shift) & 63];
  return text;
}

/** Appends the checksum. */
export const withChecksum = (value: string): string => value + checksumOf(value);

/** Returns the value without its checksum; an empty text if the checksum is missing or wrong. */
export function withoutChecksum(value: string): string {
  const rest = value.slice(0, -CHECKSUM_LENGTH);
  return value.endsWith(checksumOf(rest)) ? rest : '';
}

/** Returns a function that checks the format. A value that fails was never issued, and needs no look-up. */
export function formTest(kind: ValueKind): (value: string) => boolean {
  const { prefix, minLength, maxLength } = FORMS[kind];
  const pattern = new RegExp(`^${prefix}[A-Za-z0-9_-]{${minLength},${maxLength}}$`);
  if (kind === 'client_id') return (value) => pattern.test(value);
  // Compare the prefix first, because most values are of another kind.
  return (value) => value.startsWith(prefix) && pattern.test(withoutChecksum(value));
}

/** Returns a new random value, with 6 bits for each character before the checksum. */
export function newValue(kind: 'client_secret' | 'api_key' | 'client_id' | 'machine_token'): string {
  const value = randomId(FORMS[kind].prefix, FORMS[kind].minLength);
  return kind === 'client_id' ? value : withChecksum(value);
}

/** Check an id before a query with it: PostgreSQL throws for some invalid ids (with a NUL byte). */
export const isClientId = formTest('client_id');

/**
 * Returns a function for HMAC-SHA-256 with this key (RFC 2104), in base64url. It prepares the key's pads once, so that
 * a short text costs two hashes: half of what Node's `createHmac` costs.
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
    hash('sha256', message, 'buffer').copy(outer, BLOCK_BYTES);
    return hash('sha256', outer, 'base64url');
  };
}

const BLOCK_BYTES = 64;
/** In UTF-16 units, each of which needs at most three bytes. */
const SHORT_TEXT = 200;

/** SHA-256 in base64url, 43 characters. Needs no salt for values of at least 256 random bits. */
export function sha256(value: string): string {
  return hash('sha256', value, 'base64url');
}
