/** Checks what `sign_in.require` demands of a session, wherever a session lets its user act. */
import type { Context } from 'koa';
import { isStrongSession, type UpstreamStrength } from '../accounts/sign-in-strength.ts';
import type { Demand, StrongerSignIns } from '../accounts/stronger-sign-ins.ts';
import { requestState } from '../base/request-state.ts';
import type { BrowserSession } from './browser-sessions.ts';

type AskedSession = Pick<BrowserSession, 'accountId' | 'method' | 'proof' | 'hasUsedPasskey'>;

export type SessionDemands = ReturnType<typeof createSessionDemands>;

/** @param parts.providers those of the settings */
export function createSessionDemands({
  demandOn,
  providers,
}: Pick<StrongerSignIns, 'demandOn'> & {
  readonly providers: readonly UpstreamStrength[];
}) {
  const asked = requestState<{
    readonly accountId: string;
    readonly demand: Promise<Demand | undefined>;
  }>('a demand');

  async function of(session: AskedSession, ctx?: Context): Promise<Demand | undefined> {
    if (isStrongSession(session, providers)) return undefined;
    const { accountId } = session;
    const before = ctx && asked.find(ctx);
    if (before?.accountId === accountId) return before.demand;
    const demand = demandOn(accountId);
    if (ctx) asked.set(ctx, { accountId, demand });
    return demand;
  }

  return {
    /**
     * Returns what is demanded of the session's user; undefined if nothing is.
     *
     * @param ctx the request, which queries the database once; without it, every call does
     */
    of,
    /** False after the grace: then the session can at most add a first sign-in method. */
    mayAct: async (session: AskedSession, ctx?: Context): Promise<boolean> =>
      !(await of(session, ctx))?.isOver,
  };
}
