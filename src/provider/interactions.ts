/** Connects a pending authorization request with the pages that ask the user. */
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import { errors, type InteractionResults } from 'oidc-provider';
import type { Account } from '../accounts/account.ts';
import type { AttemptLimit } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import type { Client } from '../clients/client.ts';
import type { TokenStore } from '../storage/token-store.ts';
import { type Asked, approvalOf, askedIn } from './approvals.ts';
import type { BrowserSessions, Method } from './browser-sessions.ts';
import { ENDPOINT } from './endpoints.ts';
import { clientOf } from './engine-clients.ts';

/** An authorization request that waits for a sign-in or for consent. */
export type PendingInteraction = PendingSignIn | PendingConsent;

interface Pending {
  readonly uid: string;
  readonly client: Client;
  readonly redirectUri: string;
  /** A language of our pages, which the client requested (`ui_locales`). */
  readonly language?: string;
}

export interface PendingSignIn extends Pending {
  readonly prompt: 'login';
  /** The address with which the client expects the user to sign in (`login_hint`, in no OAuth RFC but common). */
  readonly loginHint?: string;
  /** True if even a signed-in user must sign in again (`prompt=login`). */
  readonly isAgain: boolean;
}

export interface PendingConsent extends Pending {
  readonly prompt: 'consent';
  /** The account in whose session the interaction was started. This browser still has the same session. */
  readonly account: Account;
  /** An approval that was refused because the client had changed since the consent page was shown. */
  readonly askedBefore?: Asked;
}

/** The interaction has ended or is unknown. `restart` starts the same request again, if that request is known. */
interface GoneInteraction {
  readonly prompt: 'gone';
  readonly restart?: string;
}

/** The session or redirect URI of the interaction is no longer valid. `restart` starts the request again. */
interface OvertakenInteraction {
  readonly prompt: 'overtaken';
  readonly restart: string;
}

/** Returns the URL that repeats the request of a finished interaction; undefined if the request is no longer stored. */
export async function restartOf(provider: Provider, store: TokenStore, uid: string) {
  const answered = await store.read<{ restart: string }>('interaction', answeredId(uid));
  if (answered) return answered.data.restart;
  // After the sign-in of a second user in another tab, the interaction still exists, but belongs to the first user.
  const orphan = await provider.Interaction.find(uid);
  return orphan && restartUrl(orphan.params);
}

export type Interactions = ReturnType<typeof createInteractions>;

export function createInteractions(parts: {
  provider: Provider;
  store: TokenStore;
  sessions: BrowserSessions;
  limit: Pick<AttemptLimit, 'refund'>;
}) {
  const { provider, store, sessions, limit } = parts;
  type Interaction = InstanceType<Provider['Interaction']>;

  const waiting = (ctx: Context): Promise<Interaction | undefined> =>
    unlessGone(provider.interactionDetails(ctx.req, ctx.res));

  async function answer(ctx: Context, result: InteractionResults): Promise<string> {
    const interaction = await waiting(ctx);
    // Another click has finished the interaction since the check; the page of the interaction informs the user.
    if (!interaction) return ctx.path;
    await rememberAnswered(interaction);
    interaction.result = 'error' in result ? result : { ...interaction.lastSubmission, ...result };
    // Another click may also have finished the interaction since `waiting` read it.
    const isAnswered = (await unlessGone(interaction.persist())) !== undefined;
    return isAnswered ? interaction.returnTo : ctx.path;
  }

  /** Stores where a second click leads after the first click has consumed the interaction. */
  async function rememberAnswered({ uid, params, exp }: Interaction): Promise<void> {
    await store.write('interaction', answeredId(uid), { restart: restartUrl(params) }, exp ?? 0);
  }

  /** Ends an interaction that waits for a sign-in. @returns false if another request has ended it */
  async function end(ctx: Context, interaction: Interaction): Promise<boolean> {
    await rememberAnswered(interaction);
    const isEnded = await unlessGone(interaction.destroy().then(() => true));
    if (!isEnded) return false;
    if (interaction.session?.accountId === undefined) await limit.refund(networkOf(ctx.ip));
    return true;
  }

  async function gone(uid: string): Promise<GoneInteraction> {
    const restart = await restartOf(provider, store, uid);
    return { prompt: 'gone', ...(restart && { restart }) };
  }

  return {
    async waitsForSignIn(uid: string): Promise<boolean> {
      const interaction = uid === '' ? undefined : await provider.Interaction.find(uid);
      return interaction?.prompt.name === 'login';
    },

    /**
     * Ends an interaction after its user has signed in on another path, which does not receive the interaction's
     * cookie. Returns the URL that starts its request again in the new session; undefined if the request is no longer
     * known.
     */
    async restartSignedIn(ctx: Context, uid: string): Promise<string | undefined> {
      const interaction = await provider.Interaction.find(uid);
      if (interaction?.prompt.name !== 'login') return restartOf(provider, store, uid);
      await end(ctx, interaction);
      return restartUrl(interaction.params, 'login');
    },

    /** Returns the interaction in the request's path, if it was started in this browser. */
    async find(ctx: Context, uid: string): Promise<PendingInteraction | GoneInteraction | OvertakenInteraction> {
      const interaction = await waiting(ctx);
      if (interaction?.uid !== uid) return gone(uid);
      const { params } = interaction;
      const client = await provider.Client.find(String(params.client_id));
      if (!client) return { prompt: 'gone' };
      const redirectUri = String(params.redirect_uri);
      const overtaken = { prompt: 'overtaken', restart: restartUrl(params) } as const;
      // The redirect URI may have been removed since the engine checked it at the start.
      if (!client.redirectUriAllowed(redirectUri)) return overtaken;
      const language = typeof params.ui_locales === 'string' && { language: params.ui_locales };
      const pending = { uid, client: clientOf(client), redirectUri, ...language };
      if (interaction.prompt.name !== 'consent') {
        const { login_hint: loginHint } = params;
        const isAgain = promptsOf(params).includes('login');
        const hint = typeof loginHint === 'string' && { loginHint };
        return { ...pending, prompt: 'login', isAgain, ...hint };
      }
      // Also require a matching session: the cookie of an interaction is not enough.
      const session = await sessions.current(ctx);
      const began = interaction.session?.uid;
      if (!session) return (await sessions.isEnded(ctx, began)) ? overtaken : gone(uid);
      if (session.uid !== began) return gone(uid);
      const { account } = session;
      const before = askedIn(interaction.lastSubmission);
      const askedBefore = before?.accountId === account.id && { askedBefore: before };
      return { ...pending, prompt: 'consent', account, ...askedBefore };
    },

    /**
     * Signs the user in, and restarts the authorization request without its prompt for a sign-in. Like `approve`,
     * `deny` and `switchAccount`, returns the URL to redirect to, or `ctx.path` if nothing was done.
     */
    async signIn(ctx: Context, account: Account, method: Method): Promise<string> {
      const interaction = await waiting(ctx);
      // If the form was sent several times, only one of these requests signs in.
      if (!interaction || !(await end(ctx, interaction))) return ctx.path;
      const present = await sessions.current(ctx);
      const isConfirmed = present?.accountId === account.id && (await sessions.confirm(ctx, account, method));
      if (!isConfirmed) await sessions.signIn(ctx, account, method);
      return restartUrl(interaction.params, 'login');
    },

    approve: (ctx: Context, asked: Asked) => answer(ctx, approvalOf(asked)),

    deny: (ctx: Context) =>
      answer(ctx, { error: 'access_denied', error_description: 'the person refused the request' }),

    async switchAccount(ctx: Context): Promise<string> {
      const interaction = await waiting(ctx);
      if (!interaction) return ctx.path;
      await sessions.signOut(ctx);
      return restartUrl(interaction.params);
    },
  };
}

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

/** Returns the URL of the original authorization request, without the prompt that the user has answered. */
function restartUrl(params: Record<string, unknown>, answered?: 'login') {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (typeof value === 'string' && name !== 'prompt') query.set(name, value);
  }
  const open = promptsOf(params).filter((prompt) => prompt !== answered);
  if (open.length > 0) query.set('prompt', open.join(' '));
  return `${ENDPOINT.authorization}?${query}`;
}
