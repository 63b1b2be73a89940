/** What a browser carries for us and brings back: nobody else can have written it. */
import { createHmac, timingSafeEqual } from 'node:crypto';

export interface Seals {
  /** Of any text: 43 characters of `[A-Za-z0-9_-]`. */
  macOf(said: string): string;
  isMacOf(mac: string, said: string): boolean;
  /** The value, readable for whoever holds it, under a MAC. */
  seal(value: unknown): string;
  /** Undefined for what is no seal of ours. */
  open<Value>(sealed: string): Value | undefined;
}

/**
 * @param purpose what was sealed for one is nothing for another.
 * @param keys the first signs, all are accepted.
 */
export function createSeals(purpose: string, keys: readonly [string, ...string[]]): Seals {
  const digest = (key: string, said: string): Buffer =>
    createHmac('sha256', key).update(`${purpose}:${said}`).digest();

  const seals: Seals = {
    macOf(said) {
      const [key] = keys;
      return digest(key, said).toString('base64url');
    },

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
