/** Whom a request of the engine was about, for its log line: what was found, never what was sent. */
import type { Context, Middleware } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';

/** The engine's middleware, which leaves the ids of client, authorization and account in `ctx.state`. */
export function namingParties(engine: Middleware): Middleware {
  return async function engineNamingParties(ctx, next) {
    try {
      await engine(ctx, next);
    } finally {
      nameParties(ctx);
    }
  };
}

function nameParties(ctx: Context & Partial<Pick<KoaContextWithOIDC, 'oidc'>>): void {
  if (!ctx.oidc) return;
  const { client, session, entities } = ctx.oidc;
  const { Grant } = entities;
  const accountId = Grant?.accountId ?? session?.accountId;
  if (client) ctx.state.clientId = client.clientId;
  if (Grant) ctx.state.authorizationId = Grant.jti;
  if (accountId !== undefined) ctx.state.accountId = accountId;
}
