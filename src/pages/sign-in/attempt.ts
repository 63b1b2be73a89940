/** Checks a sign-in with a passkey or a password, or redirects the user to a provider. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { LinkedMethod, SignInMethods } from '../../accounts/sign-in-methods.ts';
import { isMessage, type Message, message, type Text } from '../../base/message.ts';
import type { Method } from '../../provider/browser-sessions.ts';
import { formOf } from '../../provider/form.ts';
import { byPassword, FREE, type Standing, type Standings } from '../../provider/standings.ts';
import { requestOrigin } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import type { UsedMethod } from './browser-sign-ins.ts';
import type { EnabledMethods } from './enabled-methods.ts';
import { PASSKEY_FIELD } from './passkey-sign-ins.ts';
import type { PasswordCheck } from './password-check.ts';
import { PROVIDER_FIELD, type SignInPurpose } from './upstream-providers.ts';

type Attempt =
  | {
      readonly email: string;
      readonly problem: Text;
      /** True if the typed email address or password is wrong. */
      readonly isTypedWrong?: boolean;
    }
  | {
      readonly account: Account;
      readonly came: UsedMethod;
      readonly method: Method;
      readonly standing: Standing;
    };

export interface AttemptParts {
  readonly kit: Pick<PageKit, 'signedInOf'>;
  readonly enabled: Pick<EnabledMethods, 'upstream' | 'passkeys'>;
  readonly checkPassword: PasswordCheck;
  readonly standings: Standings;
  readonly signInMethods: Pick<SignInMethods, 'of'>;
  readonly activity: Pick<Activity, 'recordRefused'>;
}

export function createSignInAttempts(parts: AttemptParts) {
  const { kit, enabled, checkPassword, standings, signInMethods, activity } = parts;
  const { upstream, passkeys } = enabled;

  /** @returns the account or a problem; undefined after a redirect to a provider */
  async function attempt(ctx: Context, purpose: SignInPurpose): Promise<Attempt | undefined> {
    const form = formOf(ctx);
    const answer = form.get(PASSKEY_FIELD);
    if (passkeys && answer !== null) {
      const used = await passkeys.check(ctx, answer);
      if (isMessage(used)) return { email: '', problem: used };
      return { account: used.account, came: used, method: 'passkey', standing: FREE };
    }
    const email = form.get('email') ?? '';
    const password = form.get('password') ?? '';
    const providerId = form.get(PROVIDER_FIELD);
    if (providerId !== null) {
      // Drop the client's `login_hint` if the provider must ask who signs in, because it may name the previous user.
      const loginHint = upstream.asksWho(ctx, providerId) ? undefined : purpose.loginHint;
      await upstream.begin(ctx, providerId, { ...purpose, loginHint });
      return undefined;
    }
    const account = await checkPassword(ctx, { email, password });
    if (isMessage(account)) return { email, problem: account, isTypedWrong: true };
    const standing = await standings.of(byPassword(account.id));
    if (standing.is === 'must use') return { email, problem: await refusePasswordAlone(ctx, account) };
    return { account, came: 'password', method: 'password', standing };
  }

  async function refusePasswordAlone(ctx: Context, { id }: Account): Promise<Message> {
    ctx.status = 403;
    await activity.recordRefused({
      action: 'sign_in_refused',
      actor: 'person',
      accountId: id,
      origin: requestOrigin(ctx),
      details: { reason: 'password_alone' },
    });
    return message('sign-in.password-too-weak', { methods: anyStrongOf(await signInMethods.of(id)) });
  }

  /** Returns a message if a signed-in user must sign in again, because `sign_in.require` requires a stronger method. */
  async function whySignInAgain(ctx: Context): Promise<{ readonly problem?: Text }> {
    const visitor = await kit.signedInOf(ctx);
    if (visitor?.standing.is !== 'must use') return {};
    const { account, session } = visitor;
    const isPassword = session.proofs.every(({ by }) => by === 'password');
    const key = isPassword ? 'sign-in.password-too-weak' : 'sign-in.last-too-weak';
    return { problem: message(key, { methods: anyStrongOf(await signInMethods.of(account.id)) }) };
  }

  return { attempt, whySignInAgain };
}

/** Names the strong methods of a user who needs one. Returns an empty text for a user for whom a password is enough. */
export type NeededMethods = (account: Pick<Account, 'id'>, isOfMailedLink?: boolean) => Promise<Text>;

export const createNeededMethods =
  (parts: {
    readonly standings: Pick<Standings, 'wouldBe'>;
    readonly signInMethods: Pick<SignInMethods, 'of'>;
  }): NeededMethods =>
  async ({ id }, isOfMailedLink = false) => {
    const standing = await parts.standings.wouldBe(byPassword(id));
    // Setting a password by a mailed link ends the grace period.
    const isNeeded = standing.is === 'must use' || (isOfMailedLink && standing.is === 'warned');
    return isNeeded && standing.hasStrongMethod ? anyStrongOf(await parts.signInMethods.of(id)) : '';
  };

const nameOfMethod = ({ kind, label }: Pick<LinkedMethod, 'kind' | 'label'>): Text =>
  kind === 'passkey' ? message('sign-in.the-passkey', { name: label }) : label;

/** Returns a text such as `A or B`, which is empty if none of the methods is strong. */
export function anyStrongOf(methods: readonly LinkedMethod[]): Text {
  const [one = '', ...others] = methods.filter(({ isStrong }) => isStrong).map(nameOfMethod);
  return others.reduce((first, second) => message('sign-in.or-method', { first, second }), one);
}
