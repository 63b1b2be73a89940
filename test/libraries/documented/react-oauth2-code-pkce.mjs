import { clientId, issuer, redirectUri } from './gatehouse.mjs';

export const authConfig = {
  clientId,
  authorizationEndpoint: `${issuer}/oauth/authorize`,
  tokenEndpoint: `${issuer}/oauth/token`,
  redirectUri,
  autoLogin: false,
  refreshWithScope: false,
};
