"""A cache for answers: keyed by every argument, bounded in time and number, one computation at a time per key."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any

from openbell.desk.flight import SingleFlight


@dataclass(frozen=True, slots=True)
class Answer:
    """A value with its age: whether it was cached, and for how long it may still be."""

    value: Any
    cached: bool
    remaining: float | None


class TtlCache:
    """Ages are monotonic system time: a standing market clock does not keep an answer fresh for ever."""

    def __init__(self, most: int = 1024, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._entries: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._flights = SingleFlight()
        self._forgotten = 0
        """How often something was dropped: what was begun before that is told to who asked then, and not kept."""

    async def get(
        self, key: Hashable, ttl: float, work: Callable[[], Awaitable[Any]], *, refresh: bool = False
    ) -> Answer:
        """The cached value, or what `work` gives; `refresh` bypasses what is there and replaces it."""
        if ttl <= 0:
            return Answer(await work(), cached=False, remaining=None)
        entry = self._entries.get(key)
        if entry and not refresh and entry[0] > self._now():
            self._entries.move_to_end(key)
            return Answer(entry[1], cached=True, remaining=entry[0] - self._now())
        began = self._forgotten
        value = await self._flights.run((key, refresh, began), work)
        if began != self._forgotten:
            return Answer(value, cached=False, remaining=None)
        self._entries[key] = (self._now() + ttl, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return Answer(value, cached=False, remaining=None)

    def forget(self, chosen: Callable[[Hashable], bool]) -> None:
        """Drop the entries whose key is chosen: what a write has changed."""
        self._forgotten += 1
        for key in [key for key in self._entries if chosen(key)]:
            del self._entries[key]
