/** The requests of clients and of the GraphQL API that the load consists of. */
import { basic, type TestClient } from '../test/support/oauth.ts';
import type { LoadRequest } from './load.ts';

export const introspectionOf = (resourceServer: TestClient, token: string): LoadRequest =>
  form('/oauth/introspect', { token }, basic(resourceServer));

export const refreshOf = (client: TestClient, refreshToken: string): LoadRequest =>
  form('/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: refreshToken,
    ...inBody(client),
  });

/** @param verifier of PKCE (RFC 7636), if the authorization has a challenge */
export const exchangeOf = (client: TestClient, code: string, verifier?: string): LoadRequest =>
  form('/oauth/token', {
    grant_type: 'authorization_code',
    code,
    redirect_uri: client.redirectUri,
    ...(verifier !== undefined && { code_verifier: verifier }),
    ...inBody(client),
  });

export const inBody = ({ id, secret = '' }: TestClient): Record<string, string> => ({
  client_id: id,
  client_secret: secret,
});

export function form(path: string, fields: Record<string, string>, authorization?: string): LoadRequest {
  return {
    method: 'POST',
    path,
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      ...(authorization !== undefined && { authorization }),
    },
    body: new URLSearchParams(fields).toString(),
  };
}
