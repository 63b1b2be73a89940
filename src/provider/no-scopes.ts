/** No scopes exist here: leaving `scope` out, or empty, is right, and anything else is refused. */
import { errors } from 'oidc-provider';

/**
 * RFC 6749 §3.3: a scope that is not known is `invalid_scope`, rather than silently ignored: a
 * client that asks for less than everything must not believe that it got less.
 *
 * @param scope the raw parameter, before the engine has dropped what it does not know.
 * @throws `invalid_scope` for any non-empty value.
 */
export function requireNoScope(scope: unknown): void {
  if (scope === undefined || scope === '') return;
  // Not errors.InvalidScope, which repeats the refused value to wherever the error goes.
  throw new errors.CustomOIDCProviderError(
    'invalid_scope',
    'no scopes exist here: leave scope out',
  );
}
