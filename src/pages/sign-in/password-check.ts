/** Checks a password that was typed on a page, and counts and records failures. */
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Account } from '../../accounts/account.ts';
import type { AccountRegistry } from '../../accounts/account-registry.ts';
import type { Activity, NewActivity } from '../../accounts/activity/activity.ts';
import type { SignIn } from '../../accounts/password-sign-in.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import type { SignInLimits, TooManySignIns } from '../../accounts/sign-in-limits.ts';
import { type Message, message } from '../../base/message.ts';
import { AccountBusy, type Refusal } from '../../base/refusal.ts';
import { requestOrigin } from '../page.ts';
import type { KnownDevices } from './known-devices.ts';

interface Credentials {
  readonly email: string;
  readonly password: string;
  /** The signed-in account, if any. If it is set, the password of any other account is refused. */
  readonly accountId?: string;
}

/**
 * Returns the account, or a message for the user, which is the same for a wrong email address and a wrong password. For
 * a message, sets the status 401, or 429 or 503 with `Retry-After` if the password was not checked.
 */
export type PasswordCheck = (ctx: Context, credentials: Credentials) => Promise<Account | Message>;

/** Counts password checks. `busy` means that a password was not checked because of too many requests at once. */
export interface PasswordOutcomes {
  passwordChecked(outcome: 'succeeded' | 'failed' | 'throttled' | 'busy'): void;
}

/** Sets the status 429 or 503 with `Retry-After`. @returns the message for the user */
export function sayBusy(ctx: Context, { isOwn, seconds }: TooManyPasswords): Message {
  ctx.status = isOwn ? 429 : 503;
  ctx.set('Retry-After', String(seconds));
  return message(isOwn ? 'sign-in.too-many-here' : 'sign-in.busy');
}

/** Returns why a new password is refused. @throws any other refusal */
export function passwordProblem(error: Refusal): Message {
  const [problem] = error.problems;
  if (error.code !== 'password_refused' || !problem) throw error;
  return message(`password.${problem.code}`);
}

export function createPasswordCheck(parts: {
  readonly signIn: SignIn;
  readonly accounts: AccountRegistry;
  readonly activity: Activity;
  readonly limits: SignInLimits;
  readonly devices: KnownDevices;
  readonly log: Logger;
  readonly outcomes: PasswordOutcomes;
  /** Undefined if the service sends no mail. */
  readonly forgotPasswordUrl: string | undefined;
}): PasswordCheck {
  const { signIn, accounts, activity, limits, devices, log, outcomes } = parts;
  const sendsMail = String(parts.forgotPasswordUrl !== undefined);

  /** Looks up the account only if a device cookie was sent: otherwise, response times could reveal accounts. */
  async function deviceOf(ctx: Context, email: string): Promise<string | undefined> {
    const account = devices.claims(ctx) ? await accounts.findByEmail(email) : undefined;
    return account && devices.find(ctx, account);
  }

  function refuse(ctx: Context, email: string, over: TooManySignIns): Message {
    outcomes.passwordChecked('throttled');
    // Log an exceeded limit only once per window, because an attacker could fill the log.
    if (over.isFirst) inBackground(logLimit(ctx, email, over));
    ctx.status = 429;
    ctx.set('Retry-After', String(over.seconds));
    const minutes = Math.ceil(over.seconds / 60);
    return message('sign-in.too-many', { minutes, sendsMail });
  }

  async function logLimit(ctx: Context, email: string, over: TooManySignIns): Promise<void> {
    const { limit, seconds } = over;
    const refusal = { action: 'sign_in_refused', details: { reason: 'too_many' } } as const;
    const accountId = limit === 'address' ? undefined : await recordAbout(ctx, email, refusal);
    const { requestId } = ctx.state;
    const about = { requestId, limit, seconds, address: ctx.ip, accountId };
    log.warn(about, 'too many failed sign-ins: more are refused for a while');
  }

  /** @returns the id of the account, if there is one with this email address */
  async function recordAbout(
    ctx: Context,
    email: string,
    entry: Pick<NewActivity, 'action' | 'details'>,
  ): Promise<string | undefined> {
    const origin = requestOrigin(ctx);
    const accountId = (await accounts.findByEmail(email))?.id;
    if (accountId !== undefined) await activity.recordRefused({ ...entry, actor: 'person', accountId, origin });
    return accountId;
  }

  /** Does not await `work`, because the response time must not reveal whether the account exists. */
  function inBackground(work: Promise<unknown>): void {
    work.catch((err: unknown) => log.warn({ err }, 'the result of a sign-in could not be recorded'));
  }

  async function check(
    ctx: Context,
    { email, password, accountId }: Credentials,
    device: string | undefined,
  ): Promise<Account | Message> {
    const address = ctx.ip;
    const attempt = await limits.begin({ email, address, device });
    if ('limit' in attempt) return refuse(ctx, email, attempt);
    const rank = device === undefined ? 'stranger' : 'known';
    const outcome = await signIn({ rank, email, address, password }).catch((error: unknown) => {
      // Do not await this, because the user would wait twice for a store that does not answer.
      inBackground(attempt.cancel());
      throw error;
    });
    if (outcome !== 'refused' && (accountId ?? outcome.id) === outcome.id) {
      outcomes.passwordChecked('succeeded');
      ctx.state.accountId = outcome.id;
      await attempt.succeed();
      return outcome;
    }
    outcomes.passwordChecked('failed');
    inBackground(recordAbout(ctx, email, { action: 'sign_in_failed' }));
    ctx.status = 401;
    return message('sign-in.wrong');
  }

  return async (ctx, credentials) => {
    const { email } = credentials;
    const device = await deviceOf(ctx, email);
    try {
      return await limits.inTurn({ email, address: ctx.ip, device }, () => check(ctx, credentials, device));
    } catch (error) {
      const isOwn = error instanceof AccountBusy;
      const busy = isOwn ? new TooManyPasswords({ isOwn }) : error;
      if (!(busy instanceof TooManyPasswords)) throw error;
      // Count `busy` only if many accounts cause the load, because only then would more processors help.
      outcomes.passwordChecked(isOwn ? 'throttled' : 'busy');
      return sayBusy(ctx, busy);
    }
  };
}

/** Refuses every password. A service without passwords uses this function instead of a password check. */
export const refusePasswords: PasswordCheck = async (ctx) => {
  ctx.status = 403;
  return message('sign-in.no-passwords');
};

/** True if a limit or too much load has prevented the check of the password. */
export const isPaused = ({ status }: Context): boolean => status === 429 || status === 503;
