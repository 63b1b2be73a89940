/** Values that are shown once: a new secret, stored between its form and the page that shows it. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { randomId } from '../base/random-id.ts';
import type { TokenStore } from '../storage/token-store.ts';

export const LIFETIME_SECONDS = 300;
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export type ShownOnce = ReturnType<typeof createShownOnce>;

/**
 * The store holds the value encrypted under a key derived from its name, and of the name only a
 * hash: an attacker who reads the store, or a dump of it, reads no secret.
 */
export function createShownOnce({
  store,
  clock,
  seconds = LIFETIME_SECONDS,
}: {
  store: TokenStore;
  clock: Clock;
  seconds?: number;
}) {
  return {
    /**
     * @param name one that attackers can neither guess nor compute; random by default.
     * @returns the name under which `take` finds the value, for five minutes by default.
     */
    async keep(
      accountId: string,
      value: unknown,
      name: string = randomId('', 43),
    ): Promise<string> {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, keyOf(name, accountId), nonce);
      const text = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
      const sealed = Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
      await store.write('shown_once', name, sealed, epochSeconds(clock) + seconds);
      return name;
    },

    /** Returns the value once, to the account that it was stored for; undefined ever after. */
    async take<Value>(accountId: string, name: string): Promise<Value | undefined> {
      // Decrypt it before consuming it: another user's request must not use it up.
      const key = keyOf(name, accountId);
      const found = await store.read<string>('shown_once', name);
      if (!found || open<Value>(found.data, key) === undefined) return undefined;
      const record = await store.take<string>('shown_once', name);
      return record && open<Value>(record.data, key);
    },

    /** Like `take`, but leaves the value stored: for one that is not secret, or not shown yet. */
    async look<Value>(accountId: string, name: string): Promise<Value | undefined> {
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
    // Stored for another account: the key of this one does not decrypt it.
    return undefined;
  }
}

function keyOf(name: string, accountId: string): Buffer {
  return Buffer.from(hkdfSync('sha256', name, accountId, 'gatehouse shown once', 32));
}
