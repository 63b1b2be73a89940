import { clientId, clientSecret, redirectUri } from './gatehouse.mjs';

export const provider = {
  redirectUrl: redirectUri,
  clientMetadata: { redirect_uris: [redirectUri] },
  clientInformation: () => ({ client_id: clientId, client_secret: clientSecret }),
};
