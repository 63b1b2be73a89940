"""The settings of the module, checked when they are made."""

import ipaddress
import re
import ssl
import time
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import urlsplit, urlunsplit


@dataclass(frozen=True)
class Settings:
    """What the API needs to know about Gatehouse.

    `introspection_endpoint` is for an API that reaches the service at an internal address.
    Without `live` nothing is remembered. `resource` is the address of the API itself: challenges
    then link to its metadata (RFC 9728). `allow_insecure_issuer` allows an issuer with http on
    another machine, as in a test network.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    introspection_endpoint: str = ""
    live: bool = True
    timeout_seconds: float = 1.0
    remember_for_seconds: float = 60.0
    most_remembered: int = 50_000
    max_connections: int = 16
    resource: str = ""
    ssl_context: Optional[ssl.SSLContext] = None
    allow_insecure_issuer: bool = False

    def __post_init__(self) -> None:
        if not _is_address(self.issuer) or urlsplit(self.issuer).path:
            raise ValueError(
                f"issuer is {self.issuer!r}: set the public origin of Gatehouse, "
                "without a path or final slash, such as https://auth.example.com"
            )
        is_insecure = urlsplit(self.issuer).scheme == "http" and not _is_loopback(self.issuer)
        if is_insecure and not self.allow_insecure_issuer:
            raise ValueError(
                f"issuer is {self.issuer!r}, which is http: others on the network could read "
                "tokens and the client secret, and forge answers. Use the https address, or set "
                "allow_insecure_issuer in a test network"
            )
        if not _is_address(self.endpoint):
            raise ValueError(
                f"introspection_endpoint is {self.introspection_endpoint!r}: "
                "set an address such as http://10.0.0.7:3000/oauth/introspect"
            )
        if not self.client_id or not self.client_secret:
            raise ValueError(
                "client_id or client_secret is empty: register the API with "
                "`gatehouse clients add --kind resource-server` and set both values"
            )
        if self.resource and not _is_address(self.resource, may_have_query=True):
            raise ValueError("resource must be an http or https address without a fragment")
        if not 0 < self.remember_for_seconds <= 600:
            raise ValueError("remember_for_seconds must be above 0 and at most 600")

    @property
    def endpoint(self) -> str:
        """The address of the introspection endpoint."""
        return self.introspection_endpoint or f"{self.issuer}/oauth/introspect"

    @property
    def resource_metadata(self) -> Optional[str]:
        """The address of the API's metadata: its path follows the well-known one (section 3.1)."""
        parts = urlsplit(self.resource)
        path = f"/.well-known/oauth-protected-resource{re.sub('/$', '', parts.path)}"
        return urlunsplit(parts._replace(path=path)) if self.resource else None


def _is_address(value: str, may_have_query: bool = False) -> bool:
    parts = urlsplit(value)
    has_more = (parts.query and not may_have_query) or parts.fragment or "@" in parts.netloc
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not has_more


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Clock:
    """The time, which tests replace."""

    def monotonic_ms(self) -> int:
        """A time that is never set, for intervals."""
        return time.monotonic_ns() // 1_000_000

    def unix_ms(self) -> int:
        """The time since 1970, for `exp`."""
        return time.time_ns() // 1_000_000
