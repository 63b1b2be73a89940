/** What the token endpoint says is wrong: the true cause to a client that proved who it is. */
import type { KoaContextWithOIDC } from 'oidc-provider';
import { errorBody } from './oauth-error.ts';

/** The engine's causes, in the words of a partner developer. */
const CAUSES: readonly (readonly [engine: RegExp, ours: string])[] = [
  [/^authorization code not found/, 'authorization code is not known here'],
  [/^authorization code is expired/, 'authorization code has expired'],
  [/^authorization code already consumed/, 'authorization code was already used'],
  [/redirect_uri mismatch/, 'redirect_uri is not the one of the authorization request'],
  [/code_verifier does not match/, 'code_verifier does not match'],
  [/code_verifier must be provided/, 'code_verifier is missing'],
  // The method is only missing where the challenge is (RFC 9700 §4.8.2).
  [
    /unsupported code_challenge_method/,
    'code_verifier was sent, but the authorization request had no code_challenge',
  ],
  [/^refresh token not found/, 'refresh token is not known here, or its authorization was revoked'],
  [/^refresh token is expired/, 'refresh token has expired'],
  [/^refresh token was revoked/, 'refresh token was revoked'],
  [
    /^refresh token already used/,
    'refresh token was already used, so the whole authorization was revoked',
  ],
  [/^grant not found/, 'the authorization was revoked'],
  [/^grant is expired/, 'the authorization has reached its greatest age, connect again'],
  [/referenced account not found/, 'the account of this authorization is suspended or gone'],
  [/^invalid secret provided/, 'client_secret is not one of the live secrets of the client'],
  [
    /authentication mechanism does not match/,
    'a confidential client must send its secret, and a public one has none to send',
  ],
  [/^client mismatch/, 'it was issued to another client'],
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
