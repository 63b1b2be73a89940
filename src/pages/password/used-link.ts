/** Uses a one-time link, which sets the password or signs the user in, and ends what the user has chosen. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { PasswordChanges } from '../../accounts/password-links/password-changes.ts';
import type { LinkPurpose } from '../../accounts/password-links/password-links.ts';
import type { LinkedMethod } from '../../accounts/sign-in-methods.ts';
import { message } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import { byPassword, type Standings } from '../../provider/standings.ts';
import type { FormDrafts } from '../forms/form-drafts.ts';
import { requestOrigin, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { SECURITY } from '../routes.ts';
import type { EndingChoices } from '../security/what-has-access.ts';
import type { NeededMethods } from '../sign-in/attempt.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import type { EnabledMethods } from '../sign-in/enabled-methods.ts';
import { STRONG_SIGN_IN } from '../sign-in/sign-in-policy.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';

const SIGNED_IN = message('password.signed-in');

export interface UseLinkParts {
  readonly kit: PageKit;
  readonly enabled: Pick<EnabledMethods, 'passwords'>;
  readonly passwordChanges: Pick<PasswordChanges, 'useLink'>;
  readonly formDrafts: Pick<FormDrafts, 'save'>;
  readonly waiting: Pick<WaitingSignIn, 'path' | 'restart'>;
  readonly endingChoices: Pick<EndingChoices, 'of' | 'ending'>;
  readonly neededMethods: NeededMethods;
  readonly standings: Pick<Standings, 'wouldBe'>;
  readonly signIns: Pick<BrowserSignIns, 'signIn' | 'rememberBrowser'>;
  readonly mail: AccountMail | undefined;
}

/**
 * Returns a function that uses the link, informs the user by mail and redirects the user, who is signed in after an
 * invitation. The function returns false for a used or expired link, and throws the errors of `PasswordChanges`.
 */
export function createUseLink(parts: UseLinkParts): (ctx: Context, token: string) => Promise<boolean> {
  const { kit, passwordChanges, formDrafts, waiting, endingChoices, neededMethods, standings, signIns, mail } = parts;
  const { passwords } = parts.enabled;

  /** Redirects to the sign-in page of the waiting authorization request, or to `/login` if there is none. */
  async function redirectToSignIn(ctx: Context, account: Account): Promise<void> {
    const { email } = account;
    const methods = await neededMethods(account);
    const said = methods ? message('password.was-set-not-enough', { methods }) : message('password.was-set');
    const form = await formDrafts.save(ctx, 'email', email, undefined);
    const query = form ? `?form=${form}` : '';
    await kit.notices.redirect(ctx, `${await waiting.path(ctx)}${query}`, said);
  }

  function mailRemovals(ctx: Context, { id }: Account, methods: readonly LinkedMethod[]): void {
    for (const { kind, label } of methods) {
      const what = kind === 'passkey' ? 'passkey_removed' : 'method_removed';
      mail?.notify(id, what, { origin: requestOrigin(ctx), about: label });
    }
  }

  /** Mails the user a list of what still has access, because an attacker may have added some of it. */
  async function notify(ctx: Context, account: Account, purpose: LinkPurpose): Promise<void> {
    if (!mail) return;
    const left = (await endingChoices.of(account)).map(({ what, since }) =>
      since ? message('mail.kept-since', { what, since }) : what,
    );
    const more = [
      message(passwords ? 'mail.password-set' : 'mail.link-signed-in'),
      ...(left.length > 0 ? [message('mail.kept'), { items: left }] : []),
    ];
    const about = message(`mail.link-${purpose}`);
    mail.notify(account.id, 'recovered', { origin: requestOrigin(ctx), about, more });
  }

  async function redirect(ctx: Context, account: Account, purpose: LinkPurpose): Promise<void> {
    if (!passwords) {
      await signIns.signIn(ctx, account, 'link', { link: purpose });
      return kit.notices.redirect(ctx, SECURITY, SIGNED_IN);
    }
    const { is } = await standings.wouldBe(byPassword(account.id));
    // Only an invitation signs in: any other link proves only that its user can read the mail of the account.
    if (purpose !== 'invitation' || is === 'must use') return redirectToSignIn(ctx, account);
    await signIns.signIn(ctx, account, 'password', 'password', { isMailed: true });
    // A waiting authorization request is resumed after the user has added a strong method.
    seeOther(ctx, is === 'must add' ? STRONG_SIGN_IN : ((await waiting.restart(ctx)) ?? '/profile'));
  }

  return async (ctx, token) => {
    let removed: readonly LinkedMethod[] = [];
    const origin = requestOrigin(ctx);
    const ending = endingChoices.ending(ctx, origin, (methods) => {
      removed = methods;
    });
    const how = passwords ? { origin, password: formOf(ctx).get('new_password') ?? '' } : { origin };
    const recovered = await passwordChanges.useLink(token, how, ending);
    if (!recovered) return false;
    const { account, purpose } = recovered;
    mailRemovals(ctx, account, removed);
    // Make this browser a known one, so that failed attempts of attackers do not use up its limit.
    signIns.rememberBrowser(ctx, account);
    await notify(ctx, account, purpose);
    await redirect(ctx, account, purpose);
    return true;
  };
}
