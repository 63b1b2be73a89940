/** What a consent page showed, in its form: nobody else can have written it. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Asked } from '../provider/approvals.ts';

/** The hidden field of the form. */
export const SHOWN_FIELD = 'shown';

export interface ConsentSeals {
  seal(asked: Asked): string;
  /** Undefined for what is no seal of ours. */
  open(sealed: string): Asked | undefined;
}

export function createConsentSeals({
  keys,
}: {
  /** The first signs, all are accepted. */
  keys: readonly string[];
}): ConsentSeals {
  const macOf = (key: string, said: string): Buffer =>
    createHmac('sha256', key).update(`consent:${said}`).digest();

  return {
    seal(asked) {
      const said = Buffer.from(JSON.stringify(asked)).toString('base64url');
      const [key = ''] = keys;
      return `${said}.${macOf(key, said).toString('base64url')}`;
    },

    open(sealed) {
      const [said = '', mac = ''] = sealed.split('.');
      const presented = Buffer.from(mac, 'base64url');
      if (presented.length !== 32) return undefined;
      if (!keys.some((key) => timingSafeEqual(macOf(key, said), presented))) return undefined;
      return JSON.parse(Buffer.from(said, 'base64url').toString()) as Asked;
    },
  };
}
