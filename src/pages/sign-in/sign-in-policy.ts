/** Leads users to the sign-in method that the setting `sign_in.require` requires, and continues afterwards. */
import type { Context } from 'koa';
import { SessionEnded } from '../../accounts/activity/activity.ts';
import type { RequireMayAdd } from '../../accounts/sign-in-methods.ts';
import { isStrongSignIn, type UpstreamStrength } from '../../accounts/sign-in-strength.ts';
import type { BrowserSession, BrowserSessions, Method, UpstreamSignIn } from '../../provider/browser-sessions.ts';
import { mayAct, type Standings } from '../../provider/standings.ts';
import { foundVisitor, type Visitor } from '../page.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

/** The page on which users add a strong method. After the grace period, they can open hardly any other profile page. */
export const STRONG_SIGN_IN = '/profile/stronger-sign-in';

/** Paths that users without a strong method can still open after the grace period. */
const OPEN_WITHOUT: readonly string[] = [
  '/profile/security/ways',
  '/profile/security/passkeys/new',
  '/passkey-options/add',
];

/** True if the user's sign-in is strong enough, or if the user needs this path to add a first strong method. */
export const isOpenTo = ({ path }: Context, { standing }: Visitor): boolean =>
  mayAct(standing) || path === STRONG_SIGN_IN || (standing.is === 'must add' && OPEN_WITHOUT.includes(path));

/**
 * If a user who needed a strong method has just added one, records the method as a proof of the session.
 *
 * @returns the URL at which the user continues, if the grace period of the user had ended; otherwise undefined
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
    // The sign-in at a newly linked provider need not have been strong.
    const isWeak = typeof came === 'object' && !isStrongSignIn(came, parts.providers);
    if (!account || !standing || standing.is === 'free' || isWeak) return undefined;
    await parts.sessions.confirm(ctx, account, came);
    return mayAct(standing) ? undefined : ((await parts.waiting.restart(ctx)) ?? '/profile');
  };

/** Throws if the user must sign in with a strong method before adding another method. The strong method may be new. */
export type MayAdd = (session: BrowserSession) => RequireMayAdd;

export const createMayAdd =
  ({ wouldBe }: Pick<Standings, 'wouldBe'>): MayAdd =>
  (session) =>
  async (tx) => {
    const { is } = await wouldBe(session, tx);
    if (is === 'must use') throw new SessionEnded();
  };
