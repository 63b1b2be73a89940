/** What is told of every sign-in, whichever way somebody came. */

import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import { detailsOf, type Passkey } from '../../accounts/passkeys/passkey.ts';
import type { LinkPurpose } from '../../accounts/passwords/links.ts';
import { originOf } from '../page.ts';
import { fromOf } from '../words/browser.ts';
import type { KnownDevices } from './known-devices.ts';
import type { WayIn } from './upstream-ways.ts';

/** How somebody came in: with a password, with a passkey, from a provider, or by a one-time link. */
export type Way =
  | 'password'
  | { readonly passkey: Passkey }
  | { readonly link: LinkPurpose }
  | (WayIn & { readonly isNewLink: boolean });

export interface SignInOutcomes {
  /** @param method `password`, `passkey`, `link`, or the id of a provider. */
  signedIn(method: string): void;
}

/** Records it in the person's log, counts it, and mails them where the browser is not known yet. */
export type RecordSignIn = (ctx: Context, account: Account, way: Way) => Promise<void>;

export const createRecordSignIn =
  ({
    activity,
    outcomes,
    devices,
    mail,
  }: {
    readonly activity: Pick<Activity, 'record'>;
    readonly outcomes: SignInOutcomes;
    readonly devices: Pick<KnownDevices, 'find' | 'remember'>;
    /** Absent where no mail is sent. */
    readonly mail: AccountMail | undefined;
  }): RecordSignIn =>
  async (ctx, account, way) => {
    const { id: accountId } = account;
    const { method, details } = toldOf(way);
    ctx.state.accountId = accountId;
    if (typeof way === 'object' && 'isNewLink' in way && way.isNewLink) {
      // Also in a known browser: new is the account elsewhere.
      mail?.tell(accountId, 'account_linked', { ...fromOf(ctx), about: way.label });
    } else if (!devices.find(ctx, account)) {
      mail?.tell(accountId, 'new_device', fromOf(ctx));
    }
    devices.remember(ctx, account);
    outcomes.signedIn(method);
    const origin = originOf(ctx);
    await activity.record({ action: 'signed_in', actor: 'person', accountId, details, origin });
  };

/** What counts it, and what the log says of it. */
function toldOf(way: Way) {
  if (way === 'password') return { method: way, details: { method: way } };
  if ('passkey' in way) {
    const method = 'passkey';
    return { method, details: { method, ...detailsOf(way.passkey) } };
  }
  if ('link' in way) {
    const method = 'link';
    return { method, details: { method, purpose: way.link } };
  }
  const details = { method: 'upstream', provider: way.id, provider_name: way.label };
  return { method: way.id, details };
}
