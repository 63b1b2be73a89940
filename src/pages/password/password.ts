/** `/password`: where a one-time link leads, to set a password, or to sign in where there are none. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Recovered } from '../../accounts/passwords/changes.ts';
import type { LinkPurpose } from '../../accounts/passwords/links.ts';
import { RecoveryMustWait } from '../../accounts/passwords/recovery-waits.ts';
import { TooManyPasswords } from '../../accounts/passwords/work.ts';
import type { WayHeld } from '../../accounts/ways-in.ts';
import { Refusal } from '../../base/refusal.ts';
import { formOf } from '../../provider/form.ts';
import { ownCookie } from '../own-cookie.ts';
import { originOf, seeOther } from '../page.ts';
import { get, type PageParts, post, type Route } from '../routes.ts';
import { sayBusy } from '../sign-in/password-check.ts';
import { comesFrom } from '../sign-in/upstream-ways.ts';
import { fromOf } from '../words/browser.ts';
import type { EndingChoice } from './recovery.ts';
import { drawRecoveryWait, recoveryWaitPages } from './recovery-wait.ts';

declare module '../view-data.ts' {
  interface ViewData {
    readonly password: {
      /** Set for a new account, chosen anew for a forgotten one. */
      readonly heading: string;
      readonly email: string;
      readonly action: string;
      /** What the link carried: in the form, so that it is in the address no longer. */
      readonly token: string;
      /** False where nobody has one: then the link signs in. */
      readonly setsPassword: boolean;
      /** Where people of that address sign in without one. */
      readonly elsewhere: string | undefined;
      /** What else opens the account or acts for the person. */
      readonly choices: readonly EndingChoice[];
      /** A password alone will not let them in as long as they have a passkey or a provider. */
      readonly isMoreDemanded: boolean;
      readonly problem: string | undefined;
    };
    readonly 'password-link-over': {
      readonly title: string;
      readonly signInUrl: string;
      /** Where another link is sent from; absent where no mail is sent. */
      readonly forgotPasswordUrl: string | undefined;
    };
  }
}

const SET = 'Your password is set. Sign in with it now.';
const SIGNED_IN =
  'You are signed in, and every other browser is signed out. The link is used up: add a way to sign in now.';

/** In the mail that tells of it. */
const LINKS: Readonly<Record<LinkPurpose, string>> = {
  invitation: 'the link that whoever runs the service made for you',
  forgotten: 'the link that was mailed to you, for a forgotten password',
  confirmed: 'it was confirmed where you sign in elsewhere that it is you',
};

/**
 * The token comes in the query, which is never logged. From there it goes to a cookie at once: the
 * address stays in the history of the browser, in its bar and in what people copy. The form has it, too.
 */
export function passwordPage(parts: PageParts): Route[] {
  const cookie = ownCookie(parts.issuer, 'link');
  const { host, devices, keptForms, waiting, forgotPasswordUrl, upstream, passwords } = parts;
  const { passwordLinks: links, passwordChanges: changes, endingChoices } = parts;

  async function draw(ctx: Context, token: string, problem?: string): Promise<void> {
    const link = await links.find(token);
    if (!link) return sayOver(ctx);
    if (await parts.recovery.waits.mustWait(link))
      return drawRecoveryWait(ctx, parts, { link, token });
    const { account, purpose } = link;
    const way = passwords ? upstream.wayOf(account.email) : undefined;
    await host.render(ctx, 'password', {
      heading: passwords ? headingOf(account, purpose) : 'Sign in with this link',
      email: account.email,
      action: ctx.path,
      token,
      setsPassword: passwords,
      elsewhere: way && comesFrom(way),
      choices: await endingChoices.of(ctx, account),
      isMoreDemanded: await parts.demands.asksForMore(account.id),
      problem,
    });
  }

  /** Used, expired and never made look the same. */
  async function sayOver(ctx: Context): Promise<void> {
    ctx.status = 410;
    const title = 'This link is over';
    const signInUrl = await waiting.path(ctx);
    await host.render(ctx, 'password-link-over', { title, signInUrl, forgotPasswordUrl });
  }

  /** To the sign-in, of an authorization that waits for it where there is one. */
  async function leadOn(ctx: Context, { email }: Account): Promise<void> {
    const form = await keptForms.keep(ctx, email, undefined);
    const query = form ? `?form=${form}` : '';
    await host.notices.tell(ctx, `${await waiting.path(ctx)}${query}`, SET);
  }

  /** Looking does not use the link up, for mail programs look as well. */
  async function show(ctx: Context): Promise<void> {
    const { token } = ctx.query;
    if (token === undefined) return draw(ctx, cookie.get(ctx) ?? '');
    if (typeof token !== 'string' || !(await links.find(token))) return sayOver(ctx);
    cookie.set(ctx, token);
    seeOther(ctx, ctx.path);
  }

  async function submit(ctx: Context): Promise<void> {
    const form = formOf(ctx);
    const token = form.get('token') ?? '';
    let removed: readonly WayHeld[] = [];
    const ending = endingChoices.ending(ctx, (ways) => {
      removed = ways;
    });
    const origin = originOf(ctx);
    try {
      const password = form.get('new_password') ?? '';
      const recovered = passwords
        ? await changes.changeByLink(token, password, origin, ending)
        : await changes.useLink(token, origin, ending);
      if (!recovered) return await sayOver(ctx);
      tellOfRemoved(ctx, recovered.account, removed);
      await letIn(ctx, recovered);
    } catch (error) {
      if (error instanceof RecoveryMustWait) {
        ctx.status = 403;
        return await draw(ctx, token);
      }
      if (error instanceof TooManyPasswords) return await draw(ctx, token, sayBusy(ctx, error));
      if (!(error instanceof Refusal)) throw error;
      ctx.status = 422;
      await draw(ctx, token, error.remedy);
    }
  }

  async function letIn(ctx: Context, { account, purpose }: Recovered): Promise<void> {
    cookie.clear(ctx);
    // However many strangers guess, whoever got the link can now sign in here.
    devices.remember(ctx, account);
    await tell(ctx, account, purpose);
    if (passwords) return leadOn(ctx, account);
    await parts.sessions.signIn(ctx, account, 'link');
    await parts.recordSignIn(ctx, account, { link: purpose });
    await host.notices.tell(ctx, '/profile/security', SIGNED_IN);
  }

  /** Each in a mail of its own, as when it is removed on the security page. */
  function tellOfRemoved(ctx: Context, { id }: Account, ways: readonly WayHeld[]): void {
    for (const { kind, label } of ways) {
      const what = kind === 'passkey' ? 'passkey_removed' : 'way_removed';
      parts.mail?.tell(id, what, { ...fromOf(ctx), about: label });
    }
  }

  /** With what was left as it is, for an attacker may have added it. */
  async function tell(ctx: Context, account: Account, purpose: LinkPurpose): Promise<void> {
    if (!parts.mail) return;
    const left = (await endingChoices.of(ctx, account)).map(({ what, since }) =>
      since ? `- ${what}, there since ${since.text}` : `- ${what}`,
    );
    const more = [
      passwords ? 'A new password was set.' : 'Whoever had the link is signed in.',
      ...(left.length > 0 ? ['Left as it was; if you do not know it:', ...left] : []),
    ];
    parts.mail.tell(account.id, 'recovered', { ...fromOf(ctx), about: LINKS[purpose], more });
  }

  return [
    get('/password', show),
    post('/password', ...parts.steps.form, submit),
    ...recoveryWaitPages(parts, draw),
  ];
}

const headingOf = ({ hasPassword }: Account, purpose: LinkPurpose): string =>
  hasPassword && purpose !== 'invitation' ? 'Choose a new password' : 'Set your password';
