from datetime import datetime, timezone

import requests
from singer_sdk.authenticators import OAuthAuthenticator

from gatehouse import CLIENT_ID, CLIENT_SECRET, ISSUER


class Authenticator(OAuthAuthenticator):
    @property
    def oauth_request_body(self):
        return {
            'grant_type': 'refresh_token',
            'refresh_token': self.refresh_token,
            'client_id': self.client_id,
            'client_secret': self.client_secret,
        }

    def update_access_token(self):
        answer = requests.post(self.auth_endpoint, data=self.oauth_request_body, timeout=60)
        assert answer.ok, answer.text
        tokens = answer.json()
        # A tap also writes it where its next run reads it, before it uses the access token.
        self.refresh_token = tokens['refresh_token']
        self.access_token = tokens['access_token']
        self.expires_in = tokens['expires_in']
        self.last_refreshed = datetime.now(timezone.utc)


authenticator = Authenticator(
    auth_endpoint=f'{ISSUER}/oauth/token', client_id=CLIENT_ID, client_secret=CLIENT_SECRET,
)
