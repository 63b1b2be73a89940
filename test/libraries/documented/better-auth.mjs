import { betterAuth } from 'better-auth';
import { memoryAdapter } from 'better-auth/adapters/memory';
import { genericOAuth } from 'better-auth/plugins';
import { clientId, clientSecret, issuer, redirectUri, userOf } from './gatehouse.mjs';

const gatehouse = {
  providerId: 'gatehouse',
  clientId,
  clientSecret,
  discoveryUrl: `${issuer}/.well-known/oauth-authorization-server`,
  getUserInfo: ({ accessToken }) => userOf(accessToken),
};
export const auth = betterAuth({
  baseURL: new URL(redirectUri).origin,
  secret: process.env.AUTH_SECRET,
  // Your database.
  database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
  plugins: [genericOAuth({ config: [gatehouse] })],
});
