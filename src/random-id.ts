/** Random identifiers and the hash under which secret values are kept. */
import { hash, randomBytes } from 'node:crypto';

/**
 * An identifier of `[A-Za-z0-9_-]`: the prefix, then `characters` random ones of 6 bits each.
 *
 * @param characters 22 for 132 bits, 43 for 258 bits (a secret).
 */
export function randomId(prefix: string, characters: number): string {
  const bytes = randomBytes(Math.ceil((characters * 6) / 8));
  return prefix + bytes.toString('base64url').slice(0, characters);
}

/** The ids of accounts and clients. Others exist nowhere, and some PostgreSQL answers with an error. */
export const ACCOUNT_ID = /^acc_[A-Za-z0-9_-]{16}$/;
export const CLIENT_ID = /^gate_ci_[A-Za-z0-9_-]{22}$/;

/** SHA-256 in base64url, 43 characters: enough for values of at least 256 random bits. */
export function sha256(value: string): string {
  return hash('sha256', value, 'base64url');
}
