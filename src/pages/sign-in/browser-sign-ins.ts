/** Signs users in, and records the sign-in. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { Details } from '../../accounts/activity/activity-words.ts';
import type { AccountMail, MailedEvent } from '../../accounts/mail/account-mail.ts';
import { detailsOf, type Passkey } from '../../accounts/passkeys/passkey.ts';
import type { LinkPurpose } from '../../accounts/password-links/password-links.ts';
import type { BrowserSessions, Method, UpstreamSignIn } from '../../provider/browser-sessions.ts';
import { requestOrigin } from '../page.ts';
import type { KnownDevices } from './known-devices.ts';
import type { NamedProvider } from './upstream-providers.ts';

export type ConfirmationMethod = 'password' | { readonly passkey: Passkey };

export type UsedMethod =
  | ConfirmationMethod
  | { readonly link: LinkPurpose }
  | (NamedProvider & { readonly isNewLink: boolean });

export type BrowserSignIns = ReturnType<typeof createBrowserSignIns>;

export function createBrowserSignIns(parts: {
  readonly sessions: Pick<BrowserSessions, 'signIn' | 'confirm' | 'renew'>;
  readonly activity: Pick<Activity, 'record'>;
  readonly devices: Pick<KnownDevices, 'find' | 'remember'>;
  readonly mail: AccountMail | undefined;
}) {
  const { sessions, activity, devices, mail } = parts;

  const recordIn = (ctx: Context, { id: accountId }: Account, details: Details): Promise<void> =>
    activity.record({
      action: 'signed_in',
      actor: 'person',
      accountId,
      details,
      origin: requestOrigin(ctx),
    });

  /** Informs the user by mail that a provider was linked, even if the browser is known. */
  function mailNewLink(ctx: Context, { id }: Account, used: UsedMethod): void {
    if (isNewLink(used)) mail?.notify(id, 'account_linked', { origin: requestOrigin(ctx), about: used.label });
  }

  async function record(ctx: Context, account: Account, used: UsedMethod, { isMailed = false } = {}): Promise<void> {
    const { id: accountId } = account;
    ctx.state.accountId = accountId;
    if (!isMailed && !isNewLink(used) && !devices.find(ctx, account)) {
      mail?.notify(accountId, 'new_device', { origin: requestOrigin(ctx) });
    }
    devices.remember(ctx, account);
    await recordIn(ctx, account, describe(used));
  }

  return {
    /** Records and counts a sign-in, and informs the user by mail if the browser is unknown. */
    record,

    /**
     * Starts a session and records the sign-in.
     *
     * @param how.isMailed true if another mail informs the user about this sign-in
     * @returns false if all sessions of the account were ended meanwhile
     */
    async signIn(
      ctx: Context,
      account: Account,
      came: Method | UpstreamSignIn,
      used: UsedMethod,
      how: { readonly isMailed?: boolean } = {},
    ): Promise<boolean> {
      mailNewLink(ctx, account, used);
      if (!(await sessions.signIn(ctx, account, came))) return false;
      await record(ctx, account, used, how);
      return true;
    },

    /** Gives this browser a separate limit for failed attempts. The user need not be signed in. */
    rememberBrowser: devices.remember,

    /** Records a re-authentication. @returns false if the session has ended */
    async confirm(ctx: Context, account: Account, came: Method | UpstreamSignIn, used: UsedMethod): Promise<boolean> {
      if (!(await sessions.confirm(ctx, account, came))) return false;
      mailNewLink(ctx, account, used);
      devices.remember(ctx, account);
      await recordIn(ctx, account, { ...describe(used), confirmation: true });
      return true;
    },

    /**
     * Keeps this browser signed in after a change that has ended all sessions.
     *
     * @param change the change to report to the user by mail; after a new password, the user counts as re-authenticated
     */
    async keep(ctx: Context, account: Account, change?: Change): Promise<void> {
      if (change?.what === 'password_changed') await sessions.confirm(ctx, account, 'password', 1);
      else await sessions.renew(ctx, account);
      devices.remember(ctx, account);
      if (change) mail?.notify(account.id, change.what, { origin: requestOrigin(ctx), ...change });
    },
  };
}

interface Change extends Pick<MailedEvent, 'about' | 'more'> {
  readonly what: 'password_changed' | 'method_removed' | 'passkey_removed' | 'unrecognized_ended';
}

const isNewLink = (used: UsedMethod): used is NamedProvider & { readonly isNewLink: true } =>
  typeof used === 'object' && 'isNewLink' in used && used.isNewLink;

function describe(used: UsedMethod): Details {
  if (used === 'password') return { method: used };
  if ('passkey' in used) return { method: 'passkey', ...detailsOf(used.passkey) };
  if ('link' in used) return { method: 'link', purpose: used.link };
  return { method: 'upstream', provider: used.id, provider_name: used.label };
}
