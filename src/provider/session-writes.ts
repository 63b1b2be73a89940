/** How sessions are written: signing in begins one, and no other write brings one back. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider';
import type { SessionList } from '../accounts/session-list.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { cookieAttributes } from '../base/cookies.ts';
import { originOf } from '../base/request-state.ts';
import type { Settings } from '../config/settings.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { SessionTimes } from './session-ages.ts';

type Session = InstanceType<Provider['Session']>;

export type SessionWrites = ReturnType<typeof createSessionWrites>;

/** Our way to write, for the engine's, which writes at each request that has a session. */
export function createSessionWrites(parts: {
  provider: Provider;
  store: TokenStore;
  clock: Clock;
  settings: Settings;
  sessionList: Pick<SessionList, 'note'>;
  /** False for a session whose person must sign in with more (sign_in.require). */
  mayAct: (session: SessionModel, ctx: Context | undefined) => Promise<boolean>;
}) {
  const { provider, store, clock, settings, sessionList, mayAct } = parts;
  const { idleSeconds, absoluteSeconds } = settings.sessions;
  const cookieName = provider.cookieName('session');
  const cookieOptions = {
    ...cookieAttributes(settings.issuer),
    signed: true,
    path: '/',
    overwrite: true,
  };

  /**
   * Keeps a session for as long as it may be idle from now. One that begins is noted, and its cookie
   * set for all of its life: an answer that came late would put the cookie of a former session in the
   * place of a newer one, so no other names any.
   *
   * @returns the seconds it is kept; undefined for one that was ended since it was read, and for one
   *   that may not act.
   */
  async function save(
    session: SessionModel,
    ctx: Context | undefined,
  ): Promise<number | undefined> {
    const { oldId, accountId, acr, uid } = session;
    const left = absoluteSeconds - (epochSeconds(clock) - (session.loginTs ?? 0));
    const seconds = Math.min(idleSeconds, left);
    const { payload } = await session.getValueAndPayload();
    const { jti: _, exp: __, ...rest } = payload;
    const seenAt = epochSeconds(clock);
    const data: typeof rest & SessionTimes = { ...rest, seenAt };
    const kept = [session.jti, uid, data, seenAt + seconds] as const;
    const nameCookie = (): void =>
      void ctx?.cookies.set(cookieName, session.jti, { ...cookieOptions, maxAge: left * 1000 });
    if (!isBegun(session)) {
      if (!(await mayAct(session, ctx))) return undefined;
      if (!(await store.replaceSession(...kept))) return undefined;
      // Read under a former key it was signed anew, for no longer than the browser runs.
      if (ctx && namedIn(ctx).some((line) => line.startsWith(`${cookieName}.sig=`))) nameCookie();
      return seconds;
    }
    if (oldId !== undefined) await store.remove('session', oldId);
    if (accountId !== undefined && ctx) {
      const begun = { uid, begunAt: new Date(clock()), origin: originOf(ctx) };
      await sessionList.note(accountId, Number(acr), begun);
    }
    await store.writeSession(...kept);
    nameCookie();
    return seconds;
  }

  return {
    save,

    /** As if this browser never had a session. */
    clearCookie: (ctx: Context): void => void ctx.cookies.set(cookieName, null, cookieOptions),

    /** At the end of a request of the engine's that has a session. */
    async saveAfter(session: SessionModel, ctx: KoaContextWithOIDC | undefined): Promise<void> {
      // Which the engine sets at every request.
      if (ctx) dropCookie(ctx, cookieName);
      // Nobody is signed in otherwise, so there is nothing to keep.
      if (session.accountId !== undefined) await save(session, ctx);
      // The engine would write it into the cookie.
      delete session.exp;
      session.touched = false;
    },

    /**
     * Whether this request is the one in which somebody signs in: then the session gets another
     * identifier, against planted ones. The engine renews it at every resumption: of several at once
     * one would win, and the browser keep the cookie of another.
     */
    signsIn(ctx: KoaContextWithOIDC | undefined): boolean {
      const { result, entities } = ctx?.oidc ?? {};
      return Boolean(result?.login) && entities?.Interaction?.prompt.name === 'login';
    },
  };
}

/** Not read from the store, or with another identifier than it was. */
const isBegun = ({ exp, oldId }: SessionModel): boolean => exp === undefined || oldId !== undefined;

/** The cookies that the answer names, as far as it is made. */
const namedIn = ({ response }: Pick<Context, 'response'>): string[] =>
  [response.get('set-cookie') as string | string[]].flat().filter(Boolean);

/** As if this answer had not named it. */
function dropCookie(ctx: KoaContextWithOIDC, name: string): void {
  const isOther = (line: string) =>
    !line.startsWith(`${name}=`) && !line.startsWith(`${name}.sig=`);
  const others = namedIn(ctx).filter(isOther);
  ctx.response.remove('set-cookie');
  for (const line of others) ctx.response.append('set-cookie', line);
}

/** The engine's session, with what its types leave out. */
export type SessionModel = Omit<Session, 'exp'> & {
  /** Undefined for one that was not read from the store. */
  exp?: number;
  /** The identifier before `resetIdentifier`. */
  readonly oldId?: string;
  touched: boolean;
  getValueAndPayload(): Promise<{ payload: AdapterPayload }>;
};
