/** Whether a password was enough for who is signed in, and where they go to do more (sign_in.require). */
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

/** Where they add a way, and the only page they reach once their grace is over. */
export const STRONGER = '/profile/stronger-sign-in';

/** What leads out of it for who has no way yet: with one, a password is no proof for another. */
const OPEN_WITHOUT: readonly string[] = [
  '/profile/security/ways',
  '/profile/security/passkeys/new',
  '/passkey-options/add',
];

export interface Demands {
  /** Of who has just given the right password. */
  afterPassword(accountId: string): Promise<Demand | undefined>;
  /** Whether their password proves who they are, at a sign-in or later. */
  takesPassword(accountId: string): Promise<boolean>;
  /** Whether a password alone does not let them in. No grace begins by asking this. */
  asksForMore(accountId: string): Promise<boolean>;
  /** Whether this session may add a way to sign in: a password adds a first one and no other. */
  mayAddWay(visitor: Visitor): Promise<boolean>;
  /** Whether this sign-in at a provider lets an account be recovered: as strong as it demands. */
  mayRecover(accountId: string, came: UpstreamSignIn): Promise<boolean>;
  /** What is demanded of this visitor, asked once in a request; undefined where nothing is. */
  of(ctx: Context, visitor: Visitor): Promise<Demand | undefined>;
  /** Their grace is over, and this request is for something else than to add a way. */
  holdsBack(ctx: Context, visitor: Visitor): Promise<boolean>;
  /**
   * Somebody of whom it is demanded has just added a way, and so has come in by it.
   *
   * @returns where who was held back goes on: the authorization that waited, or their profile.
   *   Undefined for everybody else, who stays where they are.
   */
  met(ctx: Context, came: Method | UpstreamSignIn): Promise<string | undefined>;
}

export function createDemands(parts: {
  readonly strongerSignIns: StrongerSignIns;
  /** As the settings have them. */
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
      // A link with a provider whose sign-in was not strong: the password session goes on.
      const isWeak = typeof came === 'object' && !isStrongSignIn(came, providers);
      if (!demand || isWeak) return undefined;
      await parts.sessions.signIn(ctx, visitor.account, came);
      return demand.isOver ? ((await parts.waiting.restart(ctx)) ?? '/profile') : undefined;
    },
  };
}
