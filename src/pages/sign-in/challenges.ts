/** What a passkey is asked to sign: of now, for this browser, for one purpose; kept nowhere until it is answered. */
import type { Context } from 'koa';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import { randomId } from '../../base/random-id.ts';
import { createSeals } from '../../base/seals.ts';

/** For the account named, where it is not a sign-in of whoever it may be. */
export type Purpose = 'sign in' | `confirm ${string}` | `add ${string}`;

/** From the question to the answer, in seconds: twice as long as a browser waits for the person. */
export const CHALLENGE_SECONDS = 600;
/** Seconds by which the clock of the node that asked may be ahead. */
const TOLERANCE = 60;
const TIME_BYTES = 6;
const CHALLENGE = /^(([A-Za-z0-9_-]{8})[A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/;

/** The time and 24 random characters, and a MAC over them, the purpose and the browser. */
export function createChallenges(parts: {
  /** The first signs, all are accepted. */
  readonly keys: readonly [string, ...string[]];
  readonly clock: Clock;
  browserOf(ctx: Context): string;
}) {
  const { keys, clock, browserOf } = parts;
  const seals = createSeals('passkey', keys);
  const covered = (ctx: Context, purpose: Purpose, said: string): string =>
    `${browserOf(ctx)}.${said}.${purpose}`;

  return {
    /** In base64url. */
    make(ctx: Context, purpose: Purpose): string {
      const time = Buffer.alloc(TIME_BYTES);
      time.writeUIntBE(epochSeconds(clock), 0, TIME_BYTES);
      const said = randomId(time.toString('base64url'), 24);
      return said + seals.macOf(covered(ctx, purpose, said));
    },

    /** Whether this browser was asked it, for this, and not too long ago. */
    isOurs(ctx: Context, purpose: Purpose, challenge: string): boolean {
      const [, said = '', time = '', mac = ''] = CHALLENGE.exec(challenge) ?? [];
      if (!seals.isMacOf(mac, covered(ctx, purpose, said))) return false;
      const age = epochSeconds(clock) - Buffer.from(time, 'base64url').readUIntBE(0, TIME_BYTES);
      return age >= -TOLERANCE && age < CHALLENGE_SECONDS;
    },
  };
}
