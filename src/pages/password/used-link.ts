/** Uses a one-time link: sets the password or signs in, ends what was ticked, and sends mails. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { PasswordChanges, Recovered } from '../../accounts/passwords/changes.ts';
import type { LinkPurpose } from '../../accounts/passwords/links.ts';
import type { WayHeld } from '../../accounts/ways-in.ts';
import { formOf } from '../../provider/form.ts';
import type { KeptForms } from '../forms/kept-forms.ts';
import { originOf } from '../page.ts';
import type { PageKit } from '../page-kit.ts';
import { SECURITY } from '../routes.ts';
import type { BrowserSignIns } from '../sign-in/browser-sign-ins.ts';
import type { WaitingSignIn } from '../sign-in/waiting-sign-in.ts';
import { fromOf } from '../words/browser.ts';
import type { EndingChoices } from './recovery.ts';

const SET = 'Your password is set. Sign in with it now.';
const SIGNED_IN =
  'You are signed in, and every other browser is signed out. The link is used up: add a way to sign in now.';

/** How the mail to the user describes the link. */
const LINKS: Readonly<Record<LinkPurpose, string>> = {
  invitation: 'the link that whoever runs the service made for you',
  forgotten: 'the link that was mailed to you, for a forgotten password',
  confirmed: 'it was confirmed where you sign in elsewhere that it is you',
};

interface UsedLink extends Recovered {
  /** The sign-in methods that were removed with it. */
  readonly removed: readonly WayHeld[];
}

/** @returns undefined for a link that is used or expired. @throws what `PasswordChanges` throws */
export type UseLink = (ctx: Context, token: string) => Promise<UsedLink | undefined>;

export const createUseLink =
  (parts: {
    readonly passwords: boolean;
    readonly passwordChanges: Pick<PasswordChanges, 'changeByLink' | 'useLink'>;
    readonly endingChoices: Pick<EndingChoices, 'ending'>;
  }): UseLink =>
  async (ctx, token) => {
    const { passwords, passwordChanges, endingChoices } = parts;
    let removed: readonly WayHeld[] = [];
    const ending = endingChoices.ending(ctx, (ways) => {
      removed = ways;
    });
    const origin = originOf(ctx);
    const password = formOf(ctx).get('new_password') ?? '';
    const recovered = passwords
      ? await passwordChanges.changeByLink(token, password, origin, ending)
      : await passwordChanges.useLink(token, origin, ending);
    return recovered && { ...recovered, removed };
  };

/** Informs the user of the used link by mail, and redirects. */
export type AfterLink = (ctx: Context, used: UsedLink) => Promise<void>;

export function createAfterLink(parts: {
  readonly kit: PageKit;
  readonly passwords: boolean;
  readonly keptForms: Pick<KeptForms, 'keep'>;
  readonly waiting: Pick<WaitingSignIn, 'path'>;
  readonly endingChoices: Pick<EndingChoices, 'of'>;
  readonly signIns: Pick<BrowserSignIns, 'signIn' | 'rememberBrowser'>;
  readonly mail: AccountMail | undefined;
}): AfterLink {
  const { kit, passwords, keptForms, waiting, endingChoices, signIns, mail } = parts;

  /** Redirects to the sign-in: to that of the waiting authorization, if there is one. */
  async function redirectToSignIn(ctx: Context, { email }: Account): Promise<void> {
    const form = await keptForms.keep(ctx, email, undefined);
    const query = form ? `?form=${form}` : '';
    await kit.notices.tell(ctx, `${await waiting.path(ctx)}${query}`, SET);
  }

  /** Sends one mail for each, like a removal on the security page. */
  function mailRemovals(ctx: Context, { id }: Account, ways: readonly WayHeld[]): void {
    for (const { kind, label } of ways) {
      const what = kind === 'passkey' ? 'passkey_removed' : 'way_removed';
      mail?.tell(id, what, { ...fromOf(ctx), about: label });
    }
  }

  /** Lists what was not ended, because an attacker may have added it. */
  async function tell(ctx: Context, account: Account, purpose: LinkPurpose): Promise<void> {
    if (!mail) return;
    const left = (await endingChoices.of(ctx, account)).map(({ what, since }) =>
      since ? `- ${what}, there since ${since.text}` : `- ${what}`,
    );
    const more = [
      passwords ? 'A new password was set.' : 'Whoever had the link is signed in.',
      ...(left.length > 0 ? ['Left as it was; if you do not know it:', ...left] : []),
    ];
    mail.tell(account.id, 'recovered', { ...fromOf(ctx), about: LINKS[purpose], more });
  }

  return async (ctx, { account, purpose, removed }) => {
    mailRemovals(ctx, account, removed);
    // Known from now on: strangers who guess passwords cannot lock this browser out.
    signIns.rememberBrowser(ctx, account);
    await tell(ctx, account, purpose);
    if (passwords) return redirectToSignIn(ctx, account);
    await signIns.signIn(ctx, account, 'link', { link: purpose });
    await kit.notices.tell(ctx, SECURITY, SIGNED_IN);
  };
}
