/** Passkey challenges. Each is bound to a time, browser and purpose; none is stored before it is answered. */
import type { Context } from 'koa';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { createSeals } from '../../base/seals.ts';

/** The purposes `confirm` and `add` contain the account id; at a sign-in the account is not known yet. */
export type Purpose = 'sign in' | `confirm ${string}` | `add ${string}`;

/** How long a challenge is valid: twice as long as a browser waits for the user. */
export const CHALLENGE_SECONDS = 600;
/** How far the clock of the node that made the challenge may be ahead of this node's clock. */
const TOLERANCE_SECONDS = 60;
const TIME_BYTES = 6;
const CHALLENGE = /^(([A-Za-z0-9_-]{8})[A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/;

/** A challenge consists of a time, 24 random characters, and a MAC over both, the purpose and the browser. */
export function createChallenges(parts: {
  /** The first key signs; challenges made with any of the keys are accepted. */
  readonly keys: readonly [string, ...string[]];
  readonly clock: Clock;
  browserOf(ctx: Context): string;
}) {
  const { keys, clock, browserOf } = parts;
  const seals = createSeals('passkey', keys);
  const covered = (ctx: Context, purpose: Purpose, said: string): string => `${browserOf(ctx)}.${said}.${purpose}`;

  return {
    /** Returns a challenge in base64url. */
    make(ctx: Context, purpose: Purpose): string {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeUIntBE(epochSeconds(clock), 0, TIME_BYTES);
      const said = randomId(time.toString('base64url'), 24);
      return said + seals.macOf(covered(ctx, purpose, said));
    },

    /** True if the challenge was made for this browser and purpose and has not expired. */
    isOurs(ctx: Context, purpose: Purpose, challenge: string): boolean {
      const [, said = '', time = '', mac = ''] = CHALLENGE.exec(challenge) ?? [];
      if (!seals.isMacOf(mac, covered(ctx, purpose, said))) return false;
      const age = epochSeconds(clock) - Buffer.from(time, 'base64url').readUIntBE(0, TIME_BYTES);
      return age >= -TOLERANCE_SECONDS && age < CHALLENGE_SECONDS;
    },
  };
}
