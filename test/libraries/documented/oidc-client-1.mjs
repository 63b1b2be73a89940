import oidc from 'oidc-client';
import { clientId, issuer, redirectUri } from './gatehouse.mjs';

export const users = new oidc.UserManager({
  authority: issuer,
  metadataUrl: `${issuer}/.well-known/oauth-authorization-server`,
  client_id: clientId,
  redirect_uri: redirectUri,
  response_type: 'code',
  scope: '',
});
