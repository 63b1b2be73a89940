/** The flow with Python and Authlib. */
import {
  inSingleQuotes,
  isPlainHttp,
  listeningOf,
  PATHS,
  type ProgramValues,
  preparation,
  requestOf,
} from './values.ts';

export function pythonProgram(values: ProgramValues): string {
  const { issuer, clientId, redirectUri, api } = values;
  const { host, port, path } = listeningOf(values);
  return `\
# pip install Authlib requests. Save this as try.py.
${preparation('#')}
import os
import socket
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

${isPlainHttp(issuer) ? `os.environ['AUTHLIB_INSECURE_TRANSPORT'] = '1'  # http is for loopback only\n` : ''}\
issuer = ${inSingleQuotes(issuer)}
client = OAuth2Session(
    ${inSingleQuotes(clientId)},
    os.environ['CLIENT_SECRET'],
    redirect_uri=${inSingleQuotes(redirectUri)},
    code_challenge_method='S256',
)
verifier = generate_token(48)
url, state = client.create_authorization_url(
    issuer + '${PATHS.authorize}', code_verifier=verifier
)
answer = {}


class Callback(BaseHTTPRequestHandler):
    """Waits at the redirect URI for the browser."""

    def do_GET(self):
        asked = urlsplit(self.path)
        is_answer = asked.path == ${inSingleQuotes(path)}
        self.send_response(200 if is_answer else 404)
        self.send_header('Content-Type', 'text/plain')
        self.end_headers()
        if is_answer:
            self.wfile.write(b'You may close this window, and go back to the program.')
            answer.update(parse_qsl(asked.query))

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    address_family = socket.${host === '::1' ? 'AF_INET6' : 'AF_INET'}
    daemon_threads = True


with Server((${inSingleQuotes(host)}, ${port}), Callback) as server:
    print('Open this address in a browser, sign in and approve:')
    print(url, flush=True)
    server.timeout = 1
    while not answer:
        server.handle_request()

if answer.get('state') != state or answer.get('iss') != issuer:
    raise SystemExit('that is not the answer to this request')
if 'code' not in answer:
    raise SystemExit(f'no code, but {answer}')

tokens = client.fetch_token(issuer + '${PATHS.token}', code=answer['code'], code_verifier=verifier)
print('Exchanged:', tokens)

tokens = client.refresh_token(issuer + '${PATHS.token}')
print('Refreshed, and the refresh token is a new one:', tokens)
${api ? apiCall(api) : ''}
if os.environ.get('KEEP_TOKENS'):
    print('Kept: the last tokens above are good.')
else:
    client.revoke_token(issuer + '${PATHS.revoke}', token=tokens['refresh_token']).raise_for_status()
    print('Revoked: none of these tokens is good any more.')
`;
}

const apiCall = (api: NonNullable<ProgramValues['api']>): string => `
response = client.post(
    ${inSingleQuotes(api.graphqlUrl)},
    data=${inSingleQuotes(requestOf(api))}.encode(),
    headers={'Content-Type': 'application/json'},
)
response.raise_for_status()
print('The API answered:', response.text)
`;
