"""Reads the lines of one change stream, and knows when the stream is silent."""

import re
from collections.abc import Iterator
from typing import Optional

# The headers must be followed by a heartbeat in this time, and no silence may be longer.
MAX_SILENCE_MS = 2_000
# What a heartbeat may be late by, in addition to its announced interval.
LATENESS_MS = 650
MAX_LINE_LENGTH = 1_000
HEARTBEAT = re.compile(r": heartbeat-ms=([0-9]{1,6})")
CHANGE = re.compile(r"data: ([A-Za-z0-9_-]+)(?: ([A-Za-z0-9_-]+))?")

# What a line says: its kind, and the ids that have changed (none: everything).
Event = tuple[str, tuple[str, ...]]


class StreamLost(Exception):
    """The stream cannot be relied on any more."""


class StreamReader:
    """A stream since its request; the silence counts from its headers. All times are monotonic."""

    def __init__(self, now_ms: int) -> None:
        self.begun_ms: Optional[int] = None
        self.is_leaving = False
        self.last_sign_ms = now_ms
        self._max_silence_ms = MAX_SILENCE_MS
        self._incomplete = ""

    def silence_left_ms(self, now_ms: int) -> int:
        """Returns how long the stream may stay silent; 0 or less if it is silent already."""
        return self.last_sign_ms + self._max_silence_ms - now_ms

    def is_standing(self, now_ms: int) -> bool:
        """Returns whether the stream has begun and is not silent."""
        return self.begun_ms is not None and self.silence_left_ms(now_ms) > 0

    def read(self, piece: str, now_ms: int) -> Iterator[Event]:
        """Yields the events of a piece that has arrived. Raises StreamLost."""
        if self.silence_left_ms(now_ms) <= 0:
            raise StreamLost("silent")
        *lines, self._incomplete = (self._incomplete + piece).split("\n")
        for line in lines:
            if line:
                yield from self._line(line, now_ms)
        if len(self._incomplete) > MAX_LINE_LENGTH:
            raise StreamLost("overlong line")

    def _line(self, line: str, now_ms: int) -> Iterator[Event]:
        change = CHANGE.fullmatch(line)
        if line.startswith(":"):
            self.last_sign_ms = now_ms
            announced = HEARTBEAT.fullmatch(line)
            if announced:
                interval_ms = int(announced.group(1))
                self._max_silence_ms = min(interval_ms + LATENESS_MS, MAX_SILENCE_MS)
            if self.begun_ms is None:
                self.begun_ms = now_ms
                yield "begins", ()
            if line == ": leaving":
                yield "leaving", ()
        elif self.begun_ms is None:
            return  # The beginning ends everything that is remembered anyway.
        elif change:
            self.last_sign_ms = now_ms
            ids = tuple(each for each in change.groups() if each)
            yield "changed", () if ids == ("everything",) else ids
        else:
            yield "unknown line", ()
