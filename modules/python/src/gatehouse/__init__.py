"""Protects an API in Python with the access tokens and API keys of Gatehouse."""

from .answer import Caller, Organization, Warehouse
from .client import AsyncGatehouse, Gatehouse
from .ended import Ended
from .refusals import Refusal, Unavailable
from .request import Request, from_asgi, from_wsgi
from .settings import Settings

__all__ = [
    "AsyncGatehouse",
    "Caller",
    "Ended",
    "Gatehouse",
    "Organization",
    "Refusal",
    "Request",
    "Settings",
    "Unavailable",
    "Warehouse",
    "from_asgi",
    "from_wsgi",
]
