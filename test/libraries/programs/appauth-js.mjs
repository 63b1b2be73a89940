import { AuthorizationNotifier, RevokeTokenRequest, TokenRequest } from '@openid/appauth';
import { authorization, configuration, request, tokens } from './documented.mjs';
import { clientId, redirectUri } from './gatehouse.mjs';

const client = { client_id: clientId, redirect_uri: redirectUri };
let refreshToken;
async function take(tokenRequest) {
  const answer = await tokens.performTokenRequest(configuration, new TokenRequest(tokenRequest));
  refreshToken = answer.refreshToken;
  return [answer.accessToken, refreshToken];
}
export const connect = async () => authorization.performAuthorizationRequest(configuration, request);

export async function connected() {
  const notifier = new AuthorizationNotifier();
  authorization.setAuthorizationNotifier(notifier);
  const arrived = new Promise((resolve) => {
    notifier.setAuthorizationListener((sent, { code }) => resolve({ sent, code }));
  });
  await authorization.completeAuthorizationRequestIfPossible();
  const { sent, code } = await arrived;
  const extras = { code_verifier: sent.internal.code_verifier };
  return take({ ...client, grant_type: 'authorization_code', code, extras });
}

export const refreshed = () => take({ ...client, grant_type: 'refresh_token', refresh_token: refreshToken });

export const revoked = () =>
  tokens.performRevokeTokenRequest(configuration, new RevokeTokenRequest({ client_id: clientId, token: refreshToken }));
