/** How sessions are written: signing in begins one, and no other write brings one back. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider';
import type { SessionList } from '../accounts/session-list.ts';
import type { Clock } from '../clock.ts';
import { epochSeconds } from '../clock.ts';
import type { TokenStore } from '../storage/token-store.ts';

type Session = InstanceType<Provider['Session']>;

export interface SessionWrites {
  /**
   * Keeps a session for so many seconds from now, and notes one that begins.
   *
   * @returns whether it is kept: one that was ended since it was read is not.
   */
  save(session: SessionModel, seconds: number, ctx: Context | undefined): Promise<boolean>;
  /** At the end of a request of the engine's that has a session. */
  saveAfter(
    session: SessionModel,
    seconds: number,
    request: { readonly ctx: KoaContextWithOIDC | undefined; readonly cookieName: string },
  ): Promise<void>;
  /** Whether this request is the one in which somebody signs in. */
  signsIn(ctx: KoaContextWithOIDC | undefined): boolean;
}

/** Our way to write, for the engine's, which writes at each request that has a session. */
export function createSessionWrites({
  store,
  clock,
  sessionList,
}: {
  store: TokenStore;
  clock: Clock;
  sessionList: Pick<SessionList, 'note'>;
}): SessionWrites {
  async function save(
    session: SessionModel,
    seconds: number,
    ctx: Context | undefined,
  ): Promise<boolean> {
    const { oldId } = session;
    const begins = isBegun(session);
    session.exp = epochSeconds(clock) + seconds;
    const { payload } = await session.getValueAndPayload();
    const { jti: _, exp: __, ...data } = payload;
    const kept = [session.jti, session.uid, data, session.exp] as const;
    if (!begins) return store.replaceSession(...kept);
    if (oldId !== undefined) await store.remove('session', oldId);
    const { accountId, acr, uid } = session;
    if (accountId !== undefined && ctx) {
      const origin = { address: ctx.ip, browser: ctx.get('user-agent') };
      const begun = { uid, begunAt: new Date(clock()), origin };
      await sessionList.note(accountId, Number(acr), begun);
    }
    await store.writeSession(...kept);
    return true;
  }

  return {
    save,

    async saveAfter(session, seconds, { ctx, cookieName }) {
      const isResumed = ctx?.oidc.route === 'resume' && !isBegun(session);
      // Nobody is signed in, so there is nothing to keep.
      const isKept = session.accountId !== undefined && (await save(session, seconds, ctx));
      // The engine has set it already. Of several resumptions at once one may begin a session, and
      // the answer of another, that comes late, would put the cookie of before in its place.
      if (ctx && (!isKept || isResumed)) dropCookie(ctx, cookieName);
      session.touched = false;
    },

    // Against planted identifiers. The engine renews them at every resumption: of several at once
    // one would win, and the browser keep the cookie of another.
    signsIn(ctx) {
      const { result, entities } = ctx?.oidc ?? {};
      return Boolean(result?.login) && entities?.Interaction?.prompt.name === 'login';
    },
  };
}

/** Not read from the store, or with another identifier than it was. */
const isBegun = ({ exp, oldId }: SessionModel): boolean => exp === undefined || oldId !== undefined;

/** As if this answer had not named it. */
function dropCookie({ response }: KoaContextWithOIDC, name: string): void {
  const all = [response.get('set-cookie') as string | readonly string[]].flat();
  const others = all.filter(
    (line) => !line.startsWith(`${name}=`) && !line.startsWith(`${name}.sig=`),
  );
  response.remove('set-cookie');
  for (const line of others) if (line !== '') response.append('set-cookie', line);
}

/** The engine's session, with what its types leave out. */
export type SessionModel = Session & {
  /** Undefined for one that was not read from the store. */
  exp?: number;
  /** The identifier before `resetIdentifier`. */
  readonly oldId?: string;
  touched: boolean;
  getValueAndPayload(): Promise<{ payload: AdapterPayload }>;
};
