import grant from 'grant';
import { clientId, clientSecret, issuer, redirectUri } from './gatehouse.mjs';

export const gatehouse = grant.express({
  gatehouse: {
    oauth: 2,
    authorize_url: `${issuer}/oauth/authorize`,
    access_url: `${issuer}/oauth/token`,
    key: clientId,
    secret: clientSecret,
    redirect_uri: redirectUri,
    state: true,
    pkce: true,
    transport: 'session',
    callback: '/connected',
  },
});
