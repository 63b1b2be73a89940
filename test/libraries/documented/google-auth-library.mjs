import { OAuth2Client } from 'google-auth-library';
import { clientId, clientSecret, issuer, redirectUri } from './gatehouse.mjs';

export const client = new OAuth2Client({
  clientId,
  clientSecret,
  redirectUri,
  endpoints: { oauth2AuthBaseUrl: `${issuer}/oauth/authorize`, oauth2TokenUrl: `${issuer}/oauth/token` },
});
client.on('tokens', ({ refresh_token }) => {
  client.credentials.refresh_token = refresh_token;
});
