/** The door between an authorization request that waits and the pages that ask the person. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type InteractionResults } from 'oidc-provider';
import type { Account } from '../accounts/account.ts';
import type { AccountRegistry } from '../accounts/account-registry.ts';
import { type Clock, epochSeconds } from '../base/clock.ts';
import type { Client } from '../clients/client.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type Asked, approvalOf, askedIn } from './approvals.ts';
import {
  type BrowserSessions,
  isAlive,
  loginOf,
  type Method,
  stronger,
} from './browser-sessions.ts';
import { testRedirectUri } from './client-tests.ts';
import { ENDPOINT } from './endpoints.ts';
import { clientOf } from './engine-clients.ts';

/** What an authorization request waits for. */
export type PendingInteraction = PendingSignIn | PendingConsent;

interface Pending {
  readonly uid: string;
  readonly client: Client;
  readonly redirectUri: string;
}

export interface PendingSignIn extends Pending {
  readonly prompt: 'login';
  /** RFC-less but common: the address the client expects to sign in. */
  readonly loginHint?: string;
  /** The client wants them to prove it again, whoever is signed in (`prompt=login`). */
  readonly isAgain: boolean;
}

export interface PendingConsent extends Pending {
  readonly prompt: 'consent';
  /** The owner of the client tries it: nothing is connected by that. */
  readonly isTest: boolean;
  /** Whose session it was begun in. It is this browser's, and still counts. */
  readonly account: Account;
  /** What was approved in vain, because it was so no more. */
  readonly askedBefore?: Asked;
}

/** Nothing waits (any more); `restart` is where the same request begins again, where that is known. */
interface GoneInteraction {
  readonly uid: string;
  readonly prompt: 'gone';
  readonly restart?: string;
}

/** The session it was begun in, or the redirect URI, counts no more: it begins again at `restart`. */
interface OvertakenInteraction {
  readonly uid: string;
  readonly prompt: 'overtaken';
  readonly restart: string;
}

export interface Interactions {
  /** The interaction of this path, if this browser is the one it was started in. */
  find(
    ctx: Context,
    uid: string,
  ): Promise<PendingInteraction | GoneInteraction | OvertakenInteraction>;
  /** Whether there is such an interaction, in whichever browser, that nobody has signed in for. */
  waitsForSignIn(uid: string): Promise<boolean>;
  /** Where the request of an interaction that is over begins again, as long as that is known. */
  restartOf(uid: string): Promise<string | undefined>;
  /**
   * Where the request of an interaction goes on, once somebody signed in for it on another path
   * than its own, and so without its cookie: it begins again in their session, and is over here.
   * Undefined where nothing is known of it any more.
   */
  restartSignedIn(uid: string): Promise<string | undefined>;
  /** Each answers with the address that the browser is sent to next. */
  signIn(ctx: Context, account: Account, method: Method): Promise<string>;
  approve(ctx: Context, asked: Asked): Promise<string>;
  deny(ctx: Context): Promise<string>;
  /** Ends the session and begins the same request again, for somebody else. */
  switchAccount(ctx: Context): Promise<string>;
}

export function createInteractions(parts: {
  provider: Provider;
  store: TokenStore;
  accounts: Pick<AccountRegistry, 'find'>;
  sessions: BrowserSessions;
  clock: Clock;
}): Interactions {
  const { provider, store, accounts, sessions, clock } = parts;
  type Interaction = InstanceType<Provider['Interaction']>;

  /** What this browser is asked, as long as it is. */
  const waiting = (ctx: Context): Promise<Interaction | undefined> =>
    unlessGone(provider.interactionDetails(ctx.req, ctx.res));

  async function answer(ctx: Context, result: InteractionResults): Promise<string> {
    const interaction = await waiting(ctx);
    // Over since the page looked, by another click: the page of the interaction says so.
    if (!interaction) return ctx.path;
    await rememberAnswered(interaction);
    interaction.result = 'error' in result ? result : { ...interaction.lastSubmission, ...result };
    // Or over since it was read here.
    const isAnswered = (await unlessGone(interaction.persist())) !== undefined;
    return isAnswered ? interaction.returnTo : ctx.path;
  }

  /** A second click comes when the first has used the interaction up: it is told where to go on. */
  async function rememberAnswered({ uid, params, exp }: Interaction): Promise<void> {
    await store.write('interaction', answeredId(uid), { restart: restartUrl(params) }, exp ?? 0);
  }

  async function restartOf(uid: string): Promise<string | undefined> {
    const answered = await store.read<{ restart: string }>('interaction', answeredId(uid));
    if (answered) return answered.data.restart;
    // Somebody else signed in in another tab: the request is there but no longer theirs.
    const orphan = await provider.Interaction.find(uid);
    return orphan && restartUrl(orphan.params);
  }

  async function gone(uid: string): Promise<GoneInteraction> {
    const restart = await restartOf(uid);
    return { uid, prompt: 'gone', ...(restart && { restart }) };
  }

  return {
    restartOf,

    async waitsForSignIn(uid) {
      const interaction = uid === '' ? undefined : await provider.Interaction.find(uid);
      return interaction?.prompt.name === 'login' && interaction.result?.login === undefined;
    },

    async restartSignedIn(uid) {
      const interaction = await provider.Interaction.find(uid);
      if (interaction?.prompt.name !== 'login') return restartOf(uid);
      await rememberAnswered(interaction);
      await unlessGone(interaction.destroy());
      return restartUrl(interaction.params, ['login']);
    },

    async find(ctx, uid) {
      const interaction = await waiting(ctx);
      if (interaction?.uid !== uid) return gone(uid);
      const { params } = interaction;
      const client = await provider.Client.find(String(params.client_id));
      if (!client) return { uid, prompt: 'gone' };
      const redirectUri = String(params.redirect_uri);
      const isTest = redirectUri === testRedirectUri(provider.issuer);
      const overtaken = { uid, prompt: 'overtaken', restart: restartUrl(params) } as const;
      // Its owner may have removed it since. The engine looks at the beginning only.
      if (!isTest && !client.redirectUriAllowed(redirectUri)) return overtaken;
      const pending = { uid, client: clientOf(client), redirectUri };
      if (interaction.prompt.name !== 'consent') {
        const { login_hint: loginHint } = params;
        const isAgain = promptsOf(params).includes('login');
        const hint = typeof loginHint === 'string' && { loginHint };
        return { ...pending, prompt: 'login', isAgain, ...hint };
      }
      // The cookie of an interaction proves less than a session: both must be there, and belong
      // together.
      const session = await sessions.current(ctx);
      if (!session || session.uid !== interaction.session?.uid) return gone(uid);
      const account = await accounts.find(session.accountId);
      if (!isAlive(account, session)) return overtaken;
      const before = askedIn(interaction.lastSubmission);
      const askedBefore = before?.accountId === account.id && { askedBefore: before };
      return { ...pending, prompt: 'consent', isTest, account, ...askedBefore };
    },

    async signIn(ctx, account, method) {
      // Of now: another tab may have signed somebody in since this page was drawn.
      const present = await sessions.current(ctx);
      // Signed out from elsewhere, its identifier counts no more: it is replaced as another's is.
      const isOwn =
        present?.accountId === account.id && !account.endedSessions.includes(present.uid);
      const came = isOwn ? present.method : 'password';
      if (came !== 'upstream' && (!present || isOwn)) {
        const login = loginOf(account, stronger(came, method));
        // With its time: the engine takes it up again with every later answer to this request.
        return answer(ctx, { login: { ...login, ts: epochSeconds(clock) } });
      }
      const interaction = await waiting(ctx);
      if (!interaction) return ctx.path;
      // The engine would ask to end the other session first, or forget what may end this one. It has
      // just been answered: begin again as this person, without asking for the sign-in a second time.
      if (isOwn) await sessions.confirm(ctx, account, method);
      else await sessions.signIn(ctx, account, method);
      return restartUrl(interaction.params, ['login']);
    },

    approve: (ctx, asked) => answer(ctx, approvalOf(asked)),

    deny: (ctx) =>
      answer(ctx, { error: 'access_denied', error_description: 'the person refused the request' }),

    async switchAccount(ctx) {
      const interaction = await waiting(ctx);
      if (!interaction) return ctx.path;
      await sessions.signOut(ctx);
      return restartUrl(interaction.params);
    },
  };
}

/** Undefined for an interaction that is not there any more. */
async function unlessGone<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof errors.SessionNotFound) return undefined;
    throw error;
  }
}

const answeredId = (uid: string): string => `${uid}-answered`;

const promptsOf = (params: Record<string, unknown>): string[] =>
  String(params.prompt ?? '')
    .split(' ')
    .filter((prompt) => prompt !== '');

/** The authorization request as it came, without the prompts that were just answered. */
function restartUrl(params: Record<string, unknown>, answeredPrompts: readonly string[] = []) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === 'string' && name !== 'prompt') query.set(name, value);
  }
  const open = promptsOf(params).filter((prompt) => !answeredPrompts.includes(prompt));
  if (open.length > 0) query.set('prompt', open.join(' '));
  return `${ENDPOINT.authorization}?${query}`;
}
