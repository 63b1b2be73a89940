import { OAuth2Strategy } from 'remix-auth-oauth2';
import { clientId, clientSecret, issuer, redirectUri } from './gatehouse.mjs';

export const strategy = await OAuth2Strategy.discover(
  `${issuer}/.well-known/oauth-authorization-server`,
  { clientId, clientSecret, redirectURI: redirectUri },
  async ({ tokens }) => tokens.data,
);
