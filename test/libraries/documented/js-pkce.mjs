import jsPkce from 'js-pkce';
import { clientId, issuer, redirectUri } from './gatehouse.mjs';

// A bundler decides by the name of this file whether this is the class or the module.
const PKCE = jsPkce.default ?? jsPkce;
export const pkce = new PKCE({
  client_id: clientId,
  redirect_uri: redirectUri,
  authorization_endpoint: `${issuer}/oauth/authorize`,
  token_endpoint: `${issuer}/oauth/token`,
  revoke_endpoint: `${issuer}/oauth/revoke`,
  requested_scopes: '',
});
