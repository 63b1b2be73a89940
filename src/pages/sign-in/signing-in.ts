/** What is told of every sign-in, whichever way somebody came. */

import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import type { LinkPurpose } from '../../accounts/passwords/links.ts';
import { originOf } from '../page.ts';

/** How somebody came in: with a password, from a provider, or by a one-time link. */
export type Method =
  | 'password'
  | { readonly id: string; readonly label: string }
  | { readonly link: LinkPurpose };

export interface SignInOutcomes {
  /** @param method `password`, `link`, or the id of a provider. */
  signedIn(method: string): void;
}

/** Records it in the person's log, and counts it. */
export type RecordSignIn = (ctx: Context, account: Account, method: Method) => Promise<void>;

export const createRecordSignIn =
  ({
    activity,
    outcomes,
  }: {
    readonly activity: Pick<Activity, 'record'>;
    readonly outcomes: SignInOutcomes;
  }): RecordSignIn =>
  async (ctx, { id: accountId }, method) => {
    ctx.state.accountId = accountId;
    const { name, details } = described(method);
    outcomes.signedIn(name);
    const origin = originOf(ctx);
    await activity.record({ action: 'signed_in', actor: 'person', accountId, details, origin });
  };

/** What counts it, and what the log says of it. */
function described(method: Method) {
  if (method === 'password') return { name: method, details: { method } };
  if ('link' in method) {
    return { name: 'link', details: { method: 'link', purpose: method.link } };
  }
  const { id: provider, label } = method;
  return { name: provider, details: { method: 'upstream', provider, provider_name: label } };
}
