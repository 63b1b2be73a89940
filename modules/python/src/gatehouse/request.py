"""Finds the token in a request to the API, or refuses the request without asking the service."""

import base64
import re
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

from .refusals import Refusal

FORM = "application/x-www-form-urlencoded"
MAX_HEADER_LENGTH = 1_024
MAX_TOKEN_LENGTH = 512
TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
# The form of the service's tokens and API keys; it decides about values of any other form.
ISSUED = re.compile(r"gate_(?:at_.{95}|(?:mt|key)_.{49})")


class Request(NamedTuple):
    """What decides about the token of a request; `authorization` has one element per header."""

    query: str
    content_type: str
    authorization: tuple[str, ...]


def from_asgi(scope: Mapping[str, Any]) -> Request:
    """Reads the scope of an ASGI server, as in `request.scope` of Starlette."""

    def values(name: bytes) -> tuple[str, ...]:
        return tuple(value.decode("latin-1") for key, value in scope["headers"] if key == name)

    query = scope.get("query_string", b"").decode("latin-1")
    return Request(query, ",".join(values(b"content-type")), values(b"authorization"))


def from_wsgi(environ: Mapping[str, Any]) -> Request:
    """Reads the environ of a WSGI server, as in `request.META` of Django.

    WSGI has one value per name. Servers join two `Authorization` headers with a comma.
    """
    authorization = environ.get("HTTP_AUTHORIZATION")
    return Request(
        environ.get("QUERY_STRING", ""),
        environ.get("CONTENT_TYPE", ""),
        () if authorization is None else (authorization,),
    )


def read_token(request: Request) -> str:
    """Returns the token of the request. Raises a `Refusal` with 400 or 401."""
    names = (parameter.partition("=")[0] for parameter in request.query.split("&"))
    if any(unquote_plus(name) == "access_token" for name in names):
        raise _invalid_request(
            "send the access token in the Authorization header, not in the query"
        )
    if any(_media_type(value) == FORM for value in request.content_type.split(",")):
        raise _invalid_request("this API accepts no form bodies")
    if len(request.authorization) > 1:
        raise _invalid_request("send one Authorization header")
    header = "".join(request.authorization)
    # Cut off first: an attacker sends long values.
    value = header[:MAX_HEADER_LENGTH].strip(" \t")
    scheme, _, rest = value.partition(" ")
    if scheme.lower() != "bearer":
        raise Refusal(401, "send an access token in the Authorization header")
    token = rest.lstrip(" \t")
    if not token:
        raise _invalid_request("the Authorization header contains no access token")
    if not TOKEN.fullmatch(token) or len(token) > MAX_TOKEN_LENGTH:
        if "," in token:
            raise _invalid_request("send one access token")
        raise invalid_token()
    if len(header) > MAX_HEADER_LENGTH or _has_wrong_checksum(token):
        raise invalid_token()
    return token


def invalid_token() -> Refusal:
    """The refusal of a token that is unknown, expired or revoked."""
    return Refusal(401, "the access token is unknown, expired or revoked", "invalid_token")


def _invalid_request(message: str) -> Refusal:
    return Refusal(400, message, "invalid_request")


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def _has_wrong_checksum(token: str) -> bool:
    if not ISSUED.fullmatch(token):
        return False
    checksum = zlib.crc32(token[:-6].encode()).to_bytes(6, "big")
    return base64.urlsafe_b64encode(checksum)[2:].decode() != token[-6:]
