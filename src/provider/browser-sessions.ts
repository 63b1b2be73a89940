/** Browser sessions: the engine stores them, and our own pages use them as well. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Account } from '../accounts/account.ts';
import type { Identity } from '../accounts/identities/identities.ts';
import type { UpstreamSessions } from '../accounts/identities/upstream-sessions.ts';
import type { SignedInBy, UpstreamProof } from '../accounts/sign-in-strength.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { requestState } from '../base/request-state.ts';
import type { Settings } from '../config/settings.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type ActiveSession, findActiveSessions } from './session-ages.ts';
import type { SessionModel, SessionWrites } from './session-writes.ts';

/** Sign-in methods that Gatehouse verifies itself, unlike those of a provider. */
export type Method = 'password' | 'passkey' | 'link';

export interface BrowserSession extends SignedInBy {
  readonly accountId: string;
  /** Seconds since the epoch. */
  readonly signedInAt: number;
  /** When the user last authenticated; 0 if a provider signed them in without stating the time. */
  readonly provedAt: number;
  /** Stays the same during the session, unlike the value of its cookie. */
  readonly uid: string;
  /** The account's generation at the sign-in: the session ends when the account has a later one. */
  readonly generation: number;
}

/** A sign-in at a provider. When the user signs out there, the resulting session ends. */
export interface UpstreamSignIn extends Identity, UpstreamProof {
  /** The id of the session at the provider. */
  readonly sid: string | undefined;
  /** When the user authenticated at the provider, in epoch seconds; undefined if unknown. */
  readonly provedAt: number | undefined;
}

/**
 * True if this session of the account is active: the account is not suspended, its sessions were
 * not ended after this session began, and this session was not signed out from elsewhere. On a node
 * that has not received a change yet, the session's generation may be later than the account's. A
 * session whose generation is not a safe integer is not active.
 */
export const isActive = (
  account: Account | undefined,
  { generation, uid }: Pick<BrowserSession, 'generation' | 'uid'>,
): account is Account =>
  account !== undefined &&
  !account.isSuspended &&
  Number.isSafeInteger(generation) &&
  generation >= account.sessionGeneration &&
  !account.endedSessions.includes(uid);

export interface BrowserSessions {
  /** Returns the request's session: read once, with the changes that the request has made. */
  current(ctx: Context): Promise<BrowserSession | undefined>;
  /** Reads the session again, for responses (streams) that may last longer than the session. */
  lookAgain(ctx: Context): Promise<BrowserSession | undefined>;
  /**
   * Starts a session with a new identifier, and ends the previous session of this browser.
   *
   * @param came how the user signed in; by default with a password
   * @returns false if a sign-out at the provider ended the session immediately
   */
  signIn(ctx: Context, account: Account, came?: UpstreamSignIn | Method): Promise<boolean>;
  /**
   * Replaces the current session, if it still exists, by one with the account's current generation.
   * The time of the sign-in stays the same, because the user did not authenticate again.
   */
  renew(ctx: Context, account: Account): Promise<void>;
  /**
   * Like `renew`, but sets the time: the user has just re-authenticated. Sign-ins with a passkey or
   * at a provider keep their method (a sign-out there still ends the session); others get `method`.
   *
   * @returns true if the user is still signed in
   */
  confirm(ctx: Context, account: Account, method: Method): Promise<boolean>;
  signOut(ctx: Context): Promise<void>;
  /** Returns the idle time in seconds if this browser's session expired; undefined if it had none. */
  whyEnded(ctx: Context): Promise<number | 'ended' | undefined>;
  /**
   * Restarts the idle time.
   *
   * @returns the seconds until the session expires; undefined if there is none
   */
  keepAlive(ctx: Context): Promise<number | undefined>;
  findActive(uids: readonly string[]): Promise<ReadonlyMap<string, ActiveSession>>;
}

export function createBrowserSessions(parts: {
  provider: Provider;
  upstreamSessions: UpstreamSessions;
  store: TokenStore;
  writes: SessionWrites;
  settings: Settings;
  clock: Clock;
}): BrowserSessions {
  const { provider, store, writes, settings, clock, upstreamSessions } = parts;
  const { absoluteSeconds } = settings.sessions;
  const known = requestState<Promise<BrowserSession | undefined>>('current session');
  const find = async (ctx: Context) => {
    const session = (await provider.Session.get(ctx)) as SessionModel;
    return session.accountId ? session : undefined;
  };

  /**
   * Uses a new identifier each time, so that an identifier planted or copied earlier is worthless.
   *
   * @returns false if a sign-out elsewhere ended the session immediately
   */
  async function begin(
    ctx: Context,
    account: Account,
    login: Login,
    noted?: (uid: string) => Promise<boolean>,
  ): Promise<boolean> {
    const session = new provider.Session() as SessionModel;
    session.loginAccount({ ...loginOf(account), loginTs: login.loginTs, amr: login.amr });
    // Record the session before storing it, and check it afterwards, to miss no sign-out elsewhere.
    if (noted && !(await noted(session.uid))) return signedOut(ctx);
    await writes.save(session, ctx);
    if (noted && !(await upstreamSessions.isNoted(session.uid))) {
      await session.destroy();
      return signedOut(ctx);
    }
    known.set(ctx, Promise.resolve(sessionFrom(session)));
    return true;
  }

  async function signedOut(ctx: Context): Promise<false> {
    await signOut(ctx);
    return false;
  }

  /** @returns false if the session has just been ended: it is not restored */
  async function replace(
    ctx: Context,
    account: Account,
    loginAfter: (present: SessionModel) => Login,
  ): Promise<boolean> {
    const present = await find(ctx);
    if (!present || !(await store.remove('session', present.jti))) return false;
    const moved = (uid: string) => upstreamSessions.move(present.uid, uid, absoluteSeconds);
    const isUpstream = present.amr?.[0] === UPSTREAM;
    return begin(ctx, account, loginAfter(present), isUpstream ? moved : undefined);
  }

  async function signOut(ctx: Context): Promise<void> {
    await (await find(ctx))?.destroy();
    writes.clearCookie(ctx);
    known.set(ctx, Promise.resolve(undefined));
  }

  return {
    current(ctx) {
      const session = known.find(ctx) ?? find(ctx).then(sessionFrom);
      known.set(ctx, session);
      return session;
    },

    lookAgain: (ctx) => find(ctx).then(sessionFrom),

    async signIn(ctx, account, came = 'password') {
      await (await find(ctx))?.destroy();
      const loginTs = epochSeconds(clock);
      if (typeof came === 'string') return begin(ctx, account, { loginTs, amr: [came] });
      const { issuer, acr, amr: methods } = came;
      const kept = proofText({ issuer, acr, amr: methods });
      const amr = [UPSTREAM, String(came.provedAt ?? 0), kept];
      return begin(ctx, account, { loginTs, amr }, async (uid) => {
        await upstreamSessions.record(uid, came, absoluteSeconds);
        return true;
      });
    },

    async renew(ctx, account) {
      await replace(ctx, account, ({ loginTs = 0, amr }) => ({ loginTs, amr }));
    },

    confirm: (ctx, account, method) =>
      replace(ctx, account, ({ amr }) => {
        const loginTs = epochSeconds(clock);
        const came = methodIn(amr);
        if (came === UPSTREAM) return { loginTs, amr: confirmed(amr, loginTs, method) };
        return { loginTs, amr: [stronger(came, method)] };
      }),

    signOut,

    findActive: (uids) => findActiveSessions(store, uids, settings.sessions, epochSeconds(clock)),

    async whyEnded(ctx) {
      // The cookie is signed: a made-up one gets no answer.
      if (ctx.cookies.get(provider.cookieName('session'), { signed: true }) === undefined) return undefined;
      return (await find(ctx)) ? 'ended' : writes.idleSecondsFor(ctx);
    },

    async keepAlive(ctx) {
      const session = await find(ctx);
      return session && writes.save(session, ctx);
    },
  };
}

export type StoredSession = Pick<SessionModel, 'accountId' | 'loginTs' | 'amr' | 'acr' | 'uid'>;

/**
 * The first value of the session's `amr`, a field for our own use, like `acr`. The next values are
 * the time of the authentication at the provider and the proof as JSON.
 */
const UPSTREAM = 'upstream';

/** @returns undefined for a session without an account. */
export function sessionFrom(session: StoredSession | undefined): BrowserSession | undefined {
  if (!session?.accountId) return undefined;
  return {
    accountId: session.accountId,
    signedInAt: session.loginTs ?? 0,
    provedAt: session.amr?.[0] === UPSTREAM ? Number(session.amr[1]) : (session.loginTs ?? 0),
    ...signedInBy(session.amr),
    uid: session.uid,
    generation: Number(session.acr),
  };
}

/** When the user signed in, in seconds, and with which methods (RFC 8176). */
interface Login {
  readonly loginTs: number;
  readonly amr?: string[] | undefined;
}

type KeptProof = UpstreamProof & { readonly hasUsedPasskey?: boolean };

const proofText = (proof: KeptProof): string => JSON.stringify(proof);

/** @param amr of a session of the engine. */
function signedInBy(amr: readonly string[] | undefined): SignedInBy {
  const method = methodIn(amr);
  const kept = method === UPSTREAM ? amr?.[2] : undefined;
  if (kept === undefined) return { method };
  const { hasUsedPasskey = false, ...proof } = JSON.parse(kept) as KeptProof;
  return { method, proof, hasUsedPasskey };
}

/** Returns the new `amr` of a provider's session whose user has just re-authenticated here. */
function confirmed(amr: readonly string[] | undefined, loginTs: number, method: Method): string[] {
  const { proof, hasUsedPasskey = false } = signedInBy(amr);
  const times = [UPSTREAM, String(loginTs)];
  if (!proof) return times;
  const usesPasskey = hasUsedPasskey || method === 'passkey';
  return times.concat(proofText({ ...proof, hasUsedPasskey: usesPasskey }));
}

/** Returns the stronger of the two methods with which the user has authenticated. */
export const stronger = (came: Method, again: Method): Method => (came === 'passkey' ? came : again);

/** Sessions of versions that stored no method began with a password. */
const methodIn = (amr: readonly string[] | undefined): SignedInBy['method'] =>
  (amr?.[0] ?? 'password') as SignedInBy['method'];

/**
 * A sign-in as the engine stores it in a session. The fields `acr` and `amr` hold the generation
 * and the method: both are free, because no ID tokens are issued that would contain them.
 */
export const loginOf = (account: Account, method: Method = 'password') => ({
  accountId: account.id,
  acr: String(account.sessionGeneration),
  amr: [method],
});
