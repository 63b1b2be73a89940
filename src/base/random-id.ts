/** What is given out: random ids and values, how they look, and the hash they are kept under. */
import { hash, randomFillSync } from 'node:crypto';

/** Taken from the system for many ids at once: to ask it takes longer than to make one. */
const random = Buffer.alloc(4_096);
let taken = random.length;

/**
 * An identifier of `[A-Za-z0-9_-]`: the prefix, then `characters` random ones of 6 bits each.
 *
 * @param characters 22 for 132 bits, 43 for 258 bits (a secret).
 */
export function randomId(prefix: string, characters: number): string {
  const bytes = Math.ceil((characters * 6) / 8);
  if (taken + bytes > random.length) {
    randomFillSync(random);
    taken = 0;
  }
  const text = random.toString('base64url', taken, taken + bytes);
  // Secrets are among them: what was given out is not kept here.
  random.fill(0, taken, taken + bytes);
  taken += bytes;
  return prefix + text.slice(0, characters);
}

/** The id of an account: clients refer to it as well. */
export const ACCOUNT_ID = /^acc_[A-Za-z0-9_-]{16}$/;

export type ValueKind = keyof typeof FORMS;

/**
 * A prefix that secret scanners know, and how many of `[A-Za-z0-9_-]` follow. A refresh token counts
 * its refreshes at its end.
 */
export const FORMS = {
  access_token: { prefix: 'gate_at_', least: 89, most: 89 },
  machine_token: { prefix: 'gate_mt_', least: 43, most: 43 },
  refresh_token: { prefix: 'gate_rt_', least: 66, most: 73 },
  code: { prefix: 'gate_ac_', least: 65, most: 65 },
  client_secret: { prefix: 'gate_cs_', least: 43, most: 43 },
  api_key: { prefix: 'gate_key_', least: 43, most: 43 },
  client_id: { prefix: 'gate_ci_', least: 22, most: 22 },
} as const;

/** @returns whether a value is of that form. Others exist nowhere, and need not be looked for. */
export function formTest(kind: ValueKind): (value: string) => boolean {
  const { prefix, least, most } = FORMS[kind];
  const pattern = new RegExp(`^${prefix}[A-Za-z0-9_-]{${least},${most}}$`);
  return (value) => pattern.test(value);
}

/** A random one, of 6 bits for each character. */
export const newValue = (
  kind: 'client_secret' | 'api_key' | 'client_id' | 'machine_token',
): string => randomId(FORMS[kind].prefix, FORMS[kind].least);

/** Other ids exist nowhere, and some (with a NUL byte) PostgreSQL would answer with an error. */
export const isClientId = formTest('client_id');

/** SHA-256 in base64url, 43 characters: enough for values of at least 256 random bits. */
export function sha256(value: string): string {
  return hash('sha256', value, 'base64url');
}
