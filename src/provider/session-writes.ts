/** Writes sessions. Only a sign-in creates a session; no other write restores an ended one. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider';
import type { ProviderSession, SessionList } from '../accounts/session-list.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { cookieAttributes } from '../base/cookies.ts';
import { createNetworkCheck } from '../base/network-address.ts';
import { requestOrigin } from '../base/request-state.ts';
import type { Settings } from '../config/settings.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { SessionTimes } from './session-ages.ts';

type Session = InstanceType<Provider['Session']>;

/** The idle time on a shared terminal. */
const SHARED_IDLE_SECONDS = 900;

export type SessionWrites = ReturnType<typeof createSessionWrites>;

/** Replaces the engine's own writes, which happen at every request that has a session. */
export function createSessionWrites(parts: {
  provider: Provider;
  store: TokenStore;
  clock: Clock;
  settings: Settings;
  sessionList: Pick<SessionList, 'record'>;
  /** False if the session's user needs a stronger sign-in (`sign_in.require`). */
  mayAct: (session: SessionModel, ctx: Context | undefined) => Promise<boolean>;
}) {
  const { provider, store, clock, settings, sessionList, mayAct } = parts;
  const { idleSeconds, absoluteSeconds, sharedTerminals } = settings.sessions;
  const isShared = createNetworkCheck(sharedTerminals);
  const idleSecondsFor = (ctx?: Context): number =>
    isShared(ctx?.ip) ? Math.min(idleSeconds, SHARED_IDLE_SECONDS) : idleSeconds;
  const cookieName = provider.cookieName('session');
  const cookieOptions = {
    ...cookieAttributes(settings.issuer),
    signed: true,
    path: '/',
    overwrite: true,
  };

  /**
   * Stores a session for its idle time from now. A new session is recorded, and its cookie is set
   * for its whole lifetime. Other responses do not set the cookie (except to sign it with a new
   * key): a late response would replace the cookie of a newer session with that of a former one.
   *
   * @param from where the user of a new or continued session has just authenticated, if that was at a provider
   * @returns for how many seconds the session is stored; undefined if it has ended, or may not act
   */
  async function save(
    session: SessionModel,
    ctx: Context | undefined,
    from?: ProviderSession,
  ): Promise<number | undefined> {
    const { oldId, accountId, acr, uid } = session;
    const left = absoluteSeconds - (epochSeconds(clock) - (session.loginTs ?? 0));
    const seconds = Math.min(idleSecondsFor(ctx), left);
    const { payload } = await session.getValueAndPayload();
    const { jti: _, exp: __, ...rest } = payload;
    const seenAt = epochSeconds(clock);
    const data: typeof rest & SessionTimes = { ...rest, seenAt };
    const kept = [session.jti, uid, data, seenAt + seconds] as const;
    // On a shared terminal, the cookie ends when the browser is closed.
    const maxAge = isShared(ctx?.ip) ? undefined : left * 1000;
    const nameCookie = (): void => void ctx?.cookies.set(cookieName, session.jti, { ...cookieOptions, maxAge });
    if (!isNew(session)) {
      if (!(await mayAct(session, ctx))) return undefined;
      if (!(await store.replaceSession(...kept))) return undefined;
      // The engine has signed a former key's cookie again, but only until the browser is closed.
      if (ctx && namedIn(ctx).some((line) => line.startsWith(`${cookieName}.sig=`))) nameCookie();
      return seconds;
    }
    if (oldId !== undefined) await store.remove('session', oldId);
    if (accountId !== undefined && ctx) {
      const begun = { uid, begunAt: new Date(clock()), origin: requestOrigin(ctx) };
      await sessionList.record(accountId, Number(acr), begun, from);
    }
    await store.writeSession(...kept);
    nameCookie();
    return seconds;
  }

  return {
    save,
    /** Returns after how many seconds without a request a session of this browser ends. */
    idleSecondsFor,

    /** Removes the session cookie from the browser. */
    clearCookie: (ctx: Context): void => void ctx.cookies.set(cookieName, null, cookieOptions),

    /** Runs at the end of each request to the engine that has a session. */
    async saveAfter(session: SessionModel, ctx: KoaContextWithOIDC | undefined): Promise<void> {
      // Remove the session cookie that the engine sets at every request.
      if (ctx) dropCookie(ctx, cookieName);
      // Without an account no user is signed in, so there is nothing to store.
      if (session.accountId !== undefined) await save(session, ctx);
      // Delete `exp`, or the engine writes it into the cookie.
      delete session.exp;
      session.touched = false;
    },

    /**
     * True if a user signs in with this request: the session then gets a new identifier, against
     * session fixation. The engine would renew it at every resumption: if several run at once, only
     * one of them wins, and the browser might keep the cookie of another.
     */
    signsIn(ctx: KoaContextWithOIDC | undefined): boolean {
      const { result, entities } = ctx?.oidc ?? {};
      return Boolean(result?.login) && entities?.Interaction?.prompt.name === 'login';
    },
  };
}

/** True if the session was not read from the store, or its identifier has changed since. */
const isNew = ({ exp, oldId }: SessionModel): boolean => exp === undefined || oldId !== undefined;

/** Returns the `Set-Cookie` lines of the response so far. */
const namedIn = ({ response }: Pick<Context, 'response'>): string[] =>
  [response.get('set-cookie') as string | string[]].flat().filter(Boolean);

/** Removes the cookie from the response, but not from the browser. */
function dropCookie(ctx: KoaContextWithOIDC, name: string): void {
  const isOther = (line: string) => !line.startsWith(`${name}=`) && !line.startsWith(`${name}.sig=`);
  const others = namedIn(ctx).filter(isOther);
  ctx.response.remove('set-cookie');
  for (const line of others) ctx.response.append('set-cookie', line);
}

/** The engine's session, with the members that its types omit. */
export type SessionModel = Omit<Session, 'exp'> & {
  /** Undefined if the session was not read from the store. */
  exp?: number;
  /** The identifier before `resetIdentifier`. */
  readonly oldId?: string;
  touched: boolean;
  getValueAndPayload(): Promise<{ payload: AdapterPayload }>;
};
