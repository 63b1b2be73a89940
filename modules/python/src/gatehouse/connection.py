"""The requests to the service.

No request is cancelled, but timeouts end it: with the versions of Debian 12 a cancelled request
keeps its place in the pool (httpcore 0.16) or goes on (anyio 3.6). The timeouts of httpx are for
each read, so every read of a connection also ends at the deadline of the request that reads.
"""

import asyncio
import contextlib
import contextvars
import math
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any, Optional
from urllib.parse import quote_plus, urlsplit

import httpx

from .settings import Settings

# An answer with 10,000 warehouses is shorter.
MAX_ANSWER_BYTES = 4 * 1024 * 1024
# The service closes an idle connection after 65 seconds.
KEEP_ALIVE_SECONDS = 60
STREAM_TIMEOUT = httpx.Timeout(3, connect=2)
STREAM_OPENING_SECONDS = 5

# When the answer must have arrived, by the time of the event loop. Each request has its own task.
_deadline: contextvars.ContextVar[float] = contextvars.ContextVar("deadline", default=math.inf)


class TooLong(Exception):
    """The answer is longer than any that the service sends."""


class Connection:
    """Sends the requests of docs/wire.md, each with the credentials of the API."""

    def __init__(
        self, settings: Settings, transport: Optional[httpx.AsyncBaseTransport] = None
    ) -> None:
        self._settings = settings
        # Wait here and not in the pool: after a timeout there, httpcore 0.16 can lose a place.
        self._places = asyncio.Semaphore(settings.max_connections)
        self._options: dict[str, Any] = {
            "transport": transport,
            "auth": (quote_plus(settings.client_id), quote_plus(settings.client_secret)),
            "headers": {
                # The service answers only for its public host, whatever address the API uses.
                "Host": urlsplit(settings.issuer).netloc,
                "Accept-Encoding": "identity",
            },
            # Without proxies and .netrc, which would get or replace the credentials.
            "trust_env": False,
            "verify": settings.ssl_context or ssl.create_default_context(),
        }
        count = settings.max_connections
        limits = httpx.Limits(
            max_connections=count,
            max_keepalive_connections=count,
            keepalive_expiry=KEEP_ALIVE_SECONDS,
        )
        timeout = httpx.Timeout(settings.timeout_seconds, pool=None)
        self._client = httpx.AsyncClient(limits=limits, timeout=timeout, **self._options)

    async def introspect(self, token: str) -> tuple[httpx.Response, bytes]:
        """Returns the answer about a token with its body. Raises httpx.HTTPError or TooLong."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.timeout_seconds
        _deadline.set(deadline)
        async with self._places:
            if loop.time() >= deadline:
                raise httpx.PoolTimeout("no connection was free in time")
            response = await self._send(token, self._settings.max_connections + 1)
            try:
                body = bytearray()
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > MAX_ANSWER_BYTES:
                        raise TooLong
                return response, bytes(body)
            finally:
                await response.aclose()

    async def _send(self, token: str, attempts: int) -> httpx.Response:
        is_new = False

        async def trace(event: str, info: dict[str, Any]) -> None:
            nonlocal is_new
            is_new = is_new or event.startswith("connection.connect_")
            await _limit_reads(event, info)

        request = self._client.build_request(
            "POST",
            self._settings.endpoint,
            data={"token": token},
            headers={"Accept": "application/json"},
            extensions={"trace": trace},
        )
        try:
            return await self._client.send(request, stream=True)
        except (httpx.NetworkError, httpx.RemoteProtocolError):
            # Only a reused connection may have been closed because it was idle.
            if is_new or attempts == 1:
                raise
        return await self._send(token, attempts - 1)

    @contextlib.asynccontextmanager
    async def open_stream(self) -> AsyncIterator[httpx.Response]:
        """Opens a change stream, over a connection of its own."""
        async with httpx.AsyncClient(timeout=STREAM_TIMEOUT, **self._options) as client:
            _deadline.set(asyncio.get_running_loop().time() + STREAM_OPENING_SECONDS)
            async with client.stream(
                "GET",
                f"{self._settings.endpoint}/changes",
                headers={"Accept": "text/event-stream"},
                extensions={"trace": _limit_reads},
            ) as response:
                _deadline.set(math.inf)
                yield response

    async def close(self) -> None:
        """Closes the connections of introspections."""
        await self._client.aclose()


async def _limit_reads(event: str, info: dict[str, Any]) -> None:
    """Traces a request of httpx: the reads of each new connection end at the deadline."""
    if event not in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
        return
    stream = info["return_value"]
    read_once = stream.read

    async def read(max_bytes: int, timeout: Optional[float] = None) -> bytes:
        left = _deadline.get() - asyncio.get_running_loop().time()
        if left <= 0:
            raise httpx.ReadTimeout("the answer did not arrive in time")
        piece: bytes = await read_once(max_bytes, timeout=min(timeout or left, left))
        return piece

    stream.read = read


def retry_after_seconds(response: httpx.Response) -> Optional[int]:
    """Returns the Retry-After of an answer, if it is a whole number of seconds above 0."""
    value = response.headers.get("Retry-After", "")
    return int(value) if re.fullmatch(r"[1-9][0-9]{0,8}", value) else None
