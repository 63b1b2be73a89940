import { Issuer } from 'openid-client';
import { clientId, clientSecret, issuer, redirectUri } from './gatehouse.mjs';

const gatehouse = await Issuer.discover(`${issuer}/.well-known/oauth-authorization-server`);
export const client = new gatehouse.Client({ client_id: clientId, client_secret: clientSecret });

export const authorize = (state, code_challenge) =>
  client.authorizationUrl({
    redirect_uri: redirectUri,
    scope: '',
    state,
    code_challenge,
    code_challenge_method: 'S256',
  });

export const exchange = (callbackUrl, checks) =>
  client.oauthCallback(redirectUri, client.callbackParams(callbackUrl), checks);
