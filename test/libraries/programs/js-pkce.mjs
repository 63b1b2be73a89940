import { pkce } from './documented.mjs';

let refreshToken;
function tokens(answer) {
  if (answer.error !== undefined) throw new Error(answer.error);
  refreshToken = answer.refresh_token;
  return [answer.access_token, refreshToken];
}
export const connect = () => location.assign(pkce.authorizeUrl());
export const connected = async () => tokens(await pkce.exchangeForAccessToken(location.href));
export const refreshed = async () => tokens(await pkce.refreshAccessToken(refreshToken));
export const revoked = () => pkce.revokeToken(refreshToken);
