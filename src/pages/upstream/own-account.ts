/** For signed-in users: links an identity at a provider, or re-authenticates with one. */
import type { Context } from 'koa';
import { type Activity, SessionEnded } from '../../accounts/activity/activity.ts';
import type { Identities } from '../../accounts/identities/identities.ts';
import type { LinkIdentity, ResolvedAccount } from '../../accounts/identities/resolve-identity.ts';
import type { AccountMail } from '../../accounts/mail/account-mail.ts';
import type { UpstreamPerson } from '../../upstream/upstream-provider.ts';
import { originInSession, requestOrigin, type Visitor } from '../page.ts';
import type { MayAdd } from '../sign-in/sign-in-policy.ts';
import type { OwnPurpose, WayIn } from '../sign-in/upstream-ways.ts';
import { browserDetails } from '../words/browser-details.ts';

/** Links an identity to the account of the session, which continues. @returns why it failed. */
export type Link = (
  ctx: Context,
  provider: WayIn,
  who: { readonly person: UpstreamPerson; readonly purpose: OwnPurpose },
) => Promise<'signed out' | 'taken already' | undefined>;

/**
 * Re-authenticates with an identity.
 *
 * @returns the account of the session, or `another` if the identity is not linked to it.
 */
export type Confirm = (
  ctx: Context,
  provider: WayIn,
  who: { readonly person: UpstreamPerson; readonly purpose: OwnPurpose },
) => Promise<ResolvedAccount | 'another' | 'suspended' | 'signed out'>;

/** False if another user, or the same one in another session, is signed in by now. */
const isOf = ({ account, session }: Visitor, { accountId, sessionUid }: OwnPurpose): boolean =>
  account.id === accountId && session.uid === sessionUid;

export const createConfirm =
  ({
    signedInOf,
    identities,
    activity,
  }: {
    signedInOf(ctx: Context): Promise<Visitor | undefined>;
    readonly identities: Pick<Identities, 'use'>;
    readonly activity: Pick<Activity, 'recordRefused'>;
  }): Confirm =>
  async (ctx, { id, label }, { person, purpose }) => {
    const visitor = await signedInOf(ctx);
    // The session continues, so it must still be active: a confirmation does not sign in.
    if (!visitor || !isOf(visitor, purpose)) return 'signed out';
    const { accountId } = purpose;
    const { account, isFirstUse = false } = (await identities.use(person)) ?? {};
    if (account?.id === accountId) {
      if (account.isSuspended) return 'suspended';
      // Not `account`, which may be of a later generation: an end of the session since then stays in force.
      return { account: visitor.account, isNewLink: isFirstUse };
    }
    const { issuer, subject } = person;
    const about = { provider: id, provider_name: label, issuer, subject };
    await activity.recordRefused({
      action: 'sign_in_refused',
      actor: 'person',
      accountId,
      origin: requestOrigin(ctx),
      details: { reason: 'another', ...about },
    });
    return 'another';
  };

export const createLink =
  (parts: {
    signedInOf(ctx: Context): Promise<Visitor | undefined>;
    readonly linkIdentity: LinkIdentity;
    readonly mail: AccountMail | undefined;
    readonly mayAdd: MayAdd;
  }): Link =>
  async (ctx, provider, { person, purpose }) => {
    const visitor = await parts.signedInOf(ctx);
    if (!visitor || !isOf(visitor, purpose)) return 'signed out';
    const { account, session } = visitor;
    // The grace period may have ended while the user was at the provider.
    const requireMayAdd = parts.mayAdd(session);
    try {
      const outcome = await parts.linkIdentity(account, provider, person, originInSession(ctx), requireMayAdd);
      if (outcome === 'taken') return 'taken already';
      if (outcome === 'linked') {
        parts.mail?.notify(account.id, 'way_added', {
          ...browserDetails(ctx),
          about: provider.label,
        });
      }
      return undefined;
    } catch (error) {
      if (error instanceof SessionEnded) return 'signed out';
      throw error;
    }
  };
