"""Keeps a change stream open, and hands over to the next one when a node shuts down."""

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Callable, Optional

import httpx

from .connection import Connection, retry_after_seconds
from .settings import Clock
from .stream import StreamLost, StreamReader

MIN_HANDOVER_MS = 1_000
MAX_RETRY_AFTER_SECONDS = 600

logger = logging.getLogger("gatehouse")


class Changes:
    """The current stream, and during a handover the next one.

    `changed` is called with the ids of each change, and without ids if everything may have changed.
    """

    def __init__(
        self, connection: Connection, clock: Clock, changed: Callable[[Sequence[str]], None]
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._changed = changed
        self._current: Optional[StreamReader] = None
        self._next: Optional[StreamReader] = None
        self._failures = 0
        self._wait_ms = 0.0
        self._state_changed = asyncio.Event()
        self._reported: Optional[str] = None

    def is_standing(self, now_ms: int) -> bool:
        """Returns whether no change can have been missed. Safe in any thread."""
        current = self._current
        return current is not None and current.is_standing(now_ms)

    async def run(self) -> None:
        """Opens streams until it is cancelled."""
        streams: set[asyncio.Task[None]] = set()
        try:
            while True:
                while not self._needs_stream():
                    self._state_changed.clear()
                    await self._state_changed.wait()
                # Before a handover: a load balancer must choose another node, and not all APIs at once.
                handover_ms = random.random() * 750 if self._current else 0
                await asyncio.sleep((self._wait_ms or handover_ms) / 1_000)
                if self._needs_stream():
                    stream = StreamReader(self._clock.monotonic_ms())
                    if self._current is None:
                        self._current = stream
                    else:
                        self._next = stream
                    task = asyncio.create_task(self._follow(stream))
                    streams.add(task)
                    task.add_done_callback(streams.discard)
        finally:
            for task in streams:
                task.cancel()
            if streams:
                await asyncio.wait(streams, timeout=1)

    def _needs_stream(self) -> bool:
        return self._current is None or (self._current.is_leaving and self._next is None)

    async def _follow(self, stream: StreamReader) -> None:
        retry_after = 0
        try:
            reason, retry_after = await self._read(stream)
        except httpx.TimeoutException:
            reason = "timed_out"
        except (httpx.HTTPError, StreamLost) as error:
            reason = str(error) or type(error).__name__
        except Exception:
            logger.exception("the change stream failed")
            reason = "failed"
        self._lost(stream, reason, retry_after)

    async def _read(self, stream: StreamReader) -> tuple[str, int]:
        """Reads to the end. Returns why there is no stream any more, and the Retry-After."""
        async with self._connection.open_stream() as response:
            if response.status_code != 200:
                status = response.status_code
                reason = "credentials_refused" if status == 401 else f"status {status}"
                return reason, retry_after_seconds(response) or 0
            media_type = response.headers.get("Content-Type", "").partition(";")[0]
            if media_type.strip().lower() != "text/event-stream":
                return "malformed_answer", 0
            stream.last_sign_ms = self._clock.monotonic_ms()
            self._watch(stream)
            async for piece in response.aiter_raw():
                if stream not in (self._current, self._next):
                    break
                now_ms = self._clock.monotonic_ms()
                for kind, ids in stream.read(piece.decode("latin-1"), now_ms):
                    self._handle(stream, kind, ids)
                if stream is self._current:
                    self._hand_over(stream.last_sign_ms, now_ms)
            return "the service ended the stream", 0

    def _watch(self, stream: StreamReader) -> None:
        """Gives a silent stream up at once; its connection ends by itself."""
        left_ms = stream.silence_left_ms(self._clock.monotonic_ms())
        if left_ms <= 0:
            self._lost(stream, "silent", 0)
        elif stream in (self._current, self._next):
            loop = asyncio.get_running_loop()
            loop.call_later(left_ms / 1_000, self._watch, stream)

    def _handle(self, stream: StreamReader, kind: str, ids: Sequence[str]) -> None:
        if kind == "begins":
            self._failures, self._wait_ms = 0, 0
            self._report(None)
            if stream is self._current:
                self._changed(())
        elif kind == "leaving":
            stream.is_leaving = True
            self._state_changed.set()
        else:
            if kind == "unknown line":
                logger.warning("unknown line on the change stream: everything may have changed")
            self._changed(ids)

    def _hand_over(self, last_sign_ms: int, now_ms: int) -> None:
        """Makes the next stream the current one, once no change can be missing."""
        following = self._next
        if following is None or following.begun_ms is None or not following.is_standing(now_ms):
            return
        if last_sign_ms - following.begun_ms >= MIN_HANDOVER_MS:
            self._current, self._next = following, None
            self._state_changed.set()

    def _lost(self, stream: StreamReader, reason: str, retry_after: int) -> None:
        if stream not in (self._current, self._next):
            return  # It was handed over.
        self._report(reason)
        self._state_changed.set()
        if stream is self._current:
            self._current, self._next = self._next, None
            self._changed(())
            if self._current is not None:
                return  # The handover was too short, but there is a stream.
        self._next = None
        if stream.begun_ms is not None:
            self._wait_ms = random.random() * 1_000
        else:
            backoff_ms = min(250 * 2 ** min(self._failures, 3), 2_000)
            wait_ms = max(backoff_ms, min(retry_after, MAX_RETRY_AFTER_SECONDS) * 1_000)
            self._wait_ms = wait_ms * (1 + random.random() / 2)
            self._failures += 1

    def _report(self, reason: Optional[str]) -> None:
        """Logs only what is new: an unavailable service would fill the log."""
        if reason == self._reported:
            return
        self._reported = reason
        if reason is None:
            logger.info("the change stream is open")
        else:
            logger.warning("no change stream, so each call is introspected: %s", reason)
