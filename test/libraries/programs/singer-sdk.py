from urllib.parse import parse_qs, urlencode, urlsplit

import requests
from documented import authenticator
from driving import approve, ask, report
from gatehouse import CLIENT_ID, CLIENT_SECRET, ISSUER, REDIRECT_URI

# The library does not connect people: a tap is given its first refresh token.
query = {'response_type': 'code', 'client_id': CLIENT_ID, 'redirect_uri': REDIRECT_URI, 'state': 'some state'}
callback = approve(f'{ISSUER}/oauth/authorize?{urlencode(query)}')
form = {
    'grant_type': 'authorization_code',
    'code': parse_qs(urlsplit(callback).query)['code'][0],
    'redirect_uri': REDIRECT_URI,
}
tokens = requests.post(f'{ISSUER}/oauth/token', data=form, auth=(CLIENT_ID, CLIENT_SECRET), timeout=60).json()
report('connected', tokens['access_token'], tokens['refresh_token'])
authenticator.refresh_token = tokens['refresh_token']
# As calls of an API do it, once the access token has expired.
for hour in (1, 2):
    authenticator.last_refreshed = None
    authenticator.authenticate_request(requests.Request('GET', ISSUER).prepare())
    ask(step='refreshed', accessToken=authenticator.access_token)
