/** Lets users satisfy the requirement of `sign_in.require`, and continue afterwards. */
import type { Context } from 'koa';
import { SessionEnded } from '../../accounts/activity/activity.ts';
import type { RequireMayAdd } from '../../accounts/sign-in-methods.ts';
import { isStrongSignIn, type UpstreamStrength } from '../../accounts/sign-in-strength.ts';
import type { BrowserSession, BrowserSessions, Method, UpstreamSignIn } from '../../provider/browser-sessions.ts';
import { mayAct, type Standings } from '../../provider/standings.ts';
import { foundVisitor, type Visitor } from '../page.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

/** Where users add a sign-in method; after the grace period they can open no other profile page. */
export const STRONG_SIGN_IN = '/profile/stronger-sign-in';

/** Paths that stay open after the grace period, only for users who have no strong method yet. */
const OPEN_WITHOUT: readonly string[] = [
  '/profile/security/ways',
  '/profile/security/passkeys/new',
  '/passkey-options/add',
];

/** True if the visitor may act, or if the path is needed to add a first strong method. */
export const isOpenTo = ({ path }: Context, { standing }: Visitor): boolean =>
  mayAct(standing) || path === STRONG_SIGN_IN || (standing.is === 'must add' && OPEN_WITHOUT.includes(path));

/**
 * If a requirement was pending, records the strong method that was just added as a proof of the session.
 *
 * @returns where a user continues whose grace period had ended: the authorization that waited, or the profile.
 *   Undefined for all other users, who stay on their page
 */
export type ContinueIfSatisfied = (ctx: Context, came: Method | UpstreamSignIn) => Promise<string | undefined>;

export const createContinueIfSatisfied =
  (parts: {
    readonly providers: readonly UpstreamStrength[];
    readonly sessions: Pick<BrowserSessions, 'confirm'>;
    readonly waiting: Pick<WaitingSignIn, 'restart'>;
  }): ContinueIfSatisfied =>
  async (ctx, came) => {
    const { account, standing } = foundVisitor(ctx) ?? {};
    // If the sign-in at a newly linked provider was not strong, leave the session as it is.
    const isWeak = typeof came === 'object' && !isStrongSignIn(came, parts.providers);
    if (!account || !standing || standing.is === 'free' || isWeak) return undefined;
    await parts.sessions.confirm(ctx, account, came);
    return mayAct(standing) ? undefined : ((await parts.waiting.restart(ctx)) ?? '/profile');
  };

/** Refuses a new method for a session that must use a strong one, even if another browser is adding that one now. */
export type MayAdd = (session: BrowserSession) => RequireMayAdd;

export const createMayAdd =
  ({ wouldBe }: Pick<Standings, 'wouldBe'>): MayAdd =>
  (session) =>
  async (tx) => {
    const { is } = await wouldBe(session, tx);
    if (is === 'must use') throw new SessionEnded();
  };
