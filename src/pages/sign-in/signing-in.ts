/** What is told of every sign-in, whichever way somebody came. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { Activity } from '../../accounts/activity/activity.ts';
import { originOf } from '../page.ts';

/** How somebody came in: with a password, or from a provider. */
export type Method = 'password' | { readonly id: string; readonly label: string };

export interface SignInOutcomes {
  /** @param method `password`, or the id of a provider. */
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
    outcomes.signedIn(method === 'password' ? method : method.id);
    const details =
      method === 'password'
        ? { method }
        : { method: 'upstream', provider: method.id, provider_name: method.label };
    const origin = originOf(ctx);
    await activity.record({ action: 'signed_in', actor: 'person', accountId, details, origin });
  };
