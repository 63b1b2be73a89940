/** The flow with Node and openid-client. */
import {
  inSingleQuotes,
  isPlainHttp,
  listeningOf,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function nodeProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  return `\
// npm install openid-client. Save this as try.mjs.
${preparation('//')}
import { createServer } from 'node:http';
import { env } from 'node:process';
import * as client from 'openid-client';

const { CLIENT_SECRET, KEEP_TOKENS } = env;
if (!CLIENT_SECRET) throw new Error('CLIENT_SECRET is not set');
const redirectUri = ${inSingleQuotes(redirectUri)};
const config = await client.discovery(
  new URL(${inSingleQuotes(issuer)}),
  ${inSingleQuotes(clientId)},
  CLIENT_SECRET,
  undefined,
  { algorithm: 'oauth2'${isPlainHttp(issuer) ? `, execute: [client.allowInsecureRequests] }, // http is for loopback only` : ' },'}
);

const verifier = client.randomPKCECodeVerifier();
const state = client.randomState();
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: redirectUri,
  state,
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
});

// Waits at the redirect URI for the browser.
const answer = await new Promise((resolve, reject) => {
  const server = createServer((request, response) => {
    const asked = new URL(request.url, redirectUri);
    if (asked.pathname !== ${inSingleQuotes(path)}) return response.writeHead(404).end();
    response.end('You may close this window, and go back to the program.', () =>
      server.closeAllConnections(),
    );
    server.close();
    resolve(asked);
  });
  server.on('error', reject);
  server.listen(${port}, ${inSingleQuotes(host)}, () => {
    console.log('Open this address in a browser, sign in and approve:');
    console.log(url.href);
  });
});

let tokens = await client.authorizationCodeGrant(config, answer, {
  pkceCodeVerifier: verifier,
  expectedState: state,
});
console.log('Exchanged:', tokens);

tokens = await client.refreshTokenGrant(config, tokens.refresh_token);
console.log('Refreshed, and the refresh token is a new one:', tokens);
${api ? apiCall(api) : ''}
if (KEEP_TOKENS) {
  console.log('Kept: the last tokens above are good.');
} else {
  await client.tokenRevocation(config, tokens.refresh_token);
  console.log('Revoked: none of these tokens is good any more.');
}
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
const response = await fetch(${inSingleQuotes(api.graphqlUrl)}, {
  method: 'POST',
  headers: {
    authorization: \`Bearer \${tokens.access_token}\`,
    'content-type': 'application/json',
  },
  body: ${inSingleQuotes(requestOf(api))},
});
if (!response.ok) throw new Error(\`the API answered \${response.status}: \${await response.text()}\`);
console.log('The API answered:', await response.text());
`;
