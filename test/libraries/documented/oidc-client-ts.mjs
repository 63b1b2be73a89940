import { UserManager } from 'oidc-client-ts';
import { clientId, issuer, redirectUri } from './gatehouse.mjs';

export const users = new UserManager({
  authority: issuer,
  metadataUrl: `${issuer}/.well-known/oauth-authorization-server`,
  client_id: clientId,
  redirect_uri: redirectUri,
  scope: 'none',
  omitScopeWhenRequesting: true,
  refreshTokenAllowedScope: '',
});
