import { clientId, issuer, redirectUri } from './gatehouse.mjs';

export const configuration = {
  client_id: clientId,
  redirect_uri: redirectUri,
  scope: '',
  authority: issuer,
  authority_configuration: {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
  },
};
