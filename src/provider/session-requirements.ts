/** Checks whether a session meets the setting `sign_in.require`, wherever its user can act. */
import type { Context } from 'koa';
import { isStrongSession, type UpstreamStrength } from '../accounts/sign-in-strength.ts';
import type { SignInRequirement, StrongSignIns } from '../accounts/strong-sign-ins.ts';
import { requestState } from '../base/request-state.ts';
import type { BrowserSession } from './browser-sessions.ts';

type AskedSession = Pick<BrowserSession, 'accountId' | 'method' | 'proof' | 'hasUsedPasskey'>;

export type SessionRequirements = ReturnType<typeof createSessionRequirements>;

/** @param parts.providers the sign-in providers of the settings */
export function createSessionRequirements({
  requirementFor,
  providers,
}: Pick<StrongSignIns, 'requirementFor'> & {
  readonly providers: readonly UpstreamStrength[];
}) {
  const asked = requestState<{
    readonly accountId: string;
    readonly requirement: Promise<SignInRequirement | undefined>;
  }>('a sign-in requirement');

  async function of(session: AskedSession, ctx?: Context): Promise<SignInRequirement | undefined> {
    if (isStrongSession(session, providers)) return undefined;
    const { accountId } = session;
    const before = ctx && asked.find(ctx);
    if (before?.accountId === accountId) return before.requirement;
    const requirement = requirementFor(accountId);
    if (ctx) asked.set(ctx, { accountId, requirement });
    return requirement;
  }

  return {
    /**
     * Returns the sign-in requirement for the session's user; undefined if there is none.
     *
     * @param ctx the request, for which the result is cached; without it, every call queries the database
     */
    of,
    /** False after the grace period: the session can then only add a first sign-in method. */
    mayAct: async (session: AskedSession, ctx?: Context): Promise<boolean> => !(await of(session, ctx))?.isOver,
  };
}
