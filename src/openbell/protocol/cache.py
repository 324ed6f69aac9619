"""A cache of results: keyed by every argument, bounded in age and number, with one computation at a time for each key."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, NamedTuple

from openbell.desk.flight import SingleFlight


class Answer(NamedTuple):
    """A value, whether it came from the cache, and for how many more seconds the cache keeps it."""

    value: Any
    cached: bool
    remaining: float | None


class TtlCache:
    """Ages are measured in monotonic system time, so that entries also expire while the market clock is fixed."""

    def __init__(self, most: int = 1024, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._entries: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._flights = SingleFlight()
        self._drops = 0
        """Number of calls of `drop`. A value whose computation began before one is returned but not cached."""

    async def get(
        self, key: Hashable, ttl: float, work: Callable[[], Awaitable[Any]], *, refresh: bool = False
    ) -> Answer:
        """Returns the cached value, or the result of `work`. `refresh` ignores the cached value and replaces it."""
        if ttl <= 0:
            return Answer(await work(), cached=False, remaining=None)
        entry = self._entries.get(key)
        if entry and not refresh and entry[0] > self._now():
            self._entries.move_to_end(key)
            return Answer(entry[1], cached=True, remaining=entry[0] - self._now())
        drops = self._drops
        value = await self._flights.run((key, refresh, drops), work)
        if drops != self._drops:
            return Answer(value, cached=False, remaining=None)
        self._entries[key] = (self._now() + ttl, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return Answer(value, cached=False, remaining=None)

    def drop(self, chosen: Callable[[Hashable], bool]) -> None:
        """Remove the entries for whose key `chosen` returns True, after a write changed what they hold."""
        self._drops += 1
        for key in [key for key in self._entries if chosen(key)]:
            del self._entries[key]
