/** What the token endpoint says is wrong: the true cause to a client that proved who it is. */
import type { KoaContextWithOIDC } from 'oidc-provider';
import { CONTENT_TYPE } from './form.ts';
import { errorBody } from './oauth-error.ts';

/** The engine's causes, in the words of a partner developer. */
const CAUSES: readonly (readonly [engine: RegExp, ours: string])[] = [
  [/^invalid secret provided/, 'client_secret is not one of the live secrets of the client'],
  [
    /authentication mechanism does not match/,
    'a confidential client must send its secret, and a public one has none to send',
  ],
];

/** The engine misses what it could not read, and knows no client that is not even named. */
function correct(ctx: KoaContextWithOIDC, error: EngineError): void {
  if (!ctx.get('content-type')) {
    error.error_description = `the body must be ${CONTENT_TYPE}, and Content-Type must say so`;
  } else if (error.error_description === 'no client authentication mechanism provided') {
    // RFC 6749 §5.2; RFC 9110 §15.5.2: a 401 says how to authenticate.
    error.message = 'invalid_client';
    error.error_description = 'the request names no client';
    ctx.status = 401;
    ctx.set('WWW-Authenticate', `Basic realm="${ctx.oidc.issuer}"`);
  }
}

/** The members of the engine's errors that are read here. */
interface EngineError extends Error {
  error_description?: string | undefined;
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
 * Corrects what the engine says of a refused token request and completes its body: `error_uri`
 * always, and the true cause once the client has authenticated with its secret. Before that the
 * engine's generic words stay.
 */
export function describeTokenError(ctx: KoaContextWithOIDC, error: EngineError): void {
  const { client, issuer } = ctx.oidc;
  if (error.message === 'invalid_request') correct(ctx, error);
  const { message: code } = error;
  const isAuthenticated =
    client !== undefined && client.clientAuthMethod !== 'none' && code !== 'invalid_client';
  const description = isAuthenticated ? causeOf(error) : error.error_description;
  ctx.body = errorBody(issuer, code, description ?? 'the request was refused');
}
