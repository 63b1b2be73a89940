/** What metrics receive from the authorization server. The metrics must limit the labels. */

export interface ProviderOutcomes {
  tokenIssued(grantType: string): void;
  /** A token request was refused. The caller may send any text as `grantType`; empty without one. */
  tokenRefused(grantType: string, error: string): void;
  authorizationIssued(): void;
  authorizationRefused(error: string): void;
  /** A replaced refresh token was sent again within the retry window and got the same new token. */
  refreshRetried(): void;
  /** A code or refresh token was used again, and its authorization was revoked. */
  grantReplayed(kind: 'code' | 'refresh_token'): void;
  /**
   * A client failed to authenticate, or a public one presented a wrong code or refresh token: it got
   * a refusal, or 429 after too many failures. Requests of web pages count only in the second case.
   */
  clientSecretRefused(reason: 'wrong' | 'throttled'): void;
  introspected(isActive: boolean): void;
}
