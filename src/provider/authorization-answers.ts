/** How a refused authorization request goes back to its client: in the query, with a page about it. */
import type { Context } from 'koa';
import { errorBody } from './oauth-error.ts';

/** Answers in the query, whatever was asked for. */
export function answerRefusal(
  issuer: string,
  { ctx, redirectUri, payload }: { ctx: Context; redirectUri: string; payload: object },
): void {
  const { error, error_description: description, ...others } = payload as Refusal;
  const uri = new URL(redirectUri);
  const told = { ...errorBody(issuer, error, description ?? error), ...others };
  for (const [name, value] of Object.entries(told)) uri.searchParams.set(name, value);
  ctx.status = 303;
  ctx.redirect(uri.href);
}

type Refusal = Readonly<Record<string, string>> & {
  readonly error: string;
  readonly error_description?: string;
};
