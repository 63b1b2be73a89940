/** The OAuth paths, which the engine and the host share, and the metadata that contains them. */
export const ENDPOINT = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  revokeCurrentToken: '/oauth/token/revoke',
  refreshSession: '/oauth/token/refresh',
  introspection: '/oauth/introspect',
  /** The module for resource servers (modules/node) contains a copy of this path. */
  introspectionChanges: '/oauth/introspect/changes',
  verification: '/oauth/verify',
  revocation: '/oauth/revoke',
  metadata: '/.well-known/oauth-authorization-server',
  /** The path continues with the uid of the interaction, whose cookies are bound to that path. */
  interaction: '/interaction',
} as const;

const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'];

/** Returns the metadata (RFC 8414), without scopes, keys or OpenID Connect, because the service has none of them. */
export function metadata(issuer: string) {
  return {
    issuer,
    authorization_endpoint: issuer + ENDPOINT.authorization,
    token_endpoint: issuer + ENDPOINT.token,
    revocation_endpoint: issuer + ENDPOINT.revocation,
    introspection_endpoint: issuer + ENDPOINT.introspection,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
    token_endpoint_auth_methods_supported: [...SECRET_METHODS, 'none'],
    revocation_endpoint_auth_methods_supported: [...SECRET_METHODS, 'none'],
    introspection_endpoint_auth_methods_supported: SECRET_METHODS,
    code_challenge_methods_supported: ['S256'],
    // RFC 9207 §3: responses contain `iss`.
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${issuer}/errors`,
  };
}
