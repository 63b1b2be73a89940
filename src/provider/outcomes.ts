/** What metrics receive from the authorization server. Labels are the engine's terms, unbounded. */

export interface ProviderOutcomes {
  tokenIssued(grantType: string): void;
  /** A token request was refused; both labels may be chosen by the caller. */
  tokenRefused(grantType: string, error: string): void;
  authorizationIssued(): void;
  authorizationRefused(error: string): void;
  /** A replaced refresh token was sent again within the retry window and got the same successor. */
  refreshRetried(): void;
  /** A code or refresh token was used again, and its authorization was revoked. */
  grantReplayed(kind: 'code' | 'refresh_token'): void;
  /** A client failed to authenticate: it got a refusal, or 429 after too many failures. */
  clientSecretRefused(reason: 'wrong' | 'throttled'): void;
  introspected(isActive: boolean): void;
}
