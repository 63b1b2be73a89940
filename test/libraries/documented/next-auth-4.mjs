import { clientId, clientSecret, issuer, userOf } from './gatehouse.mjs';

export const provider = {
  id: 'gatehouse',
  name: 'Gatehouse',
  type: 'oauth',
  wellKnown: `${issuer}/.well-known/oauth-authorization-server`,
  authorization: { params: { scope: '' } },
  checks: ['pkce', 'state'],
  clientId,
  clientSecret,
  userinfo: { request: ({ tokens }) => userOf(tokens.access_token) },
  profile: (user) => user,
};
