/** What `sign_in.require` demands of a session, asked wherever a session lets its person do something. */
import type { Context } from 'koa';
import { isStrongSession, type UpstreamStrength } from '../accounts/sign-in-strength.ts';
import type { Demand, StrongerSignIns } from '../accounts/stronger-sign-ins.ts';
import { requestState } from '../base/request-state.ts';
import type { BrowserSession } from './browser-sessions.ts';

type AskedSession = Pick<BrowserSession, 'accountId' | 'method' | 'proof' | 'hasUsedPasskey'>;

export type SessionDemands = ReturnType<typeof createSessionDemands>;

/** @param parts.providers as the settings have them. */
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
     * What is demanded of the person of this session; undefined if nothing is.
     *
     * @param ctx the request, in which the database is asked once; without it, it is asked again.
     */
    of,
    /** False from the end of the grace on: then the session at most adds a first way to sign in. */
    mayAct: async (session: AskedSession, ctx?: Context): Promise<boolean> =>
      !(await of(session, ctx))?.isOver,
  };
}
