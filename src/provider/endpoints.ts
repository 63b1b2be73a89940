/** The OAuth paths, which the engine, the metadata and the host must agree on. */
export const ENDPOINT = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revokeCurrentToken: '/oauth/token/revoke',
  refreshSession: '/oauth/token/refresh',
  introspection: '/oauth/introspect',
  /** The module for resource servers appends it as well. */
  introspectionChanges: '/oauth/introspect/changes',
  revocation: '/oauth/revoke',
  metadata: '/.well-known/oauth-authorization-server',
  /** Followed by the interaction's uid: its cookies are bound to that path. */
  interaction: '/interaction',
  /** Where the test of a client comes back to. */
  clientTest: '/profile/oauth-clients/test/callback',
} as const;
