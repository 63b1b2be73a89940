import { OidcClient } from '@axa-fr/oidc-client';
import { configuration } from './documented.mjs';

const client = OidcClient.getOrCreate(() => fetch)(configuration);
const tokens = () => [client.tokens.accessToken, client.tokens.refreshToken];
export const connect = () => client.loginAsync('/');

export async function connected() {
  await client.loginCallbackAsync();
  return tokens();
}

export async function refreshed() {
  await client.renewTokensAsync();
  return tokens();
}
