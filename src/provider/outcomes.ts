/** Events of the authorization server for metrics, which must limit the number of labels. */

export interface ProviderOutcomes {
  tokenIssued(grantType: string): void;
  /** A token request was refused. `grantType` is any text that the caller sent, or empty. */
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
