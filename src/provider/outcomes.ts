/** Events of the authorization server. The metrics that count them must limit the number of different label values. */

export interface ProviderOutcomes {
  tokenIssued(grantType: string): void;
  /** A token request was refused. `grantType` is any text that the caller sent, or empty. */
  tokenRefused(grantType: string, error: string): void;
  authorizationIssued(): void;
  authorizationRefused(error: string): void;
  /** A replaced refresh token was sent again, and accepted as a retry: it returned the same new token. */
  refreshRetried(): void;
  /** A code or refresh token was used again, and its authorization was revoked. */
  grantReplayed(kind: 'code' | 'refresh_token'): void;
  /**
   * A client failed to authenticate, or a public one presented a wrong code or refresh token. It got a refusal
   * (`wrong`), or 429 after too many failures (`throttled`). Requests of web pages are counted only if throttled.
   */
  clientSecretRefused(reason: 'wrong' | 'throttled'): void;
  introspected(isActive: boolean): void;
}
