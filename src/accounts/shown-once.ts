/** What is shown once: a new secret, kept between the form and the page that shows it. */
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
 * The store holds it encrypted under a key made of the name, and the name as a hash only: who
 * reads the store, or a dump of it, reads no secret.
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
     * @param name one that nobody can guess or compute; without it a random one.
     * @returns the name under which `take` finds it, for five minutes where nothing else was said.
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

    /** Answers once, to the person it was kept for; undefined ever after. */
    async take<Value>(accountId: string, name: string): Promise<Value | undefined> {
      // Opened before it is consumed: another person's request must not use it up.
      const key = keyOf(name, accountId);
      const found = await store.read<string>('shown_once', name);
      if (!found || open<Value>(found.data, key) === undefined) return undefined;
      const record = await store.take<string>('shown_once', name);
      return record && open<Value>(record.data, key);
    },

    /** As `take`, and leaves it where it is: for what is no secret, or not shown yet. */
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
    // Kept for somebody else: their name opens nothing here.
    return undefined;
  }
}

function keyOf(name: string, accountId: string): Buffer {
  return Buffer.from(hkdfSync('sha256', name, accountId, 'gatehouse shown once', 32));
}
