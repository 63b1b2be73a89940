/** What the token endpoint says is wrong: the true cause to a client that proved who it is. */
import type { KoaContextWithOIDC } from 'oidc-provider';
import { errorBody } from './oauth-error.ts';

/** The engine's causes, in the words of a partner developer. */
const CAUSES: readonly (readonly [engine: RegExp, ours: string])[] = [
  [/^invalid secret provided/, 'client_secret is not one of the live secrets of the client'],
  [
    /authentication mechanism does not match/,
    'a confidential client must send its secret, and a public one has none to send',
  ],
];

/** The members of the engine's errors that are read here. */
interface EngineError extends Error {
  readonly error_description?: string | undefined;
  readonly error_detail?: string | undefined;
}

/** The exact cause, for the client and for the operator's log. Never a code, token or secret. */
export function causeOf(error: EngineError): string {
  const detail = error.error_detail;
  if (detail === undefined) return error.error_description ?? error.message;
  const known = CAUSES.find(([engine]) => engine.test(detail));
  return known ? known[1] : detail;
}

/**
 * Completes the body of a refused token request: `error_uri` always, and the true cause once the
 * client has authenticated with its secret. Before that the engine's generic words stay.
 */
export function describeTokenError(ctx: KoaContextWithOIDC, error: EngineError): void {
  const { client, issuer } = ctx.oidc;
  const code = (ctx.body as { error: string }).error;
  const isAuthenticated =
    client !== undefined && client.clientAuthMethod !== 'none' && code !== 'invalid_client';
  const description = isAuthenticated ? causeOf(error) : error.error_description;
  ctx.body = errorBody(issuer, code, description ?? 'the request was refused');
}
