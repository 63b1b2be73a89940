/** `/password`: the page of a one-time link, which sets a password or, in a service without passwords, signs in. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { LinkPurpose, PasswordLinks } from '../../accounts/password-links/password-links.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import { type Message, message, type Text } from '../../base/message.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { ownCookie } from '../own-cookie.ts';
import { seeOther } from '../page.ts';
import { get, post, type Route } from '../routes.ts';
import type { EndingChoice } from '../security/what-has-access.ts';
import type { EnabledMethods } from '../sign-in/enabled-methods.ts';
import { passwordProblem, sayBusy } from '../sign-in/password-check.ts';
import { createUseLink, type UseLinkParts } from './used-link.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly password: {
      readonly heading: Message;
      readonly email: string;
      readonly action: string;
      /** The token of the link. The form contains it, so that the URL need not. */
      readonly token: string;
      /** False if the service does not use passwords; the link then signs the user in. */
      readonly setsPassword: boolean;
      /** Sign-in methods, clients and keys that the user can end with the same form. */
      readonly choices: readonly EndingChoice[];
      /** Sign-in methods that cannot be removed with this link. */
      readonly kept: readonly EndingChoice[];
      /** Names the strong methods of a user for whom a password alone is not enough; empty for other users. */
      readonly neededMethods: Text;
      /** True if the link gives the account its first access, so that there is nothing to end. */
      readonly isFirst: boolean;
      readonly problem: Message | undefined;
    };
    readonly 'password-link-over': {
      readonly signInUrl: string;
      /** The page that mails a new link; undefined if the service sends no mail. */
      readonly forgotPasswordUrl: string | undefined;
    };
  }
}

/**
 * The token arrives in the query, which is never logged, and is immediately moved to a cookie and the form, because a
 * URL stays in the browser's history and address bar, and users copy it.
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

  /** Shows the same page for used, expired and unknown links. */
  async function showExpired(ctx: Context): Promise<void> {
    ctx.status = 410;
    const signInUrl = await waiting.path(ctx);
    await kit.render(ctx, 'password-link-over', { signInUrl, forgotPasswordUrl });
  }

  async function draw(ctx: Context, token: string, problem?: Message): Promise<void> {
    const link = await links.find(token);
    // A mailed link was sent only to set a password, so it has no use once the service has no passwords.
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

  /** GET does not use up the link, because mail programs also open links. */
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
