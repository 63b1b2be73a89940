/** Signs values that a browser stores and sends back, so that a forged value is detected. */
import { createHmac, timingSafeEqual } from 'node:crypto';

export type Seals = ReturnType<typeof createSeals>;

/**
 * @param purpose a value that was signed for another purpose is refused
 * @param keys the first key signs, and all keys verify
 */
export function createSeals(purpose: string, keys: readonly [string, ...string[]]) {
  const digest = (key: string, said: string): Buffer => createHmac('sha256', key).update(`${purpose}:${said}`).digest();

  /** Returns 43 characters of `[A-Za-z0-9_-]`. */
  const macOf = (said: string): string => digest(keys[0], said).toString('base64url');

  function isMacOf(mac: string, said: string): boolean {
    const presented = Buffer.from(mac, 'base64url');
    if (presented.length !== 32) return false;
    return keys.some((key) => timingSafeEqual(digest(key, said), presented));
  }

  return {
    macOf,
    isMacOf,

    /** Returns one MAC for each key. A form may contain only the beginning of a MAC, made with any of the keys. */
    macsOf: (said: string): readonly string[] => keys.map((key) => digest(key, said).toString('base64url')),

    /** Signs the value without encrypting it. */
    seal(value: unknown): string {
      const said = Buffer.from(JSON.stringify(value)).toString('base64url');
      return `${said}.${macOf(said)}`;
    },

    /** Returns undefined if the MAC is wrong. */
    open<Value>(sealed: string): Value | undefined {
      const [said = '', mac = ''] = sealed.split('.');
      if (!isMacOf(mac, said)) return undefined;
      return JSON.parse(Buffer.from(said, 'base64url').toString()) as Value;
    },
  };
}
