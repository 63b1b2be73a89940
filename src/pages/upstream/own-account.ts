/** For signed-in users: links an identity at a provider, or re-authenticates with one. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import { type Activity, SessionEnded } from '../../accounts/activity/activity.ts';
import type { LinkTo } from '../../accounts/identities/coming-in.ts';
import type { Identities } from '../../accounts/identities/identities.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { UpstreamPerson } from '../../upstream/upstream-provider.ts';
import { originInSession, originOf, type Visitor } from '../page.ts';
import type { Demands } from '../sign-in/demands.ts';
import type { WayIn } from '../sign-in/upstream-ways.ts';
import { fromOf } from '../words/browser.ts';

/** Links an identity in the session that asked for it, which continues. @returns why not. */
export type Link = (
  ctx: Context,
  way: WayIn,
  who: { readonly person: UpstreamPerson; readonly accountId: string },
) => Promise<'signed out' | 'taken already' | undefined>;

/** Signs no user in, so an identity of another account here is refused as `another`, too. */
export type Confirm = (
  ctx: Context,
  way: WayIn,
  who: { readonly person: UpstreamPerson; readonly accountId: string },
) => Promise<Account | 'another' | 'suspended'>;

export const createConfirm =
  ({
    identities,
    activity,
  }: {
    readonly identities: Pick<Identities, 'use'>;
    readonly activity: Pick<Activity, 'record'>;
  }): Confirm =>
  async (ctx, { id, label }, { person, accountId }) => {
    const { account } = (await identities.use(person)) ?? {};
    if (account?.id === accountId) return account.isSuspended ? 'suspended' : account;
    const { issuer, subject } = person;
    const about = { provider: id, provider_name: label, issuer, subject };
    await activity.record({
      action: 'sign_in_refused',
      actor: 'person',
      accountId,
      origin: originOf(ctx),
      details: { reason: 'another', ...about },
    });
    return 'another';
  };

export const createLink =
  (parts: {
    visitorOf(ctx: Context): Promise<Visitor | undefined>;
    readonly linkTo: LinkTo;
    readonly mail: AccountMail | undefined;
    readonly demands: Pick<Demands, 'mayAddWay'>;
  }): Link =>
  async (ctx, way, { person, accountId }) => {
    const visitor = await parts.visitorOf(ctx);
    // Another user may be signed in by now, or a thief's session: link only the account that asked.
    if (visitor?.account.id !== accountId) return 'signed out';
    // The grace period may have ended while the user was at the provider.
    if (!(await parts.demands.mayAddWay(visitor))) return 'signed out';
    try {
      const outcome = await parts.linkTo(visitor.account, way, person, originInSession(ctx));
      if (outcome === 'taken') return 'taken already';
      if (outcome === 'linked') {
        parts.mail?.tell(accountId, 'way_added', { ...fromOf(ctx), about: way.label });
      }
      return undefined;
    } catch (error) {
      if (error instanceof SessionEnded) return 'signed out';
      throw error;
    }
  };
