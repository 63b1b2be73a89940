/** Signs values that a browser stores for us and sends back, so that we can detect forged ones. */
import { createHmac, timingSafeEqual } from 'node:crypto';

export type Seals = ReturnType<typeof createSeals>;

/**
 * @param purpose a value that was signed for one purpose is not accepted for another
 * @param keys the first key signs; values signed with any of the keys are accepted
 */
export function createSeals(purpose: string, keys: readonly [string, ...string[]]) {
  const digest = (key: string, said: string): Buffer => createHmac('sha256', key).update(`${purpose}:${said}`).digest();

  /** Returns the MAC of a text: 43 characters of `[A-Za-z0-9_-]`. */
  const macOf = (said: string): string => digest(keys[0], said).toString('base64url');

  function isMacOf(mac: string, said: string): boolean {
    const presented = Buffer.from(mac, 'base64url');
    if (presented.length !== 32) return false;
    return keys.some((key) => timingSafeEqual(digest(key, said), presented));
  }

  return {
    macOf,
    isMacOf,

    /** Returns the MACs with all keys, for fingerprints of which a form contains only the beginning. */
    macsOf: (said: string): readonly string[] => keys.map((key) => digest(key, said).toString('base64url')),

    /** Returns the value with a MAC. It is signed, not encrypted. */
    seal(value: unknown): string {
      const said = Buffer.from(JSON.stringify(value)).toString('base64url');
      return `${said}.${macOf(said)}`;
    },

    /** Returns the value; undefined if the MAC is wrong. */
    open<Value>(sealed: string): Value | undefined {
      const [said = '', mac = ''] = sealed.split('.');
      if (!isMacOf(mac, said)) return undefined;
      return JSON.parse(Buffer.from(said, 'base64url').toString()) as Value;
    },
  };
}
