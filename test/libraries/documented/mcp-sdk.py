from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

from gatehouse import CLIENT_ID, CLIENT_SECRET, REDIRECT_URI

metadata = OAuthClientMetadata(redirect_uris=[REDIRECT_URI])


class Storage:
    tokens = None

    async def get_client_info(self):
        return OAuthClientInformationFull(
            client_id=CLIENT_ID, client_secret=CLIENT_SECRET, redirect_uris=[REDIRECT_URI],
            token_endpoint_auth_method='client_secret_basic',
        )

    async def set_client_info(self, client_info):
        raise NotImplementedError

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
