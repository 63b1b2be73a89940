"""Remembers active answers for as long as the change stream says that nothing changed.

All methods but `get` run in the thread of the event loop. `get` may run in any thread.
"""

import threading
from collections.abc import Sequence
from typing import Callable, NamedTuple, Optional

from .answer import Caller
from .ended import Ended
from .settings import Clock, Settings

# The node that answers may receive a change this much later than the node that announced it.
UNSETTLED_MS = 5_000
MAX_RECENT_NAMES = 10_000
MAX_TIMER_MS = 3_650 * 86_400_000


class Sent(NamedTuple):
    """The moment at which a request was sent; `change` orders it among the changes."""

    change: int
    monotonic_ms: int
    unix_ms: int


class Cache:
    """Active answers by the hash of their token.

    `set_timer` calls a function after some milliseconds, in the thread of the event loop.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        is_standing: Callable[[int], bool],
        set_timer: Callable[[Ended, int, Callable[[], None]], None],
    ) -> None:
        self._limit_ms = int(settings.remember_for_seconds * 1_000)
        self._max_entries = settings.most_remembered
        self._clock = clock
        self._is_standing = is_standing
        self._set_timer = set_timer
        self._lock = threading.Lock()
        # Without the moment of its request an answer is not used, but its signal is still fired.
        self._entries: dict[bytes, tuple[Caller, Optional[Sent]]] = {}
        self._keys_by_name: dict[str, set[bytes]] = {}
        self._change = 0
        # The latest change of each name and of everything: its number and its time.
        self._recent: dict[str, tuple[int, int]] = {}
        self._everything = (0, -UNSETTLED_MS)
        # The number of the latest change whose name is no longer kept.
        self._last_dropped = 0

    def get(self, key: bytes) -> Optional[Caller]:
        """Returns the remembered caller if the answer may be used now."""
        with self._lock:
            now_ms, unix_ms = self._clock.monotonic_ms(), self._clock.unix_ms()
            caller, sent = self._entries.get(key, (None, None))
            if caller is None or sent is None or not self._is_standing(now_ms):
                return None
            # Use both clocks: one stops while the machine sleeps, the other may be set.
            age_ms = max(now_ms - sent.monotonic_ms, unix_ms - sent.unix_ms)
            is_usable = unix_ms >= sent.unix_ms and age_ms < self._limit_ms
            return caller if is_usable and not _has_expired(caller, unix_ms) else None

    def sent(self) -> Sent:
        """Returns the present moment, for a request that is about to be sent."""
        return Sent(self._change, self._clock.monotonic_ms(), self._clock.unix_ms())

    def answered(self, key: bytes, sent: Sent, caller: Optional[Caller]) -> Optional[Caller]:
        """Remembers the answer if it may be remembered. Returns its caller, with its signal."""
        now_ms = self._clock.monotonic_ms()
        ended: list[Ended] = []
        with self._lock:
            is_standing = self._is_standing(now_ms)
            if not is_standing:
                self._end_all(ended)
            number, changed_ms = self._latest_change(caller)
            is_outdated = not is_standing or max(number, self._last_dropped) > sent.change
            settled_ms = changed_ms + UNSETTLED_MS
            is_settled = sent.monotonic_ms >= settled_ms
            known, _ = self._entries.get(key, (None, None))
            is_new = is_outdated or known != caller
            if is_new:
                self._end(key, ended)
            else:
                caller = known  # The signal of an unchanged answer stays.
            if caller is not None and is_outdated:
                ended.append(caller.ended)
            elif caller is not None and (is_settled or is_new):
                self._remember(key, caller, sent if is_settled else None, ended)
                if is_new:
                    self._set_end(key, caller, None if is_settled else settled_ms - now_ms)
        _fire(ended)
        return caller

    def changed(self, ids: Sequence[str]) -> None:
        """Ends what a line of the change stream concerns; no ids mean everything."""
        now_ms = self._clock.monotonic_ms()
        ended: list[Ended] = []
        with self._lock:
            self._change += 1
            if ids:
                self._recent.pop(ids[0], None)  # Last in the order again.
                self._recent[ids[0]] = (self._change, now_ms)
                for key in list(self._keys_by_name.get(ids[0], ())):
                    caller, _ = self._entries[key]
                    if len(ids) == 1 or (caller.subject, caller.client_id) == tuple(ids):
                        self._end(key, ended)
            else:
                self._end_all(ended)
            if not ids or len(self._recent) > MAX_RECENT_NAMES:
                self._everything = (self._change, now_ms)
                self._recent.clear()
            while self._recent:
                name, (number, at_ms) = next(iter(self._recent.items()))
                if now_ms - at_ms < UNSETTLED_MS:
                    break
                self._last_dropped = number
                del self._recent[name]
        _fire(ended)

    def _latest_change(self, caller: Optional[Caller]) -> tuple[int, int]:
        names = caller.names if caller else ()
        recent = [self._recent[name] for name in names if name in self._recent]
        return max([self._everything, *recent])

    def _remember(
        self, key: bytes, caller: Caller, sent: Optional[Sent], ended: list[Ended]
    ) -> None:
        self._entries.pop(key, None)  # Last in the order again.
        self._entries[key] = (caller, sent)
        for name in caller.names:
            self._keys_by_name.setdefault(name, set()).add(key)
        if len(self._entries) > self._max_entries:
            self._end(next(iter(self._entries)), ended)

    def _set_end(self, key: bytes, caller: Caller, delay_ms: Optional[int]) -> None:
        """Ends the entry after the delay and at `exp`."""
        delays_ms = [] if delay_ms is None else [delay_ms]
        if caller.expires_at is not None:
            left_ms = caller.expires_at * 1_000 - self._clock.unix_ms()
            delays_ms.append(int(min(max(0, left_ms), MAX_TIMER_MS)))

        def fire() -> None:
            ended: list[Ended] = []
            with self._lock:
                known, _ = self._entries.get(key, (None, None))
                if known is caller:
                    self._end(key, ended)
            _fire(ended)

        if delays_ms:
            self._set_timer(caller.ended, min(delays_ms), fire)

    def _end(self, key: bytes, ended: list[Ended]) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        for name in entry[0].names:
            keys = self._keys_by_name[name]
            keys.discard(key)
            if not keys:
                del self._keys_by_name[name]
        ended.append(entry[0].ended)

    def _end_all(self, ended: list[Ended]) -> None:
        ended.extend(caller.ended for caller, _ in self._entries.values())
        self._entries.clear()
        self._keys_by_name.clear()


def _has_expired(caller: Caller, unix_ms: int) -> bool:
    return caller.expires_at is not None and unix_ms >= caller.expires_at * 1_000


def _fire(ended: list[Ended]) -> None:
    # After the lock is released: a callback may call the module.
    for signal in ended:
        signal.fire()
