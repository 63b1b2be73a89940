from requests_oauth2client import OAuth2Client

from gatehouse import CLIENT_ID, CLIENT_SECRET, ISSUER, REDIRECT_URI

client = OAuth2Client.from_discovery_endpoint(
    f'{ISSUER}/.well-known/oauth-authorization-server',
    issuer=ISSUER, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, redirect_uri=REDIRECT_URI,
    testing=True,
)
request = client.authorization_request(scope=None)
