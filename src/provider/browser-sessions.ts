/** Who is signed in in this browser: the engine's session, for our own pages as well. */
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

/** How somebody signs in with what is kept here. */
export type Method = 'password' | 'passkey' | 'link';

export interface BrowserSession extends SignedInBy {
  readonly accountId: string;
  /** Seconds since the epoch. */
  readonly signedInAt: number;
  /** When the person last proved who they are; 0 where another service let them in and does not say. */
  readonly provedAt: number;
  /** Stays the same while the session lives; its cookie value changes. */
  readonly uid: string;
  /** The account's when it was begun: the session is over when the account has a later one. */
  readonly generation: number;
}

/** A sign-in that was made elsewhere: a sign-out there ends the session that comes of it. */
export interface UpstreamSignIn extends Identity, UpstreamProof {
  /** Of the session there. */
  readonly sid: string | undefined;
  /** Seconds since the epoch at which they proved there who they are, as far as it says. */
  readonly provedAt: number | undefined;
}

/**
 * Whether a session of this account still counts: neither was the account suspended, nor were its
 * sessions ended since, or this one signed out from elsewhere. A node that has not heard of that yet
 * may know an earlier generation than the session's. A session without a number for it compares as
 * false, and does not count.
 */
export const isAlive = (
  account: Account | undefined,
  { generation, uid }: Pick<BrowserSession, 'generation' | 'uid'>,
): account is Account =>
  account !== undefined &&
  !account.isSuspended &&
  generation >= account.sessionGeneration &&
  !account.endedSessions.includes(uid);

export interface BrowserSessions {
  /** As the request found it, read once, or as the request left it. */
  current(ctx: Context): Promise<BrowserSession | undefined>;
  /** As the store has it now, for an answer that takes longer than its session may. */
  lookAgain(ctx: Context): Promise<BrowserSession | undefined>;
  /**
   * Begins a session with an identifier of its own; one that was there before ends.
   *
   * @param came how they came in; without it, with a password.
   */
  signIn(ctx: Context, account: Account, came?: UpstreamSignIn | Method): Promise<void>;
  /**
   * Begins a session in place of the present one, if it still is, for the account's present
   * generation. The sign-in is as old as before: no password was given.
   */
  renew(ctx: Context, account: Account): Promise<void>;
  /**
   * As `renew`, for who has just proved again who they are. How they came in stays, a passkey or
   * a provider with what may end the session there; all else gives way to how they proved it now.
   *
   * @returns whether they are signed in still.
   */
  confirm(ctx: Context, account: Account, method: Method): Promise<boolean>;
  signOut(ctx: Context): Promise<void>;
  /**
   * Counts the idle time from now.
   *
   * @returns the seconds until the session ends by itself, or undefined when there is none.
   */
  keepAlive(ctx: Context): Promise<number | undefined>;
  /** Which of these sessions the token store still has, by their uid. */
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
   * A new identifier each time: one that was planted or copied before is worth nothing.
   *
   * @returns false where it ended at once, by a sign-out elsewhere.
   */
  async function begin(
    ctx: Context,
    account: Account,
    login: { readonly loginTs: number; readonly amr?: string[] | undefined },
    noted?: (uid: string) => Promise<boolean>,
  ): Promise<boolean> {
    const session = new provider.Session() as SessionModel;
    session.loginAccount({ ...loginOf(account), loginTs: login.loginTs, amr: login.amr });
    // Before it is kept and after: a sign-out elsewhere, whenever it comes, finds the one or the other.
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

  /** @returns whether there is one now: signed out meanwhile, it stays so. */
  async function replace(
    ctx: Context,
    account: Account,
    loginAfter: (present: SessionModel) => Parameters<typeof begin>[2],
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
      if (typeof came === 'string') {
        await begin(ctx, account, { loginTs, amr: [came] });
        return;
      }
      const { issuer, acr, amr: methods } = came;
      const kept = proofText({ issuer, acr, amr: methods });
      const amr = [UPSTREAM, String(came.provedAt ?? 0), kept];
      await begin(ctx, account, { loginTs, amr }, async (uid) => {
        await upstreamSessions.note(uid, came, absoluteSeconds);
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

    async keepAlive(ctx) {
      const session = await find(ctx);
      return session && writes.save(session, ctx);
    },
  };
}

export type StoredSession = Pick<SessionModel, 'accountId' | 'loginTs' | 'amr' | 'acr' | 'uid'>;

/**
 * The first of `amr`, which is free for us as `acr` is. The time of the proof at the provider comes
 * after it, then the proof as JSON, which sessions of older versions do not have.
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

/** The `amr` of a session from a provider, whose person has just proved here that it is them. */
function confirmed(amr: readonly string[] | undefined, loginTs: number, method: Method): string[] {
  const { proof, hasUsedPasskey = false } = signedInBy(amr);
  const times = [UPSTREAM, String(loginTs)];
  if (!proof) return times;
  const usesPasskey = hasUsedPasskey || method === 'passkey';
  return times.concat(proofText({ ...proof, hasUsedPasskey: usesPasskey }));
}

/** How somebody came in who did so by both. */
export const stronger = (came: Method, again: Method): Method =>
  came === 'passkey' ? came : again;

/** Of a session of before it was kept, a password. */
const methodIn = (amr: readonly string[] | undefined): SignedInBy['method'] =>
  (amr?.[0] ?? 'password') as SignedInBy['method'];

/**
 * A sign-in as the engine keeps it in a session. Of its fields `acr` and `amr` are free for us, where
 * the generation and the method go: no ID token exists that would show them.
 */
export const loginOf = (account: Account, method: Method = 'password') => ({
  accountId: account.id,
  acr: String(account.sessionGeneration),
  amr: [method],
});
