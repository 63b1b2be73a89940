/** Browser sessions: the engine stores them, and our own pages use them as well. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Account } from '../accounts/account.ts';
import type { ProviderSession } from '../accounts/session-list.ts';
import { type Proof, proofsFrom, type UpstreamProof, withProof } from '../accounts/sign-in-strength.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { requestState } from '../base/request-state.ts';
import type { Settings } from '../config/settings.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type ActiveSession, findActiveSessions } from './session-ages.ts';
import type { SessionModel, SessionWrites } from './session-writes.ts';

/** Sign-in methods that Gatehouse verifies itself, unlike those of a provider. */
export type Method = 'password' | 'passkey' | 'link';

export interface BrowserSession {
  readonly accountId: string;
  /** When the user signed in or confirmed that, in epoch seconds. */
  readonly signedInAt: number;
  /** How the user has authenticated, the latest proof last; never empty. */
  readonly proofs: readonly Proof[];
  /** Stays the same during the session, unlike the value of its cookie. */
  readonly uid: string;
  /** The account's generation at the sign-in: the session ends when the account has a later one. */
  readonly generation: number;
}

/** A sign-in at a provider. When the user signs out there, the resulting session ends. */
export interface UpstreamSignIn extends ProviderSession, UpstreamProof {
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

export type BrowserSessions = ReturnType<typeof createBrowserSessions>;

export function createBrowserSessions(parts: {
  provider: Provider;
  store: TokenStore;
  writes: SessionWrites;
  settings: Settings;
  clock: Clock;
}) {
  const { provider, store, writes, settings, clock } = parts;
  const known = requestState<Promise<BrowserSession | undefined>>('current session');
  /** The session that this request has stored: its cookie is not that of the request. */
  const stored = requestState<SessionModel>('stored session');
  const find = async (ctx: Context) => {
    const session = (await provider.Session.get(ctx)) as SessionModel;
    return session.accountId ? session : undefined;
  };

  const latest = async (ctx: Context) => stored.find(ctx) ?? find(ctx);

  /** Uses a new identifier each time, so that an identifier planted or copied earlier is worthless. */
  async function begin(ctx: Context, login: Omit<BrowserSession, 'uid'>, { uid, from }: Began): Promise<void> {
    const session = new provider.Session() as SessionModel;
    if (uid !== undefined) session.uid = uid;
    session.loginAccount({ ...loginOf(login), loginTs: login.signedInAt });
    await writes.save(session, ctx, from);
    stored.set(ctx, session);
    known.set(ctx, Promise.resolve(sessionFrom(session)));
  }

  /**
   * Keeps the uid, so that whatever ends the session, here or at a provider, also ends its continuation.
   *
   * @returns false if the session has just been ended: it is not restored
   */
  async function replace(
    ctx: Context,
    account: Account,
    changeOf: (present: BrowserSession) => Partial<BrowserSession> & Began = () => ({}),
  ): Promise<boolean> {
    const session = await latest(ctx);
    const present = sessionFrom(session);
    if (present?.accountId !== account.id || account.endedSessions.includes(present.uid)) return false;
    if (!session || !(await store.remove('session', session.jti))) return false;
    const { from, ...change } = changeOf(present);
    // On a node that has not received a change yet, the account has an earlier generation than the session.
    const generation = Math.max(present.generation, account.sessionGeneration);
    await begin(ctx, { ...present, generation, ...change }, { uid: present.uid, from });
    return true;
  }

  async function signOut(ctx: Context): Promise<void> {
    await (await latest(ctx))?.destroy();
    writes.clearCookie(ctx);
    stored.set(ctx, undefined);
    known.set(ctx, Promise.resolve(undefined));
  }

  return {
    /** Returns the request's session: read once, with the changes that the request has made. */
    current(ctx: Context): Promise<BrowserSession | undefined> {
      const session = known.find(ctx) ?? find(ctx).then(sessionFrom);
      known.set(ctx, session);
      return session;
    },

    /** Reads the session again, for responses (streams) that may last longer than the session. */
    lookAgain: (ctx: Context) => find(ctx).then(sessionFrom),

    /** Starts a session with a new identifier, and ends the previous session of this browser. */
    async signIn(ctx: Context, account: Account, came: UpstreamSignIn | Method): Promise<void> {
      await (await latest(ctx))?.destroy();
      const signedInAt = epochSeconds(clock);
      const { id: accountId, sessionGeneration: generation } = account;
      const login = { accountId, generation, signedInAt, proofs: [proofOf(came, signedInAt)] };
      return begin(ctx, login, { from: fromOf(came) });
    },

    /**
     * Replaces the current session, if it still exists, by one with the account's current generation.
     * The time of the sign-in stays the same, because the user did not authenticate again.
     */
    async renew(ctx: Context, account: Account): Promise<void> {
      await replace(ctx, account);
    },

    /**
     * Like `renew`, but adds a proof and sets the time: the user has just re-authenticated. A sign-out at
     * a provider that proved the session before still ends it.
     *
     * @returns true if the user is still signed in
     */
    confirm: (ctx: Context, account: Account, came: UpstreamSignIn | Method): Promise<boolean> =>
      replace(ctx, account, ({ proofs }) => {
        const signedInAt = epochSeconds(clock);
        return { signedInAt, proofs: withProof(proofs, proofOf(came, signedInAt)), from: fromOf(came) };
      }),

    signOut,

    findActive: (uids: readonly string[]): Promise<ReadonlyMap<string, ActiveSession>> =>
      findActiveSessions(store, uids, settings.sessions, epochSeconds(clock)),

    /** Returns the idle time in seconds if this browser's session expired; undefined if it had none. */
    async whyEnded(ctx: Context): Promise<number | 'ended' | undefined> {
      // The cookie is signed: a made-up one gets no answer.
      if (ctx.cookies.get(provider.cookieName('session'), { signed: true }) === undefined) return undefined;
      return (await find(ctx)) ? 'ended' : writes.idleSecondsFor(ctx);
    },

    /** Restarts the idle time. @returns the seconds until the session expires; undefined if there is none */
    async keepAlive(ctx: Context): Promise<number | undefined> {
      const session = await find(ctx);
      return session && writes.save(session, ctx);
    },
  };
}

export type StoredSession = Pick<SessionModel, 'accountId' | 'loginTs' | 'amr' | 'acr' | 'uid'>;

/** @returns undefined for a session without an account, or whose proofs are unreadable. */
export function sessionFrom(session: StoredSession | undefined): BrowserSession | undefined {
  const proofs = proofsFrom(session?.amr);
  if (!session?.accountId || !proofs) return undefined;
  return {
    accountId: session.accountId,
    signedInAt: session.loginTs ?? 0,
    proofs,
    uid: session.uid,
    generation: Number(session.acr),
  };
}

interface Began {
  /** The uid of the session that continues; absent for a new session. */
  readonly uid?: string;
  /** The session at the provider where the user has just authenticated. */
  readonly from?: ProviderSession | undefined;
}

const fromOf = (came: UpstreamSignIn | Method) => (typeof came === 'string' ? undefined : came);

/** @param now epoch seconds. */
export function proofOf(came: UpstreamSignIn | Method, now: number): Proof {
  if (typeof came === 'string') return { by: came, at: now };
  const { issuer, acr, amr, provedAt = 0 } = came;
  return { by: 'provider', at: provedAt, issuer, acr, amr };
}

/**
 * A sign-in as the engine stores it in a session. The fields `acr` and `amr` hold the generation
 * and the proofs: both are free, because no ID tokens are issued that would contain them.
 */
export const loginOf = ({ accountId, generation, proofs }: Omit<BrowserSession, 'uid' | 'signedInAt'>) => ({
  accountId,
  acr: String(generation),
  amr: proofs.map((proof) => JSON.stringify(proof)),
});
