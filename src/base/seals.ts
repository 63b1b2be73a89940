/** Signs values that a browser stores for us and sends back, so that only we can have written them. */
import { createHmac, timingSafeEqual } from 'node:crypto';

export interface Seals {
  /** Returns the MAC of a text: 43 characters of `[A-Za-z0-9_-]`. */
  macOf(said: string): string;
  /** Returns the MACs under all keys, for marks of which a browser stores only the beginning. */
  macsOf(said: string): readonly string[];
  isMacOf(mac: string, said: string): boolean;
  /** Returns the value with a MAC. It is signed, not encrypted. */
  seal(value: unknown): string;
  /** Returns undefined if the MAC is wrong. */
  open<Value>(sealed: string): Value | undefined;
}

/**
 * @param purpose a value sealed for one purpose does not open for another.
 * @param keys the first key signs; values signed with any of the keys are accepted.
 */
export function createSeals(purpose: string, keys: readonly [string, ...string[]]): Seals {
  const digest = (key: string, said: string): Buffer => createHmac('sha256', key).update(`${purpose}:${said}`).digest();

  const seals: Seals = {
    macOf(said) {
      const [key] = keys;
      return digest(key, said).toString('base64url');
    },

    macsOf: (said) => keys.map((key) => digest(key, said).toString('base64url')),

    isMacOf(mac, said) {
      const presented = Buffer.from(mac, 'base64url');
      if (presented.length !== 32) return false;
      return keys.some((key) => timingSafeEqual(digest(key, said), presented));
    },

    seal(value) {
      const said = Buffer.from(JSON.stringify(value)).toString('base64url');
      return `${said}.${seals.macOf(said)}`;
    },

    open<Value>(sealed: string) {
      const [said = '', mac = ''] = sealed.split('.');
      if (!seals.isMacOf(mac, said)) return undefined;
      return JSON.parse(Buffer.from(said, 'base64url').toString()) as Value;
    },
  };
  return seals;
}
