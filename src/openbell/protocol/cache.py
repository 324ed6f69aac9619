"""A cache of results: keyed by every argument, bounded in age, number and size, with one computation at a time for each
key.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from openbell.desk.bars.single_flight import SingleFlight

MOST_VALUES = 400_000
"""The size of all results that are kept: about 35 MB. A thousand candles have 7,000 values."""
_TEXT = 80
"""Characters of a text that take about as much memory as another value."""
_ROWS = 32
"""Rows of a list that are counted."""


class CachedResult(NamedTuple):
    """A value, whether it came from the cache, and for how many more seconds the cache keeps it."""

    value: Any
    cached: bool
    remaining: float | None


class _Entry(NamedTuple):
    until: float
    value: Any
    size: int


class TtlCache:
    """Ages are measured in monotonic system time, so that entries also expire while the market clock is fixed."""

    def __init__(
        self, most: int = 1024, most_values: int = MOST_VALUES, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._most_values = most_values
        self._now = now
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._values = 0
        """The size of all entries."""
        self._flights = SingleFlight()
        self._drops = 0
        """Number of calls of `drop`. A value whose computation began before one is returned but not cached."""

    async def get(
        self,
        key: Hashable,
        ttl: float,
        work: Callable[[], Awaitable[Any]],
        *,
        refresh: bool = False,
        keeps: Callable[[Any], bool] = lambda _: True,
    ) -> CachedResult:
        """Returns the cached value, or the result of `work`, which is cached if `keeps` returns True for it.

        `refresh` ignores the cached value and replaces it.
        """
        if ttl <= 0:
            return CachedResult(await work(), cached=False, remaining=None)
        entry = self._entries.get(key)
        if entry and not refresh and entry.until > self._now():
            self._entries.move_to_end(key)
            return CachedResult(entry.value, cached=True, remaining=entry.until - self._now())
        drops = self._drops
        value = await self._flights.run((key, refresh, drops), work)
        if drops != self._drops or not keeps(value):
            return CachedResult(value, cached=False, remaining=None)
        self._remove(key)
        entry = self._entries[key] = _Entry(self._now() + ttl, value, size(value))
        self._values += entry.size
        while len(self._entries) > self._most or self._values > self._most_values:
            self._remove(next(iter(self._entries)))
        return CachedResult(value, cached=False, remaining=None)

    def drop(self, chosen: Callable[[Hashable], bool]) -> None:
        """Remove the entries for whose key `chosen` returns True, after a write changed what they hold."""
        self._drops += 1
        for key in [key for key in self._entries if chosen(key)]:
            self._remove(key)

    def _remove(self, key: Hashable) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._values -= entry.size


def size(value: Any) -> int:
    """Returns about how many values an object holds, also inside dataclasses; a long text counts as several.

    The rows of a long list are alike: a few of them are counted for all.
    """
    if isinstance(value, dict):
        return 1 + sum(map(size, value.values()))
    if isinstance(value, list | tuple):
        counted = value[:: len(value) // _ROWS + 1]
        return 1 + sum(map(size, counted)) * len(value) // max(1, len(counted))
    if isinstance(value, str | bytes):
        return 1 + len(value) // _TEXT
    if is_dataclass(value):
        return 1 + sum(size(getattr(value, each.name)) for each in fields(value))
    return 1
