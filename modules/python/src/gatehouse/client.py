"""The two clients: one for asyncio, and one for threads that runs it in a thread of its own."""

import asyncio
import concurrent.futures
import hashlib
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any, Callable, Optional, TypeVar, Union

import httpx

from .answer import Caller, MalformedAnswer, read_answer
from .cache import Cache
from .changes import Changes
from .connection import Connection, TooLong, retry_after_seconds
from .ended import Ended
from .refusals import Refusal, Unavailable
from .request import Request, invalid_token, read_token
from .settings import Clock, Settings

logger = logging.getLogger("gatehouse")
T = TypeVar("T")

# What an introspection says: a caller, None for an inactive token, or why there is no answer.
Outcome = Union[Caller, None, Unavailable]


class _Guard:
    """What both clients decide without asking the service."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def require(self, caller: Caller, warehouse_id: str, right: str) -> None:
        """Raises a `Refusal` with 403 if the caller lacks the right in the warehouse."""
        if not caller.can(warehouse_id, right):
            text = f"this needs the right {right} in the warehouse"
            raise self._with_metadata(Refusal(403, text, "insufficient_scope"))

    def _token(self, request: Request) -> str:
        try:
            return read_token(request)
        except Refusal as refusal:
            raise self._with_metadata(refusal) from None

    def _with_metadata(self, refusal: Refusal) -> Refusal:
        refusal.resource_metadata = self.settings.resource_metadata
        return refusal


class AsyncGatehouse(_Guard):
    """Authenticates the calls of an API on asyncio, in the event loop that uses it first.

    The change stream is opened by `async with` or by the first call, and closed by `aclose`.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Optional[Clock] = None,
        transport: Optional[httpx.AsyncBaseTransport] = None,
    ) -> None:
        super().__init__(settings)
        self._clock = clock or Clock()
        self._transport = transport
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._in_progress: dict[bytes, list[asyncio.Task[Outcome]]] = {}
        self._reported: Optional[str] = None

    async def __aenter__(self) -> "AsyncGatehouse":
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def start(self) -> None:
        """Opens the change stream. Calls do so, too."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            raise RuntimeError(
                "this AsyncGatehouse belongs to another event loop: "
                "create one in each event loop, or use Gatehouse, which works in all threads"
            )
        self._connection = Connection(self.settings, self._transport)
        self._changes = Changes(self._connection, self._clock, lambda ids: self._cache.changed(ids))
        self._cache = Cache(self.settings, self._clock, self._changes.is_standing, self._set_timer)
        self._loop = loop
        if self.settings.live:
            self._reading = loop.create_task(self._changes.run())

    async def aclose(self) -> None:
        """Ends the change stream and what is remembered, and closes all connections.

        Waits until the requests in progress have their answers, or reach their time limits.
        """
        if self._loop is None:
            return
        if self.settings.live:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._cache.changed(())
        requests = [task for tasks in self._in_progress.values() for task in tasks]
        await asyncio.gather(*requests, return_exceptions=True)
        await self._connection.close()

    async def authenticate(self, request: Request) -> Caller:
        """Returns the caller of a request. Raises a `Refusal` with 400, 401 or 503."""
        return await self.introspect(self._token(request))

    async def introspect(self, token: str) -> Caller:
        """Returns the caller of a token. Raises a `Refusal` with 401 or 503."""
        self.start()
        key = _key(token)
        caller = self.remembered(key)
        if caller is not None:
            return caller
        waiting = asyncio.shield(self._shared_request(key, token))
        try:
            outcome = await asyncio.wait_for(waiting, self.settings.timeout_seconds)
        except asyncio.TimeoutError:
            outcome = Unavailable("timed_out")
        self._report(outcome)
        if isinstance(outcome, Caller):
            return outcome
        if outcome is None:
            raise self._with_metadata(invalid_token())
        # A new one each time: calls that share a request must not share an exception.
        raise Unavailable(outcome.reason, outcome.retry_after_seconds)

    def remembered(self, key: bytes) -> Optional[Caller]:
        """Returns what is remembered by the hash of a token. Safe in any thread."""
        return self._cache.get(key) if self._loop is not None else None

    def _shared_request(self, key: bytes, token: str) -> "asyncio.Task[Outcome]":
        """Returns a request that is sent after this call: at most one per token is in progress."""
        tasks = self._in_progress.setdefault(key, [])
        if len(tasks) < 2:
            before = tasks[0] if tasks else None
            task = asyncio.create_task(self._request(key, token, before))
            tasks.append(task)
            task.add_done_callback(lambda done: self._finish(key, done))
        return tasks[-1]

    def _finish(self, key: bytes, task: "asyncio.Task[Outcome]") -> None:
        tasks = self._in_progress[key]
        tasks.remove(task)
        if not tasks:
            del self._in_progress[key]

    async def _request(
        self, key: bytes, token: str, before: Optional["asyncio.Task[Outcome]"]
    ) -> Outcome:
        if before is not None:
            await asyncio.wait({before})
        sent = self._cache.sent()
        try:
            response, body = await self._connection.introspect(token)
            if response.status_code == 200:
                caller = read_answer(body, self.settings.issuer)
                return self._cache.answered(key, sent, caller)
        except httpx.TimeoutException:
            return Unavailable("timed_out")
        except (MalformedAnswer, TooLong):
            return Unavailable("malformed_answer")
        except httpx.HTTPError:
            return Unavailable("unreachable")
        except Exception:
            logger.exception("introspection failed")
            return Unavailable("failed")
        reason = {401: "credentials_refused", 429: "throttled"}.get(response.status_code, "failed")
        return Unavailable(reason, retry_after_seconds(response) or 2)

    def _set_timer(self, signal: Ended, delay_ms: int, fire: Callable[[], None]) -> None:
        assert self._loop is not None
        signal.timer = self._loop.call_later(delay_ms / 1_000, fire)

    def _report(self, outcome: Outcome) -> None:
        """Logs only what is new: an unavailable service would fill the log."""
        reason = outcome.reason if isinstance(outcome, Unavailable) else None
        if reason and reason != self._reported:
            logger.warning("introspection at %s failed: %s", self.settings.endpoint, reason)
        self._reported = reason


class Gatehouse(_Guard):
    """Authenticates the calls of an API in threads, also in processes that fork.

    The change stream is opened by `with` or by the first call, and closed by `close`.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._lock = threading.Lock()
        self._pid = 0

    def __enter__(self) -> "Gatehouse":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Opens the change stream in a thread of this process. Calls do so, too."""
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid == os.getpid():
                return
            # A fork copies no threads: the child needs a loop and connections of its own.
            self._loop = asyncio.new_event_loop()
            self._gate = AsyncGatehouse(self.settings)
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="gatehouse", daemon=True
            )
            self._thread.start()
            self._run(self._gate.__aenter__(), None)
            self._pid = os.getpid()

    def close(self) -> None:
        """Ends the change stream and its thread."""
        if self._pid == os.getpid():
            self._run(self._gate.aclose(), None)
            self._run(_others_end(), None)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._pid = 0

    def authenticate(self, request: Request) -> Caller:
        """Returns the caller of a request. Raises a `Refusal` with 400, 401 or 503."""
        return self.introspect(self._token(request))

    def introspect(self, token: str) -> Caller:
        """Returns the caller of a token. Raises a `Refusal` with 401 or 503."""
        self.start()
        caller = self._gate.remembered(_key(token))
        if caller is not None:
            return caller
        # The event loop ends the look-up in time, unless the loop itself is stalled.
        return self._run(self._gate.introspect(token), self.settings.timeout_seconds + 1)

    def _run(self, coroutine: Coroutine[Any, Any, T], timeout_seconds: Optional[float]) -> T:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout_seconds)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise Unavailable("timed_out") from None


async def _others_end() -> None:
    """Waits for the calls in progress: an event loop that is closed destroys its tasks."""
    await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)


def _key(token: str) -> bytes:
    """Returns the hash under which the answer is remembered: memory holds no tokens."""
    return hashlib.sha256(token.encode()).digest()
