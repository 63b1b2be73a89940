/** Stores values that are shown only once, such as a new secret, until the next page shows them. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { TokenStore } from '../storage/token-store.ts';

const LIFETIME_SECONDS = 300;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type OneTimeValues = ReturnType<typeof createOneTimeValues>;

/**
 * Stores only a hash of the name, and the value encrypted with a key that is derived from the name: an attacker who
 * reads the token store, or a dump of it, cannot decrypt the value.
 */
export function createOneTimeValues(parts: { store: TokenStore; clock: Clock; seconds?: number }) {
  const { store, clock, seconds = LIFETIME_SECONDS } = parts;
  return {
    /** @param name must be impossible to guess or compute @returns `name`, which `take` needs to find the value */
    async store(accountId: string, value: unknown, name: string = randomId('', 43)): Promise<string> {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, keyOf(name, accountId), nonce);
      const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
      const sealed = Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
      await store.write('shown_once', name, sealed, epochSeconds(clock) + seconds);
      return name;
    },

    /** Returns the value only to the account for which it was stored, and only at the first call. */
    async take<Value>(accountId: string, name: string): Promise<Value | undefined> {
      // Decrypt the value before consuming it, so that another user's request cannot consume it.
      const key = keyOf(name, accountId);
      const found = await store.read<string>('shown_once', name);
      if (!found || open<Value>(found.data, key) === undefined) return undefined;
      const record = await store.take<string>('shown_once', name);
      return record && open<Value>(record.data, key);
    },

    /** Like `take`, but keeps the value. For values that are not secret, or not yet shown. */
    async peek<Value>(accountId: string, name: string): Promise<Value | undefined> {
      const record = await store.read<string>('shown_once', name);
      return record && open<Value>(record.data, keyOf(name, accountId));
    },
  };
}

function open<Value>(data: string, key: Buffer): Value | undefined {
  const sealed = Buffer.from(data, 'base64url');
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    const text = decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES));
    return JSON.parse(Buffer.concat([text, decipher.final()]).toString()) as Value;
  } catch {
    // The key is derived from the account's id, so this value was stored for another account.
    return undefined;
  }
}

function keyOf(name: string, accountId: string): Buffer {
  return Buffer.from(hkdfSync('sha256', name, accountId, 'gatehouse shown once', 32));
}
