import { auth } from '@modelcontextprotocol/sdk/client/auth.js';
import { provider } from './documented.mjs';
import { approve, issuer, origin, report, serve } from './driving.mjs';

// The metadata of an MCP server (RFC 9728), which names no scopes.
const resource = `${origin}/mcp`;
await serve(({ url }) =>
  url.endsWith('/.well-known/oauth-protected-resource/mcp')
    ? Response.json({ resource, authorization_servers: [issuer] })
    : new Response('', { status: 404 }),
);
let tokens;
let address;
let codeVerifier;
Object.assign(provider, {
  tokens: () => tokens,
  saveTokens: (fresh) => {
    tokens = fresh;
  },
  redirectToAuthorization: (url) => {
    address = url;
  },
  saveCodeVerifier: (fresh) => {
    codeVerifier = fresh;
  },
  codeVerifier: () => codeVerifier,
});
const options = { serverUrl: resource };
await auth(provider, options);
const callback = await approve(address);
const authorizationCode = callback.searchParams.get('code');
if (authorizationCode === null) throw new Error(callback.href);
await auth(provider, { ...options, authorizationCode });
await report('connected', tokens.access_token, tokens.refresh_token);
await auth(provider, options);
await report('refreshed', tokens.access_token, tokens.refresh_token);
process.exit();
