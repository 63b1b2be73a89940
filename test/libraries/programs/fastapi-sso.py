from urllib.parse import urlsplit

from documented import sso
from driving import approve, report
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from gatehouse import REDIRECT_URI

app = FastAPI()


@app.get('/login')
async def login():
    async with sso:
        return await sso.get_login_redirect()


@app.get('/callback')
async def callback(request: Request):
    async with sso:
        user = await sso.verify_and_process(request)
        return {'user': user.id, 'access': sso.access_token, 'refresh': sso.refresh_token}


browser = TestClient(app, base_url=REDIRECT_URI.removesuffix('/callback'), follow_redirects=False)
target = urlsplit(approve(browser.get('/login').headers['location']))
tokens = browser.get(f'{target.path}?{target.query}').json()
report('connected', tokens['access'], tokens['refresh'])
