/** Sends a refused authorization request back to its client, in the query and with `error_uri`. */
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { RESPONSE_PARAMETERS } from '../clients/redirect-uri-rules.ts';
import { clientOf } from './engine-clients.ts';
import { errorBody } from './oauth-error.ts';

/** @param payload the error response (RFC 6749 §4.1.2.1) */
export type AnswerRefusal = (ctx: KoaContextWithOIDC, redirectUri: string, payload: object) => Promise<void>;

/** Returns the function that redirects a refused request to its client, with the error always in the query. */
export const answerRefusals =
  (parts: {
    readonly issuer: string;
    readonly showError: (
      ctx: Context,
      error: { code: string; isGone: boolean; app: AskingApp | undefined },
    ) => Promise<void>;
  }): AnswerRefusal =>
  async (ctx, redirectUri, payload) => {
    // The redirect URI may have been removed since the engine checked it at the start.
    if (!ctx.oidc.client?.redirectUriAllowed(redirectUri)) {
      ctx.status = 400;
      return parts.showError(ctx, { code: 'invalid_redirect_uri', isGone: false, app: askingApp(ctx) });
    }
    ctx.status = 303;
    ctx.redirect(refusalUrl(parts.issuer, redirectUri, payload));
  };

/** The client of a refused request, and the host of the sent redirect URI (undefined if not registered). */
export interface AskingApp {
  readonly name: string;
  readonly host: string | undefined;
}

/** Returns the client of an authorization request; undefined if it is unknown. */
export function askingApp({ oidc }: Partial<Pick<KoaContextWithOIDC, 'oidc'>>): AskingApp | undefined {
  if (!oidc?.client) return undefined;
  const uri = String(oidc.params?.redirect_uri);
  // Omit an unregistered host: anyone can name one, and the page must not present it as the app's.
  const url = oidc.client.redirectUriAllowed(uri) ? URL.parse(uri) : undefined;
  return { name: clientOf(oidc.client).name, host: url?.host || undefined };
}

export function refusalUrl(issuer: string, redirectUri: string, payload: object): string {
  const { error, error_description: description, ...others } = payload as Refusal;
  const members = { ...errorBody(issuer, error, description ?? error), ...others };
  return withParameters(redirectUri, Object.entries(members));
}

/** Appends parameters as text, because the redirect URI's query must be retained (RFC 6749 §3.1.2). */
function withParameters(redirectUri: string, parameters: (readonly [string, string])[]): string {
  const before = redirectUri.includes('?') ? redirectUri.replace(/&?$/, '&') : `${redirectUri}?`;
  const text = new URLSearchParams(Object.fromEntries(parameters));
  return `${before.replace('?&', '?')}${text}`;
}

/** Middleware that restores the query of the redirect URI in the response, because the engine encodes it again. */
export async function keepQuery(ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
  await next();
  // The engine has compared this URI with the registered one, character by character.
  const { redirect_uri: asked } = ctx.oidc?.params ?? {};
  if (ctx.status !== 303 || typeof asked !== 'string' || !asked.includes('?')) return;
  const sent = new URL(ctx.response.get('location'), ctx.oidc.issuer);
  const { protocol, host, pathname } = new URL(asked);
  if (sent.protocol !== protocol || sent.host !== host || sent.pathname !== pathname) return;
  const answer = [...sent.searchParams].filter(([name]) => RESPONSE_PARAMETERS.has(name));
  ctx.set('Location', withParameters(asked, answer));
  ctx.body = '';
}

export type ShowHandover = (ctx: Context, app: { readonly name: string; readonly url: string }) => Promise<void>;

/**
 * Middleware around the engine. A browser that is redirected to a private-use scheme (RFC 8252 §7.1) stays on its old
 * page, so it gets a page that opens the app. Other programs get the redirect.
 */
export const handOverToApp = (show: ShowHandover) =>
  async function handOver(ctx: KoaContextWithOIDC, next: () => Promise<void>): Promise<void> {
    await next();
    const url = ctx.response.get('location');
    if (ctx.status !== 303 || !URL.canParse(url) || ctx.get('sec-fetch-mode') !== 'navigate') return;
    if (/^https?:$/.test(new URL(url).protocol)) return;
    ctx.status = 200;
    ctx.remove('Location');
    ctx.set('Refresh', `0; url=${url}`);
    await show(ctx, { name: clientOf(ctx.oidc.client).name, url });
  };

type Refusal = Readonly<Record<string, string>> & {
  readonly error: string;
  readonly error_description?: string;
};
