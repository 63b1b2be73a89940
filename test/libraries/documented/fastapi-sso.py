import os

from fastapi_sso.sso.base import OpenID
from fastapi_sso.sso.generic import create_provider

from gatehouse import CLIENT_ID, CLIENT_SECRET, ISSUER, REDIRECT_URI

Gatehouse = create_provider(
    name='gatehouse',
    discovery_document={
        'authorization_endpoint': f'{ISSUER}/oauth/authorize',
        'token_endpoint': f'{ISSUER}/oauth/token',
        'userinfo_endpoint': os.environ['API_URL'] + '?query=%7Bcaller%7Bsubject%20username%7D%7D',
    },
    response_convertor=lambda answer, _: OpenID(id=answer['data']['caller']['subject'], provider='gatehouse'),
)
sso = Gatehouse(CLIENT_ID, CLIENT_SECRET, REDIRECT_URI, scope=[''], allow_insecure_http=True)
