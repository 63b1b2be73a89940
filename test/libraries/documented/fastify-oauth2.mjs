import oauth2 from '@fastify/oauth2';
import fastify from 'fastify';
import { clientId, clientSecret, issuer, redirectUri } from './gatehouse.mjs';

export const app = fastify();
await app.register(oauth2, {
  name: 'gatehouse',
  scope: [],
  pkce: 'S256',
  credentials: { client: { id: clientId, secret: clientSecret }, auth: { tokenHost: issuer } },
  startRedirectPath: '/connect',
  callbackUri: redirectUri,
});
app.get('/callback', async (request) => {
  const { token } = await app.gatehouse.getAccessTokenFromAuthorizationCodeFlow(request);
  return token;
});
