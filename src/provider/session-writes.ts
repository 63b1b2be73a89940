/** Writes sessions. Only a sign-in creates a session; no other write restores an ended session. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider';
import type { SessionKey, SessionList } from '../accounts/session-list.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { cookieAttributes } from '../base/cookies.ts';
import { createNetworkCheck } from '../base/network-address.ts';
import { requestOrigin } from '../base/request-state.ts';
import type { Settings } from '../config/settings.ts';
import type { TokenStore } from '../storage/token-store.ts';
import type { SessionTimes } from './session-ages.ts';

const SHARED_IDLE_SECONDS = 900;

export type SessionWrites = ReturnType<typeof createSessionWrites>;

/** Replaces the engine's own writes, which happen at every request that has a session. */
export function createSessionWrites(parts: {
  provider: Provider;
  store: TokenStore;
  clock: Clock;
  settings: Settings;
  sessionList: Pick<SessionList, 'record'>;
  /** False if the session has ended, or its user needs a stronger sign-in (`sign_in.require`). */
  mayAct: (session: SessionModel, ctx: Context) => Promise<boolean>;
}) {
  const { provider, store, clock, settings, sessionList, mayAct } = parts;
  const { idleSeconds, absoluteSeconds, sharedTerminals } = settings.sessions;
  const isShared = createNetworkCheck(sharedTerminals);
  const idleSecondsFor = (ctx: Context): number =>
    isShared(ctx.ip) ? Math.min(idleSeconds, SHARED_IDLE_SECONDS) : idleSeconds;
  const cookieName = provider.cookieName('session');
  const cookieOptions = {
    ...cookieAttributes(settings.issuer),
    signed: true,
    path: '/',
    overwrite: true,
  };

  async function keptFor(session: SessionModel, ctx: Context) {
    const seenAt = epochSeconds(clock);
    const left = absoluteSeconds - (seenAt - (session.loginTs ?? 0));
    const seconds = Math.min(idleSecondsFor(ctx), left);
    const { payload } = await session.getValueAndPayload();
    const { jti: _, exp: __, ...rest } = payload;
    const data: typeof rest & SessionTimes = { ...rest, seenAt };
    // On a shared terminal, the cookie ends when the browser is closed.
    const maxAge = isShared(ctx.ip) ? undefined : left * 1000;
    const nameCookie = (): void => void ctx.cookies.set(cookieName, session.jti, { ...cookieOptions, maxAge });
    return { seconds, kept: [session.jti, session.uid, data, seenAt + seconds] as const, nameCookie };
  }

  /**
   * Stores a session for its idle time from now. Does not set the cookie (except to sign it with a new key), because a
   * late response would then replace the cookie of a newer session.
   *
   * @returns for how many seconds the session is stored; undefined if it has ended, or may not act
   */
  async function prolong(session: SessionModel, ctx: Context): Promise<number | undefined> {
    const { seconds, kept, nameCookie } = await keptFor(session, ctx);
    if (!(await mayAct(session, ctx))) return undefined;
    if (!(await store.replaceSession(...kept))) return undefined;
    // If a former key signed the cookie, the engine signs it again, but as a cookie that ends with the browser. So set
    // the cookie again for its whole lifetime.
    if (namedIn(ctx).some((line) => line.startsWith(`${cookieName}.sig=`))) nameCookie();
    return seconds;
  }

  return {
    prolong,

    /** Stores a session that begins or continues, and sets its cookie. @returns false if the session has ended */
    async begin(session: SessionModel, key: SessionKey, ctx: Context, raised?: 0 | 1): Promise<boolean> {
      const begun = { begunAt: new Date(clock()), origin: requestOrigin(ctx) };
      if (!(await sessionList.record(key, begun, raised))) return false;
      const { kept, nameCookie } = await keptFor(session, ctx);
      await store.writeSession(...kept);
      nameCookie();
      return true;
    },

    /** Returns the idle time in seconds, which is shorter on a shared terminal. */
    idleSecondsFor,

    clearCookie: (ctx: Context): void => void ctx.cookies.set(cookieName, null, cookieOptions),

    /** The engine calls this function at the end of each request that has a session. */
    async saveAfter(session: SessionModel, ctx: KoaContextWithOIDC | undefined): Promise<void> {
      // Remove the session cookie that the engine sets at every request.
      if (ctx) dropCookie(ctx, cookieName);
      // Without an account, no user is signed in and nothing is stored.
      if (ctx && session.accountId !== undefined) await prolong(session, ctx);
      // Delete `exp`, or the engine writes it into the cookie.
      delete session.exp;
      session.touched = false;
    },
  };
}

const namedIn = ({ response }: Pick<Context, 'response'>): string[] =>
  [response.get('set-cookie') as string | string[]].flat().filter(Boolean);

/** Removes the cookie from the response, but not from the browser. */
function dropCookie(ctx: KoaContextWithOIDC, name: string): void {
  const isOther = (line: string) => !line.startsWith(`${name}=`) && !line.startsWith(`${name}.sig=`);
  const others = namedIn(ctx).filter(isOther);
  ctx.response.remove('set-cookie');
  for (const line of others) ctx.response.append('set-cookie', line);
}

/** The engine's session, with members that its types omit. */
export type SessionModel = Omit<InstanceType<Provider['Session']>, 'exp'> & {
  /** Undefined if the session was not read from the store. */
  exp?: number;
  touched: boolean;
  getValueAndPayload(): Promise<{ payload: AdapterPayload }>;
};
