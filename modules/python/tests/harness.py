"""A service in the same process, and an event loop whose time jumps."""

import asyncio
import json
import logging
import math
import ssl
from collections.abc import AsyncIterator, Awaitable
from dataclasses import fields, is_dataclass
from typing import Any, Callable, Optional

import httpx

from gatehouse import AsyncGatehouse, Settings
from gatehouse.settings import Clock

ISSUER = "https://auth.example.com"
logging.getLogger("gatehouse").setLevel(logging.CRITICAL)
# Reading the certificates takes most of the time of a test.
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def settings(**options: Any) -> Settings:
    return Settings(ISSUER, "gate_ci_api", "gate_cs_secret", ssl_context=TLS, **options)


def plain(value: Any) -> Any:
    """Returns a caller in the form of the vectors, which can be written as JSON."""
    if isinstance(value, (tuple, frozenset)):
        return sorted((plain(each) for each in value), key=str)
    if not is_dataclass(value):
        return value
    pairs = ((field.name, plain(getattr(value, field.name))) for field in fields(value))
    return {k: v for k, v in pairs if v is not None and k not in ("names", "ended")}


def answered(status: int, body: bytes, headers: Optional[dict[str, str]] = None) -> httpx.Response:
    """Returns an answer whose body has not been read yet, as a connection has."""
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as nothing else is to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0

    def time(self) -> float:
        return self.now_ms / 1_000

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            when = self._scheduled[0]._when  # type: ignore[attr-defined]
            self.now_ms = max(self.now_ms, math.ceil(round(when * 1_000, 6)))
        super()._run_once()  # type: ignore[misc]


class VirtualClock(Clock):
    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.set_by_ms = 0

    def monotonic_ms(self) -> int:
        return self.loop.now_ms

    def unix_ms(self) -> int:
        return self.loop.now_ms + self.set_by_ms


class FakeStream(httpx.AsyncByteStream):
    """A change stream with a heartbeat every 250 ms."""

    def __init__(self, first_heartbeat_ms: int) -> None:
        self.lines: asyncio.Queue[Optional[str]] = asyncio.Queue()
        self.beats = asyncio.get_running_loop().create_task(self.beat(first_heartbeat_ms))

    async def beat(self, first_heartbeat_ms: int) -> None:
        await asyncio.sleep(first_heartbeat_ms / 1_000)
        self.lines.put_nowait(": heartbeat-ms=250")
        while True:
            await asyncio.sleep(0.25)
            self.lines.put_nowait(":")

    def end(self) -> None:
        self.beats.cancel()
        self.lines.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            line = await self.lines.get()
            if line is None:
                return
            yield f"{line}\n\n".encode()

    async def aclose(self) -> None:
        self.beats.cancel()


ORGANIZATION = {
    "id": "org_a",
    "name": "A",
    "role": "member",
    "warehouses": [{"id": "wh_a", "name": "A", "rights": ["read"]}],
}


def active(iss: str = ISSUER, **members: Any) -> bytes:
    common = {"active": True, "iss": iss, "token_type": "Bearer", "sub": "acc_a"}
    return json.dumps(
        {**common, "client_id": "gate_ci_x", "organizations": [ORGANIZATION], **members}
    ).encode()


async def settle() -> None:
    """Lets the module do what it can do without time passing."""
    for _ in range(50):
        await asyncio.sleep(0)


class Service(httpx.AsyncBaseTransport):
    """Answers each introspection with `body`, after `delay_seconds`, and opens `stream`."""

    def __init__(self) -> None:
        self.body = active()
        self.delay_seconds = 0.0
        self.asked: list[str] = []
        self.streams_asked_ms: list[int] = []
        self.stream_type = "text/event-stream"
        self.stream: Optional[FakeStream] = None
        self.stream_refusal: Optional[dict[str, str]] = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            self.streams_asked_ms.append(round(asyncio.get_running_loop().time() * 1_000))
            if self.stream_refusal is not None:
                return answered(503, b"", self.stream_refusal)
            self.stream = FakeStream(0)
            headers = {"Content-Type": self.stream_type}
            return httpx.Response(200, headers=headers, stream=self.stream)
        form = httpx.QueryParams((await request.aread()).decode())
        self.asked.append(form["token"])
        body = self.body
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        return answered(200, body)


def in_virtual_time(
    test: Callable[[Service, AsyncGatehouse], Awaitable[None]],
    stream_refusal: Optional[dict[str, str]] = None,
    stream_type: str = "text/event-stream",
    **options: Any,
) -> None:
    """Runs a test whose time passes at once."""
    loop, service = VirtualLoop(), Service()
    service.stream_refusal, service.stream_type = stream_refusal, stream_type

    async def run() -> None:
        gate = AsyncGatehouse(settings(**options), VirtualClock(loop), transport=service)
        async with gate:
            await settle()
            await test(service, gate)
            if service.stream:
                service.stream.end()

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
