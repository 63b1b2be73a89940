/** The authorization server metadata (RFC 8414): only what works here. */
import { ENDPOINT } from './endpoints.ts';

const SECRET_METHODS = ['client_secret_basic', 'client_secret_post'];

/** No scopes, no OpenID Connect, no keys: what is not listed does not exist. */
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
    // RFC 9207 §3.
    authorization_response_iss_parameter_supported: true,
  };
}
