/** How a refused authorization request goes back to its client: in the query, with a page about it. */
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { errorBody } from './oauth-error.ts';

/** @param payload of the answer, RFC 6749 §4.1.2.1. */
export type AnswerRefusal = (
  ctx: KoaContextWithOIDC,
  redirectUri: string,
  payload: object,
) => Promise<void>;

/** Answers in the query, whatever was asked for. */
export const answerRefusals =
  (parts: {
    readonly issuer: string;
    /** Of tests, which is nobody's to remove. */
    readonly testRedirectUri: string;
    readonly showError: (ctx: Context, error: { code: string; isGone: boolean }) => Promise<void>;
  }): AnswerRefusal =>
  async (ctx, redirectUri, payload) => {
    // It may have been removed since the person clicked: the engine looks at the beginning only.
    if (
      redirectUri !== parts.testRedirectUri &&
      !ctx.oidc.client?.redirectUriAllowed(redirectUri)
    ) {
      ctx.status = 400;
      return parts.showError(ctx, { code: 'invalid_redirect_uri', isGone: false });
    }
    ctx.status = 303;
    ctx.redirect(refusalUrl(parts.issuer, redirectUri, payload));
  };

/** Where a client hears of it. */
export function refusalUrl(issuer: string, redirectUri: string, payload: object): string {
  const { error, error_description: description, ...others } = payload as Refusal;
  const uri = new URL(redirectUri);
  const told = { ...errorBody(issuer, error, description ?? error), ...others };
  for (const [name, value] of Object.entries(told)) uri.searchParams.set(name, value);
  return uri.href;
}

type Refusal = Readonly<Record<string, string>> & {
  readonly error: string;
  readonly error_description?: string;
};
