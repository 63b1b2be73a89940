/** Browser sessions, which the engine stores and our own pages use as well. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Account } from '../accounts/account.ts';
import type { SessionKey, SessionList } from '../accounts/session-list.ts';
import { type Proof, proofsFrom, type UpstreamProof, withProof } from '../accounts/sign-in-strength.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import { sha256 } from '../base/random-id.ts';
import { requestState } from '../base/request-state.ts';
import type { Settings } from '../config/settings.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type ActiveSession, findActiveSessions } from './session-ages.ts';
import type { SessionModel, SessionWrites } from './session-writes.ts';

/** Sign-in methods that Gatehouse verifies itself, unlike those of a provider. */
export type Method = 'password' | 'passkey' | 'link';

/** A stored session, which may have ended. */
export interface BrowserSession extends SessionKey {
  /** When the user signed in or last re-authenticated, in epoch seconds. */
  readonly signedInAt: number;
  /** How the user has authenticated, sorted by time; at least one proof. */
  readonly proofs: readonly Proof[];
}

/** A session that has not ended and whose account is not suspended. */
export interface ActiveBrowserSession extends BrowserSession {
  readonly account: Account;
}

export interface UpstreamSignIn extends UpstreamProof {
  /** When the user authenticated at the provider, in epoch seconds; undefined if unknown. */
  readonly provedAt: number | undefined;
}

export type BrowserSessions = ReturnType<typeof createBrowserSessions>;

export function createBrowserSessions(parts: {
  provider: Provider;
  store: TokenStore;
  writes: SessionWrites;
  sessionList: Pick<SessionList, 'accountOf' | 'signOut'>;
  settings: Settings;
  clock: Clock;
}) {
  const { provider, store, writes, sessionList, settings, clock } = parts;
  const known = requestState<Promise<ActiveBrowserSession | undefined>>('current session');
  /** The session that this request has stored. Its new cookie value is in the response, not in the request's cookie. */
  const stored = requestState<SessionModel>('stored session');
  const found = requestState<Promise<SessionModel | undefined>>('found session');
  async function read(ctx: Context): Promise<SessionModel | undefined> {
    const session = (await provider.Session.get(ctx)) as SessionModel;
    return session.accountId ? session : undefined;
  }
  function find(ctx: Context): Promise<SessionModel | undefined> {
    const session = found.find(ctx) ?? read(ctx);
    found.set(ctx, session);
    return session;
  }

  const latest = async (ctx: Context) => stored.find(ctx) ?? find(ctx);

  async function activeFrom(session: StoredSession | undefined): Promise<ActiveBrowserSession | undefined> {
    const present = sessionFrom(session);
    const account = present && (await sessionList.accountOf(present));
    return account && { ...present, account };
  }

  /** Uses a new cookie value, because an attacker may know the old one. @returns false if the session has just ended */
  async function begin(ctx: Context, account: Account, login: Login, { uid, raised }: Began = {}): Promise<boolean> {
    const session = new provider.Session() as SessionModel;
    if (uid !== undefined) session.uid = uid;
    session.loginAccount({ ...loginOf(account.id, login), loginTs: login.signedInAt });
    const begun = sessionFrom(session);
    if (!begun || !(await writes.begin(session, begun, ctx, raised))) return false;
    stored.set(ctx, session);
    known.set(ctx, Promise.resolve({ ...begun, account }));
    return true;
  }

  /** Replaces only the cookie value: the uid stays, so whatever ends the former session also ends the new one. */
  async function replace(
    ctx: Context,
    account: Account,
    changeOf: (present: BrowserSession) => Partial<Login> & Omit<Began, 'uid'>,
  ): Promise<boolean> {
    const session = await latest(ctx);
    const present = sessionFrom(session);
    if (!session || present?.accountId !== account.id) return false;
    if (!(await store.remove('session', session.jti))) return false;
    const { raised, ...change } = changeOf(present);
    // Another request may have ended all sessions and renewed this one since this request read the account.
    const generation = Math.max(present.generation, account.sessionGeneration);
    return begin(ctx, account, { ...present, generation, ...change }, { uid: present.uid, raised });
  }

  /** Ends the session in the database first: if the process stops afterwards, the stored session is already invalid. */
  async function end(session: SessionModel | undefined): Promise<void> {
    if (!session) return;
    try {
      await sessionList.signOut(session.uid);
    } finally {
      // Destroy the session even if PostgreSQL is unavailable: the user may leave a shared computer without retrying.
      await session.destroy();
    }
  }

  async function signOut(ctx: Context): Promise<void> {
    try {
      await end(await latest(ctx));
    } finally {
      writes.clearCookie(ctx);
      stored.set(ctx, undefined);
      for (const one of [found, known]) one.set(ctx, Promise.resolve(undefined));
    }
  }

  return {
    /** Reads the session once per request, unless the request changes it. @param given the engine's session */
    current(ctx: Context, given?: StoredSession): Promise<ActiveBrowserSession | undefined> {
      const session = known.find(ctx) ?? (given ? activeFrom(given) : find(ctx).then(activeFrom));
      known.set(ctx, session);
      return session;
    },

    /** Starts a session; ends the browser's former one. @returns false if all the user's sessions ended meanwhile */
    async signIn(ctx: Context, account: Account, came: UpstreamSignIn | Method): Promise<boolean> {
      await end(await latest(ctx));
      const signedInAt = epochSeconds(clock);
      const { sessionGeneration: generation } = account;
      const login = { generation, signedInAt, proofs: [proofOf(came, signedInAt)] };
      return begin(ctx, account, login);
    },

    /**
     * Replaces the current session, if it still exists. All other sessions end, because this request has raised the
     * account's session generation. Keeps the time of the sign-in: the user did not authenticate again.
     */
    async renew(ctx: Context, account: Account): Promise<void> {
      await replace(ctx, account, () => ({ raised: 1 }));
    },

    /** Like `renew`, but records that the user has just re-authenticated. @returns false if the session has ended */
    confirm: (ctx: Context, account: Account, came: UpstreamSignIn | Method, raised: 0 | 1 = 0): Promise<boolean> =>
      replace(ctx, account, ({ proofs }) => {
        const signedInAt = epochSeconds(clock);
        return { signedInAt, proofs: withProof(proofs, proofOf(came, signedInAt)), raised };
      }),

    signOut,

    findActive: (uids: readonly string[]): Promise<ReadonlyMap<string, ActiveSession>> =>
      findActiveSessions(store, uids, settings.sessions, epochSeconds(clock)),

    /** For a browser with no current session: true if the token store still has the browser's session with this uid. */
    isEnded: async (ctx: Context, uid: string | undefined): Promise<boolean> =>
      uid !== undefined && (await find(ctx))?.uid === uid,

    /** Returns 'ended', or the idle time in seconds if the session expired; undefined if the browser had no session. */
    async whyEnded(ctx: Context): Promise<number | 'ended' | undefined> {
      // Check the signature, so that a request with a forged cookie learns nothing.
      if (ctx.cookies.get(provider.cookieName('session'), { signed: true }) === undefined) return undefined;
      return (await find(ctx)) ? 'ended' : writes.idleSecondsFor(ctx);
    },

    /** Restarts the idle time. @returns the seconds until the session expires; undefined without a session */
    async keepAlive(ctx: Context): Promise<number | undefined> {
      const session = await find(ctx);
      return session && writes.prolong(session, ctx);
    },
  };
}

export type StoredSession = Pick<SessionModel, 'accountId' | 'loginTs' | 'amr' | 'acr' | 'uid' | 'jti'>;

/** @returns undefined if the session is unreadable or has no account */
export function sessionFrom(session: StoredSession | undefined): BrowserSession | undefined {
  const proofs = proofsFrom(session?.amr);
  const generation = Number(session?.acr);
  if (!session?.accountId || !proofs || !Number.isSafeInteger(generation)) return undefined;
  return {
    accountId: session.accountId,
    uid: session.uid,
    cookieHash: sha256(session.jti),
    generation,
    signedInAt: session.loginTs ?? 0,
    proofs,
  };
}

type Login = Pick<BrowserSession, 'generation' | 'signedInAt' | 'proofs'>;

interface Began {
  /** The uid of the session that continues; absent for a new session. */
  readonly uid?: string;
  /** By how much this request has raised the account's session generation. */
  readonly raised?: 0 | 1 | undefined;
}

export function proofOf(came: UpstreamSignIn | Method, now: number): Proof {
  if (typeof came === 'string') return { by: came, at: now };
  const { issuer, acr, amr, provedAt = 0 } = came;
  return { by: 'provider', at: provedAt, issuer, acr, amr };
}

/** Stores the generation and the proofs in `acr` and `amr`, which are free, because no ID tokens are issued. */
const loginOf = (accountId: string, { generation, proofs }: Login) => ({
  accountId,
  acr: String(generation),
  amr: proofs.map((proof) => JSON.stringify(proof)),
});
