import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult

from documented import Storage, metadata
from driving import approve, report
from gatehouse import ISSUER, REDIRECT_URI

ORIGIN = REDIRECT_URI.removesuffix('/callback')


class Server(BaseHTTPRequestHandler):
    """An MCP server with its metadata (RFC 9728), which names no scopes."""

    def do_GET(self):
        authenticated = 'Authorization' in self.headers
        found = self.path == '/.well-known/oauth-protected-resource/mcp'
        self.send_response(200 if found or authenticated else 401 if self.path == '/mcp' else 404)
        self.end_headers()
        self.wfile.write(json.dumps({'resource': f'{ORIGIN}/mcp', 'authorization_servers': [ISSUER]}).encode())

    def log_message(self, *args):
        pass


threading.Thread(target=HTTPServer(('127.0.0.1', urlsplit(ORIGIN).port), Server).serve_forever, daemon=True).start()
storage = Storage()
callback = {}


async def redirect(address):
    callback.update(parse_qsl(urlsplit(approve(address)).query))


async def answer():
    return AuthorizationCodeResult(code=callback['code'], state=callback['state'], iss=callback['iss'])


async def main():
    provider = OAuthClientProvider(f'{ORIGIN}/mcp', metadata, storage, redirect, answer)
    async with httpx2.AsyncClient(auth=provider) as client:
        (await client.get(f'{ORIGIN}/mcp')).raise_for_status()
        report('connected', storage.tokens.access_token, storage.tokens.refresh_token)
        provider.context.token_expiry_time = 1
        (await client.get(f'{ORIGIN}/mcp')).raise_for_status()
        report('refreshed', storage.tokens.access_token, storage.tokens.refresh_token)


asyncio.run(main())
