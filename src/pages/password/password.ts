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
      /** The token of the link, which the form contains, so that the URL does not. */
      readonly token: string;
      /** False if the service has no passwords, so that the link signs the user in. */
      readonly setsPassword: boolean;
      /** What the user can end with the same form, such as passkeys, clients and API keys. */
      readonly choices: readonly EndingChoice[];
      /** Sign-in methods that this link cannot remove. */
      readonly kept: readonly EndingChoice[];
      /** The names of the strong methods of a user who needs one; empty for a user for whom a password is enough. */
      readonly neededMethods: Text;
      /** True if the account has no access yet, so that there is nothing to end. */
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

  /** Does not use the link, because mail programs open links, too. */
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
