/** What `sign_in.require` demands of the signed-in user, and where the user satisfies it. */
import type { Context } from 'koa';
import {
  isStrongSession,
  isStrongSignIn,
  type UpstreamStrength,
} from '../../accounts/sign-in-strength.ts';
import type { Demand, StrongerSignIns } from '../../accounts/stronger-sign-ins.ts';
import type { BrowserSessions, Method, UpstreamSignIn } from '../../provider/browser-sessions.ts';
import type { SessionDemands } from '../../provider/session-demands.ts';
import { foundVisitor, type Visitor } from '../page.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

/** Where users add a sign-in method; the only page they reach after their grace period. */
export const STRONGER = '/profile/stronger-sign-in';

/** Also open after the grace without a strong method: with one, a password may add no other. */
const OPEN_WITHOUT: readonly string[] = [
  '/profile/security/ways',
  '/profile/security/passkeys/new',
  '/passkey-options/add',
];

export interface Demands {
  /** Returns the demand on a user who has just entered the correct password. */
  afterPassword(accountId: string): Promise<Demand | undefined>;
  /** True if the user's password proves their identity, at a sign-in or later. */
  takesPassword(accountId: string): Promise<boolean>;
  /** True if a password alone does not sign the user in. This starts no grace period. */
  asksForMore(accountId: string): Promise<boolean>;
  /** True if this session may add a sign-in method: a password session may add only a first one. */
  mayAddWay(visitor: Visitor): Promise<boolean>;
  /** True if this sign-in at a provider is as strong as required to recover the account. */
  mayRecover(accountId: string, came: UpstreamSignIn): Promise<boolean>;
  /** Returns the demand on this visitor, looked up once per request; undefined if there is none. */
  of(ctx: Context, visitor: Visitor): Promise<Demand | undefined>;
  /** True if the grace period is over and the request is not one to add a sign-in method. */
  holdsBack(ctx: Context, visitor: Visitor): Promise<boolean>;
  /**
   * Signs in a user with the strong method that the user has just added, if one was demanded.
   *
   * @returns where a user whose grace period was over continues: the authorization that waited, or
   *   the profile. Undefined for all other users, who stay on their page.
   */
  met(ctx: Context, came: Method | UpstreamSignIn): Promise<string | undefined>;
}

export function createDemands(parts: {
  readonly strongerSignIns: StrongerSignIns;
  readonly providers: readonly UpstreamStrength[];
  readonly sessionDemands: Pick<SessionDemands, 'of'>;
  readonly sessions: Pick<BrowserSessions, 'signIn'>;
  readonly waiting: Pick<WaitingSignIn, 'restart'>;
}): Demands {
  const { strongerSignIns, providers, sessionDemands } = parts;
  const { demandOn } = strongerSignIns;
  const of: Demands['of'] = (ctx, { session }) => sessionDemands.of(session, ctx);

  async function takesPassword(accountId: string): Promise<boolean> {
    const demand = await demandOn(accountId);
    return !(demand?.isOver && demand.hasWay);
  }

  return {
    afterPassword: demandOn,
    takesPassword,

    async asksForMore(accountId) {
      const demand = await strongerSignIns.wouldBeDemanded(accountId);
      return (demand?.isOver && demand.hasWay) ?? false;
    },

    mayRecover: async (accountId, came) =>
      isStrongSignIn(came, providers) ||
      (await strongerSignIns.wouldBeDemanded(accountId)) === undefined,

    mayAddWay: async ({ account, session }) =>
      isStrongSession(session, providers) || takesPassword(account.id),

    of,

    async holdsBack(ctx, visitor) {
      const demand = ctx.path === STRONGER ? undefined : await of(ctx, visitor);
      if (!demand?.isOver) return false;
      return demand.hasWay || !OPEN_WITHOUT.includes(ctx.path);
    },

    async met(ctx, came) {
      const visitor = foundVisitor(ctx);
      const demand = visitor && (await of(ctx, visitor));
      // After a link with a provider whose sign-in was not strong, the password session continues.
      const isWeak = typeof came === 'object' && !isStrongSignIn(came, providers);
      if (!demand || isWeak) return undefined;
      await parts.sessions.signIn(ctx, visitor.account, came);
      return demand.isOver ? ((await parts.waiting.restart(ctx)) ?? '/profile') : undefined;
    },
  };
}
