/** What the authorization server tells whoever counts. Labels are the engine's words, unbounded. */

export interface ProviderOutcomes {
  tokenIssued(grantType: string): void;
  /** A token request was refused; both words may be the caller's own. */
  tokenRefused(grantType: string, error: string): void;
  authorizationIssued(): void;
  authorizationRefused(error: string): void;
  /** The predecessor came again inside the retry window and got the same successor. */
  refreshRetried(): void;
  /** Something was used again that may not be, and its grant was revoked. */
  grantReplayed(kind: 'code' | 'refresh_token'): void;
  /** A client failed to authenticate: refused, or answered 429 after too many of them. */
  clientSecretRefused(reason: 'wrong' | 'throttled'): void;
  introspected(isActive: boolean): void;
}
