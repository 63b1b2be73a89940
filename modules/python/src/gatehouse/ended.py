"""The signal for work that outlives its request."""

import asyncio
import logging
import threading
from typing import Callable, Optional

logger = logging.getLogger("gatehouse")
# One lock for all signals, held for moments: a lock of its own would cost each signal memory.
_lock = threading.Lock()


class Ended:
    """Fires once and stays fired. Safe to use from threads and from asyncio."""

    __slots__ = ("_callbacks", "timer")

    def __init__(self) -> None:
        self._callbacks: Optional[list[Callable[[], None]]] = []
        self.timer: Optional[asyncio.TimerHandle] = None

    def is_set(self) -> bool:
        """Returns whether the signal has fired."""
        return self._callbacks is None

    def on_end(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls the callback once, at once if the signal has fired; returns how to withdraw it.

        The callback runs in the thread that reads the change stream: it must not block.
        """
        with _lock:
            callbacks = self._callbacks
            if callbacks is not None:
                callbacks.append(callback)
        if callbacks is None:
            callback()

        def withdraw() -> None:
            with _lock:
                if self._callbacks is not None and callback in self._callbacks:
                    self._callbacks.remove(callback)

        return withdraw

    def wait(self, timeout_seconds: Optional[float] = None) -> bool:
        """Waits in a thread. Returns False if the signal has not fired in time."""
        event = threading.Event()
        withdraw = self.on_end(event.set)
        try:
            return event.wait(timeout_seconds)
        finally:
            withdraw()

    async def wait_async(self) -> None:
        """Waits in asyncio until the signal fires."""
        event = asyncio.Event()
        loop = asyncio.get_running_loop()
        withdraw = self.on_end(lambda: _call_in(loop, event.set))
        try:
            await event.wait()
        finally:
            withdraw()

    def fire(self) -> None:
        """Fires the signal; only this module calls it, in the thread of its event loop."""
        with _lock:
            callbacks, self._callbacks = self._callbacks, None
        if self.timer is not None:
            self.timer.cancel()
        for callback in callbacks or ():
            try:
                callback()
            except Exception:
                logger.exception("a callback of Ended.on_end failed")


def _call_in(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(callback)
