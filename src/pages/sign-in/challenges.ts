/** Passkey challenges, which are bound to a time, a browser and a purpose, and not stored before they are answered. */
import type { Context } from 'koa';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { createSeals } from '../../base/seals.ts';

/** `confirm` and `add` are followed by the account id, which is not known yet at a sign-in. */
export type Purpose = 'sign in' | `confirm ${string}` | `add ${string}`;

/** How long a challenge is valid. A browser waits half as long for the user. */
export const CHALLENGE_SECONDS = 600;
/** How far the clock of the node that made the challenge may be ahead of the clock of this node. */
const TOLERANCE_SECONDS = 60;
const TIME_BYTES = 6;
const CHALLENGE = /^(([A-Za-z0-9_-]{8})[A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/;

/** A challenge has a time, 24 random characters, and a MAC, which also covers the purpose and the browser. */
export function createChallenges(parts: {
  /** The first key signs, and all keys verify. */
  readonly keys: readonly [string, ...string[]];
  readonly clock: Clock;
  browserOf(ctx: Context): string;
}) {
  const { keys, clock, browserOf } = parts;
  const seals = createSeals('passkey', keys);
  const covered = (ctx: Context, purpose: Purpose, said: string): string => `${browserOf(ctx)}.${said}.${purpose}`;

  return {
    make(ctx: Context, purpose: Purpose): string {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeUIntBE(epochSeconds(clock), 0, TIME_BYTES);
      const said = randomId(time.toString('base64url'), 24);
      return said + seals.macOf(covered(ctx, purpose, said));
    },

    /** True if the challenge was made for this browser and this purpose, and has not expired. */
    isOurs(ctx: Context, purpose: Purpose, challenge: string): boolean {
      const [, said = '', time = '', mac = ''] = CHALLENGE.exec(challenge) ?? [];
      if (!seals.isMacOf(mac, covered(ctx, purpose, said))) return false;
      const age = epochSeconds(clock) - Buffer.from(time, 'base64url').readUIntBE(0, TIME_BYTES);
      return age >= -TOLERANCE_SECONDS && age < CHALLENGE_SECONDS;
    },
  };
}
