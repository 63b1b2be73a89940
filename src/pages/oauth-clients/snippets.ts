/** Programs that go through the flow of one client, to be copied and run as they stand. */
import { ENDPOINT } from '../../provider/endpoints.ts';

export interface ClientSnippet {
  readonly name: string;
  /** `bash`, `javascript`, `python` */
  readonly language: string;
  readonly code: string;
}

export interface SnippetValues {
  readonly issuer: string;
  readonly clientId: string;
  readonly redirectUri: string;
}

/**
 * Each reads the secret from the environment variable CLIENT_SECRET, prints the address to open,
 * and reads the one that the browser came back to. For confidential clients.
 */
export const clientSnippets = (values: SnippetValues): ClientSnippet[] => [
  { name: 'curl', language: 'bash', code: curlSnippet(values) },
  { name: 'Node', language: 'javascript', code: nodeSnippet(values) },
  { name: 'Python', language: 'python', code: pythonSnippet(values) },
];

const curlSnippet = ({ issuer, clientId, redirectUri }: SnippetValues): string => `\
#!/usr/bin/env bash
# Needs curl and openssl. Before:  read -rs CLIENT_SECRET && export CLIENT_SECRET
set -euo pipefail
: "\${CLIENT_SECRET:?is not set}"
issuer=${inShell(issuer)}
client_id=${inShell(clientId)}
redirect_uri=${inShell(percentEncoded(redirectUri))} # percent-encoded

# A secret of this run alone, and its hash (PKCE); and a state, to know the answer by.
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
verifier=$(openssl rand 32 | base64url)
challenge=$(printf %s "$verifier" | openssl dgst -sha256 -binary | base64url)
state=$(openssl rand 16 | base64url)

echo 'Open this address in a browser, sign in and approve:'
echo "$issuer${ENDPOINT.authorization}?response_type=code&client_id=$client_id&redirect_uri=$redirect_uri&state=$state&code_challenge=$challenge&code_challenge_method=S256"
read -rp 'Paste the address that the browser came back to: ' answer
code_in_answer='[?&]code=([A-Za-z0-9_-]+)'
if [[ $answer != *"state=$state"* || ! $answer =~ $code_in_answer ]]; then
  echo 'That is not the answer to this request, or it has no code.' >&2
  exit 1
fi
code=\${BASH_REMATCH[1]}

# Not on the command line of curl, which every local user may read.
ask() { # path, then parameters
  local path=$1
  shift
  curl -sS "$issuer$path" --config <(
    printf 'user = "%s:%s"\\n' "$client_id" "$CLIENT_SECRET"
    printf 'data = "%s"\\n' "$@"
  )
}
refresh_token_in() { grep -o '"refresh_token":"[^"]*"' <<<"$1" | cut -d '"' -f 4; }

tokens=$(ask ${ENDPOINT.token} grant_type=authorization_code "code=$code" \\
  "redirect_uri=$redirect_uri" "code_verifier=$verifier")
echo "Exchanged: $tokens"

tokens=$(ask ${ENDPOINT.token} grant_type=refresh_token "refresh_token=$(refresh_token_in "$tokens")")
echo "Refreshed, and the refresh token is a new one: $tokens"

ask ${ENDPOINT.revocation} "token=$(refresh_token_in "$tokens")"
echo 'Revoked: none of these tokens is good any more.'
`;

const nodeSnippet = ({ issuer, clientId, redirectUri }: SnippetValues): string => `\
// npm install openid-client. Save this as try.mjs.
// Before:  read -rs CLIENT_SECRET && export CLIENT_SECRET
import { env, stdin as input, stdout as output } from 'node:process';
import { createInterface } from 'node:readline/promises';
import * as client from 'openid-client';

const { CLIENT_SECRET } = env;
if (!CLIENT_SECRET) throw new Error('CLIENT_SECRET is not set');
const redirectUri = ${inQuotes(redirectUri)};
const config = await client.discovery(
  new URL(${inQuotes(issuer)}),
  ${inQuotes(clientId)},
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
console.log('Open this address in a browser, sign in and approve:');
console.log(url.href);
const terminal = createInterface({ input, output });
const answer = await terminal.question('Paste the address that the browser came back to: ');
terminal.close();

${nodeExchange(redirectUri)}
console.log('Exchanged:', tokens);

const renewed = await client.refreshTokenGrant(config, tokens.refresh_token);
console.log('Refreshed, and the refresh token is a new one:', renewed);

await client.tokenRevocation(config, renewed.refresh_token);
console.log('Revoked: none of these tokens is good any more.');
`;

/** The library takes the redirect URI from the answer, without its query, and with a path. */
function nodeExchange(redirectUri: string): string {
  const taken = new URL(redirectUri);
  taken.search = '';
  if (taken.href === redirectUri) {
    return `\
const tokens = await client.authorizationCodeGrant(config, new URL(answer), {
  pkceCodeVerifier: verifier,
  expectedState: state,
});`;
  }
  return `\
// authorizationCodeGrant() would send another spelling of this redirect URI.
const { searchParams } = new URL(answer);
if (searchParams.get('state') !== state) throw new Error('not the answer to this request');
const tokens = await client.genericGrantRequest(config, 'authorization_code', {
  code: searchParams.get('code') ?? '',
  redirect_uri: redirectUri,
  code_verifier: verifier,
});`;
}

const pythonSnippet = ({ issuer, clientId, redirectUri }: SnippetValues): string => `\
# pip install Authlib requests
# Before:  read -rs CLIENT_SECRET && export CLIENT_SECRET
import os

from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

${isPlainHttp(issuer) ? `os.environ['AUTHLIB_INSECURE_TRANSPORT'] = '1'  # http is for loopback only\n` : ''}\
issuer = ${inQuotes(issuer)}
client = OAuth2Session(
    ${inQuotes(clientId)},
    os.environ['CLIENT_SECRET'],
    redirect_uri=${inQuotes(redirectUri)},
    code_challenge_method='S256',
)
verifier = generate_token(48)
url, state = client.create_authorization_url(
    issuer + '${ENDPOINT.authorization}', code_verifier=verifier
)
print('Open this address in a browser, sign in and approve:')
print(url)
answer = input('Paste the address that the browser came back to: ')

tokens = client.fetch_token(
    issuer + '${ENDPOINT.token}',
    authorization_response=answer,
    state=state,
    code_verifier=verifier,
)
print('Exchanged:', tokens)

tokens = client.refresh_token(issuer + '${ENDPOINT.token}')
print('Refreshed, and the refresh token is a new one:', tokens)

client.revoke_token(issuer + '${ENDPOINT.revocation}', token=tokens['refresh_token'])
print('Revoked: none of these tokens is good any more.')
`;

const isPlainHttp = (issuer: string): boolean => issuer.startsWith('http:');

const inShell = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A string of JavaScript and of Python: what JSON escapes, both of them read. */
const inQuotes = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;

/** RFC 3986 §2.3: only unreserved characters stay, so that neither a shell nor curl reads the rest. */
const percentEncoded = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
