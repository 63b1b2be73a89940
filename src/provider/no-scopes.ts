/** No scopes exist here: leaving `scope` out, or empty, is right, and anything else is refused. */

/**
 * RFC 6749 §3.3: a scope that is not known is `invalid_scope`, rather than silently ignored: a
 * client that asks for less than everything must not believe that it got less.
 *
 * @param scope the raw parameter, before the engine has dropped what it does not know.
 */
export const isScope = (scope: unknown): boolean => Boolean(scope);

/** Does not repeat the refused value, which goes wherever the error goes. */
export const NO_SCOPES = 'no scopes exist here: leave scope out';
