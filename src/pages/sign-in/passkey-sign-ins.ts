/** Makes the options with which a browser uses or creates a passkey, and checks the browser's answer. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Account } from '../../accounts/account.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import { type Answer, AnswerRefused, answerFrom, createCeremonies } from '../../accounts/passkeys/ceremonies.ts';
import { detailsOf, type Passkey } from '../../accounts/passkeys/passkey.ts';
import type { Passkeys } from '../../accounts/passkeys/passkeys.ts';
import { SIGN_IN_WINDOW_SECONDS } from '../../accounts/sign-in-limits.ts';
import type { CreateAttemptLimit } from '../../base/attempt-limits.ts';
import { type Clock, epochSeconds } from '../../base/clock.ts';
import { type Message, message } from '../../base/message.ts';
import { networkOf } from '../../base/network-address.ts';
import { randomId } from '../../base/random-id.ts';
import { createSeals } from '../../base/seals.ts';
import { type OwnText, ownText } from '../../texts/texts.ts';
import { ownCookie } from '../own-cookie.ts';
import { originInSession, requestOrigin, visitorIn } from '../page.ts';
import type { MayAdd } from './sign-in-policy.ts';

type Purpose = 'sign in' | `confirm ${string}` | `add ${string}`;

/** Lifetime of a challenge: twice as long as a browser waits for the user to answer. */
const CHALLENGE_SECONDS = 600;
/** How far the clock of the node that made the challenge may be ahead of the clock of this node. */
const TOLERANCE_SECONDS = 60;
const TIME_BYTES = 6;
const CHALLENGE = /^(([A-Za-z0-9_-]{8})[A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/;

/** The form field in which the page's script sends the browser's answer. */
export const PASSKEY_FIELD = 'passkey';

/** The URLs from which the page's script fetches the options. */
export const PASSKEY_OPTIONS = {
  signIn: '/passkey-options/sign-in',
  confirm: '/passkey-options/confirm',
  add: '/passkey-options/add',
} as const;

export type PasskeySignIns = ReturnType<typeof createPasskeySignIns>;

/** Why a passkey is refused or not added. Each reason has a text with the key `passkey.…`. */
type Why = 'over' | 'gone' | 'copied' | 'wrong' | 'another' | 'suspended' | 'full' | 'known';

/** What the logs say about a refused passkey. */
interface About {
  /** The reason in the log of the service. */
  readonly reason?: string;
  /** The account in whose activity log the refusal is recorded. */
  readonly account?: Account;
  readonly passkey?: Passkey;
}

const LIFETIME_SECONDS = 180 * 86_400;

export function createPasskeySignIns(parts: {
  readonly settings: {
    readonly issuer: string;
    readonly brand: { readonly name: OwnText };
    readonly limits: { readonly signInFailuresPerAddress: number };
    readonly secrets: { readonly cookieKeys: readonly [string, ...string[]] };
  };
  readonly clock: Clock;
  readonly log: Logger;
  readonly passkeys: Passkeys;
  readonly activity: Pick<Activity, 'recordRefused'>;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly mail: AccountMail | undefined;
  browserOf(ctx: Context): string;
  readonly mayAdd: MayAdd;
}) {
  const { settings, clock, log, passkeys, activity, mail, browserOf } = parts;
  const { issuer, limits, secrets } = settings;
  const ceremonies = createCeremonies(issuer, ownText(settings.brand.name));
  const challenges = createChallenges({ clock, browserOf, keys: secrets.cookieKeys });
  /** Limits refused passkeys for each network. */
  const failures = parts.createAttemptLimit({
    name: 'passkey_failures',
    attempts: limits.signInFailuresPerAddress,
    windowSeconds: SIGN_IN_WINDOW_SECONDS,
    onStoreUnavailable: 'count here',
  });
  const cookie = ownCookie(issuer, 'passkey');
  const remember = (ctx: Context): void => cookie.set(ctx, 'known', LIFETIME_SECONDS);

  async function refuse(ctx: Context, why: Why, about: About = {}): Promise<Message> {
    const { account, passkey } = about;
    const over = await failures.count(networkOf(ctx.ip));
    const { requestId } = ctx.state;
    const reason = about.reason ?? why;
    log.info({ requestId, reason, passkeyId: passkey?.id }, 'a passkey was refused');
    ctx.status = over ? 429 : 401;
    if (over) {
      ctx.set('Retry-After', String(over.seconds));
      return message('passkey.too-many', { minutes: Math.ceil(over.seconds / 60) });
    }
    if (account) {
      const details = { reason: why, ...(passkey && detailsOf(passkey)) };
      const entry = { action: 'passkey_refused', actor: 'person', details } as const;
      await activity.recordRefused({ ...entry, accountId: account.id, origin: requestOrigin(ctx) });
    }
    return message(`passkey.${why}`);
  }

  /** Returns the answer if its challenge was made for this browser and this purpose. */
  function ownAnswer(ctx: Context, purpose: Purpose, text: string): Answer | undefined {
    const answer = answerFrom(text);
    return challenges.isOurs(ctx, purpose, answer.challenge) ? answer : undefined;
  }

  /** Refuses an invalid answer, and throws all other errors again. */
  async function refusingWrong<Result>(ctx: Context, work: () => Promise<Result>): Promise<Result | Message> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof AnswerRefused)) throw error;
      return refuse(ctx, 'wrong', { reason: error.message });
    }
  }

  const usedChallenge = ({ challenge: text }: Answer) => ({ text, seconds: CHALLENGE_SECONDS });

  return {
    has: ({ id }: Account) => passkeys.has(id),

    /** Returns the options for `PublicKeyCredential` as JSON. */
    optionsToSignIn: (ctx: Context) => ceremonies.requestOptions(challenges.make(ctx, 'sign in')),

    async optionsToConfirm(ctx: Context, { id }: Account) {
      const challenge = challenges.make(ctx, `confirm ${id}`);
      return ceremonies.requestOptions(challenge, await passkeys.of(id));
    },

    async optionsToAdd(ctx: Context, account: Account) {
      const challenge = challenges.make(ctx, `add ${account.id}`);
      const handle = await passkeys.handleOf(account.id);
      const known = await passkeys.of(account.id);
      return ceremonies.creationOptions(account, { challenge, handle, known });
    },

    /**
     * Returns the account and the passkey, or a message for the user. For a message, sets the status 401, or 429 after
     * too many refusals. A correct answer is accepted whatever the limits say (attempt-limits.ts).
     *
     * @param confirms the account that must re-authenticate; a passkey of another account is refused
     */
    check(ctx: Context, text: string, confirms?: Account): Promise<{ account: Account; passkey: Passkey } | Message> {
      return refusingWrong(ctx, async () => {
        const purpose = confirms ? (`confirm ${confirms.id}` as const) : 'sign in';
        const answer = ownAnswer(ctx, purpose, text);
        if (!answer) return refuse(ctx, 'over');
        const passkey = await passkeys.findKey(answer.credentialId);
        if (!passkey) return refuse(ctx, 'gone');
        const seen = await ceremonies.checkUsed(answer, passkey);
        if (confirms && confirms.id !== passkey.accountId) {
          return refuse(ctx, 'another', { account: confirms });
        }
        const challenge = usedChallenge(answer);
        const account = await passkeys.use(passkey, {
          ...seen,
          challenge,
          origin: requestOrigin(ctx),
        });
        if (account === 'copied') {
          const about = { origin: requestOrigin(ctx), about: passkey.name };
          mail?.notify(passkey.accountId, 'passkey_copied', about);
        }
        if (typeof account === 'string') return refuse(ctx, account);
        if (account.isSuspended) return refuse(ctx, 'suspended', { account, passkey });
        remember(ctx);
        return { account, passkey };
      });
    },

    /** Stores the passkey in the browser's answer, and mails its user. Like `check`, returns a message for a refusal. */
    add(ctx: Context, { id: accountId }: Account, text: string, name: string): Promise<Passkey | Message> {
      return refusingWrong(ctx, async () => {
        const answer = ownAnswer(ctx, `add ${accountId}`, text);
        if (!answer) return refuse(ctx, 'over');
        const made = await ceremonies.checkMade(answer);
        const challenge = usedChallenge(answer);
        const origin = originInSession(ctx);
        const requireMayAdd = parts.mayAdd(visitorIn(ctx).session);
        const added = await passkeys.add({ ...made, accountId, name, challenge, origin, requireMayAdd });
        if (typeof added === 'string') return refuse(ctx, added);
        remember(ctx);
        mail?.notify(accountId, 'passkey_added', { origin: requestOrigin(ctx), about: name });
        return added;
      });
    },

    /** True if the browser says in a cookie that a passkey was created or used in it, which proves nothing. */
    isKnownIn: (ctx: Context): boolean => cookie.get(ctx) !== undefined,
  };
}

/**
 * Challenges are not stored before they are answered. A challenge has a time, 24 random characters, and a MAC, which
 * also covers the purpose and the browser.
 */
function createChallenges(parts: {
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
