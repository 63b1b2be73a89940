/** The requirement of `sign_in.require` for the signed-in user, and where it can be met. */
import type { Context } from 'koa';
import { isStrongSession, isStrongSignIn, type UpstreamStrength } from '../../accounts/sign-in-strength.ts';
import type { SignInRequirement, StrongSignIns } from '../../accounts/strong-sign-ins.ts';
import type { BrowserSessions, Method, UpstreamSignIn } from '../../provider/browser-sessions.ts';
import type { SessionRequirements } from '../../provider/session-requirements.ts';
import { foundVisitor, type Visitor } from '../page.ts';
import type { WaitingSignIn } from './waiting-sign-in.ts';

/** Where users add a sign-in method; after the grace period they can open no other profile page. */
export const STRONG_SIGN_IN = '/profile/stronger-sign-in';

/** Paths that stay open after the grace period, but only for users without a strong method. */
const OPEN_WITHOUT: readonly string[] = [
  '/profile/security/ways',
  '/profile/security/passkeys/new',
  '/passkey-options/add',
];

export type SignInPolicy = ReturnType<typeof createSignInPolicy>;

export function createSignInPolicy(parts: {
  readonly strongSignIns: StrongSignIns;
  readonly providers: readonly UpstreamStrength[];
  readonly sessionRequirements: Pick<SessionRequirements, 'of'>;
  readonly sessions: Pick<BrowserSessions, 'signIn'>;
  readonly waiting: Pick<WaitingSignIn, 'restart'>;
}) {
  const { strongSignIns, providers, sessionRequirements } = parts;
  const { requirementFor } = strongSignIns;
  /** Returns the requirement for this visitor, looked up once per request; undefined if there is none. */
  const of = (ctx: Context, { session }: Visitor): Promise<SignInRequirement | undefined> =>
    sessionRequirements.of(session, ctx);

  /** True if the user's password proves their identity, at a sign-in or later. */
  async function acceptsPassword(accountId: string): Promise<boolean> {
    const requirement = await requirementFor(accountId);
    return !(requirement?.isOver && requirement.hasStrongMethod);
  }

  return {
    /** Returns the requirement for a user who has just entered the correct password. */
    requiredAfterPassword: requirementFor,
    acceptsPassword,

    /**
     * True if a password alone does not sign the user in. This starts no grace period.
     *
     * @param isOfMailedLink true for a password that a mailed link will set, which ends the grace period.
     */
    async needsMoreThanPassword(accountId: string, isOfMailedLink = false): Promise<boolean> {
      const requirement = await strongSignIns.wouldBeRequired(accountId);
      return requirement?.hasStrongMethod === true && (isOfMailedLink || requirement.isOver);
    },

    /** True if this sign-in at a provider is as strong as required to recover the account. */
    mayRecover: async (accountId: string, came: UpstreamSignIn): Promise<boolean> =>
      isStrongSignIn(came, providers) || (await strongSignIns.wouldBeRequired(accountId)) === undefined,

    /** True if this session may add a sign-in method: a password session only the first one. */
    mayAddMethod: async ({ account, session }: Visitor): Promise<boolean> =>
      isStrongSession(session, providers) || acceptsPassword(account.id),

    of,

    /** True if the grace period has ended and the request does not serve to add a sign-in method. */
    async isBlocked(ctx: Context, visitor: Visitor): Promise<boolean> {
      const requirement = ctx.path === STRONG_SIGN_IN ? undefined : await of(ctx, visitor);
      if (!requirement?.isOver) return false;
      return requirement.hasStrongMethod || !OPEN_WITHOUT.includes(ctx.path);
    },

    /**
     * If a requirement was pending, signs the user in again with the strong method just added.
     *
     * @returns where a user whose grace period had ended continues: the authorization that waited, or
     *   the profile. Undefined for all other users, who stay on their page.
     */
    async continueIfSatisfied(ctx: Context, came: Method | UpstreamSignIn): Promise<string | undefined> {
      const visitor = foundVisitor(ctx);
      const requirement = visitor && (await of(ctx, visitor));
      // If the sign-in at a newly linked provider was not strong, keep the password session.
      const isWeak = typeof came === 'object' && !isStrongSignIn(came, providers);
      if (!requirement || isWeak) return undefined;
      await parts.sessions.signIn(ctx, visitor.account, came);
      return requirement.isOver ? ((await parts.waiting.restart(ctx)) ?? '/profile') : undefined;
    },
  };
}
