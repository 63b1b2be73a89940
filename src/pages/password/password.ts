/** `/password`: the page of a one-time link, which sets a password or, in a service without passwords, signs in. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { PasswordChanges } from '../../accounts/password-links/password-changes.ts';
import type { LinkPurpose, PasswordLinks } from '../../accounts/password-links/password-links.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import type { LinkedMethod } from '../../accounts/sign-in-methods.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { byPassword, type Standings } from '../../provider/standings.ts';
import type { FormDrafts } from '../forms/form-drafts.ts';
import { ownCookie } from '../own-cookie.ts';
import { requestOrigin, seeOther } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { get, post, type Route, SECURITY } from '../routes.ts';
import type { EndingChoice, EndingChoices } from '../security/what-has-access.ts';
import type { NeededMethods } from '../sign-in/attempt.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import type { EnabledMethods } from '../sign-in/enabled-methods.ts';
import { passwordProblem, sayBusy } from '../sign-in/password-check.ts';
import { STRONG_SIGN_IN } from '../sign-in/sign-in-policy.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly password: {
      readonly heading: Message;
      readonly email: string;
      readonly action: string;
      /** The token of the link. A hidden form field contains the token, because users see and copy URLs. */
      readonly token: string;
      /** False if the service has no passwords, so that the link signs the user in. */
      readonly setsPassword: boolean;
      /** The connections, API keys and sign-in methods that the user can end with this form. */
      readonly choices: readonly EndingChoice[];
      /** Sign-in methods that the user cannot remove with this form. */
      readonly kept: readonly EndingChoice[];
      /** The names of the strong methods of a user who needs one; empty for a user for whom a password is enough. */
      readonly neededMethods: Text;
      /** True for an invitation to an account without a password, connections, API keys or sign-in methods. */
      readonly isFirst: boolean;
      readonly problem: Message | undefined;
    };
    readonly 'password-link-over': {
      readonly signInUrl: string;
      /** Undefined if the service sends no mail. */
      readonly forgotPasswordUrl: string | undefined;
    };
  }
}

/**
 * Moves the token of the link from the query into a cookie and the form at once, because users see and copy a URL, and
 * the browser's history contains it. The query is never logged.
 */
export function passwordPage(
  parts: UseLinkParts & {
    readonly issuer: string;
    readonly passwordLinks: Pick<PasswordLinks, 'find'>;
    readonly enabled: Omit<EnabledMethods, 'passkeys'>;
  },
): Route[] {
  const { kit, issuer, passwordLinks: links, enabled, endingChoices, neededMethods, waiting } = parts;
  const { passwords, forgotPasswordUrl } = enabled;
  const cookie = ownCookie(issuer, 'link');
  const useLink = createUseLink(parts);

  /** The page is the same for used, expired and unknown links. */
  async function showExpired(ctx: Context): Promise<void> {
    ctx.status = 410;
    const signInUrl = await waiting.path(ctx);
    await kit.render(ctx, 'password-link-over', { signInUrl, forgotPasswordUrl });
  }

  async function draw(ctx: Context, token: string, problem?: Message): Promise<void> {
    const link = await links.find(token);
    // A link for a forgotten password is useless if the service has no passwords any more.
    if (!link || (link.purpose === 'forgotten' && !passwords)) return showExpired(ctx);
    const { account, purpose } = link;
    const choices = await endingChoices.of(account, ctx.method === 'POST' ? formOf(ctx) : undefined, purpose);
    await kit.render(ctx, 'password', {
      heading: passwords ? headingOf(account, purpose) : message('password.sign-in-title'),
      email: account.email,
      action: ctx.path,
      token,
      setsPassword: passwords,
      choices: choices.filter(({ isKept }) => !isKept),
      kept: choices.filter(({ isKept }) => isKept),
      neededMethods: await neededMethods(account, purpose === 'forgotten'),
      isFirst: purpose === 'invitation' && !account.hasPassword && choices.length === 0,
      problem,
    });
  }

  /** Opening the page does not use up the link, because mail programs open links, too. */
  async function show(ctx: Context): Promise<void> {
    const { token } = ctx.query;
    if (token === undefined) return draw(ctx, cookie.get(ctx) ?? '');
    if (typeof token !== 'string' || !(await links.find(token))) return showExpired(ctx);
    cookie.set(ctx, token);
    seeOther(ctx, ctx.path);
  }

  async function submit(ctx: Context): Promise<void> {
    const token = formOf(ctx).get('token') ?? '';
    try {
      if (!(await useLink(ctx, token))) return await showExpired(ctx);
      cookie.clear(ctx);
    } catch (error) {
      if (error instanceof TooManyPasswords) return await draw(ctx, token, sayBusy(ctx, error));
      if (!(error instanceof Refusal)) throw error;
      ctx.status = 422;
      await draw(ctx, token, passwordProblem(error));
    }
  }

  return [get('/password', show), post('/password', ...kit.form, submit)];
}

const headingOf = ({ hasPassword }: Account, purpose: LinkPurpose): Message =>
  hasPassword && purpose !== 'invitation' ? message('password.choose-title') : message('password.set-title');

interface UseLinkParts {
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
 * Returns a function that uses the link, informs the user by mail, and signs the user in or redirects to sign-in. The
 * function returns false for a used or expired link, and throws the errors of `PasswordChanges`.
 */
function createUseLink(parts: UseLinkParts): (ctx: Context, token: string) => Promise<boolean> {
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
      return kit.notices.redirect(ctx, SECURITY, message('password.signed-in'));
    }
    const { is } = await standings.wouldBe(byPassword(account.id));
    // Only an invitation signs the user in. A link for a forgotten password proves only access to the mailbox.
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
