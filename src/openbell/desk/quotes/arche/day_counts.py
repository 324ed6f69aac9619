"""How many minutes each UTC day of a series has, so that a page of a year is found without reading the year.

Days that are over are counted once, and again only after the store has changed them. The counts of a year take 730 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from openbell.market.series import Series
from openbell.stores.port import BarStore, Version

DAY = 86400
Counts = npt.NDArray[np.int16]
_UNKNOWN = -1
_PIECE = 31
"""Days that are read at once."""
_KEPT = 4096
"""Series whose counts are kept."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """Counts of the days from `first` on, as the store had them at `version`."""

    version: Version
    first: int
    counts: Counts
    begun: tuple[int, int] | None = None
    """A time, and the minutes of its day before it: those of a day that is not over."""

    def between(self, first: int, last: int) -> Counts:
        """Returns the counts of the days [first, last)."""
        found = np.full(last - first, _UNKNOWN, dtype=np.int16)
        low, high = max(first, self.first), min(last, self.first + len(self.counts))
        if low < high:
            found[low - first : high - first] = self.counts[low - self.first : high - self.first]
        return found


class DayCounts:
    """Counts the minutes of days. Every call may block, and any number of threads may call it."""

    def __init__(self, store: BarStore) -> None:
        self._store = store
        self._counted: dict[Series, _Counted] = {}

    def of(self, series: Series, first: int, last: int, end: int) -> Counts:
        """Returns for each day in [first, last) how many minutes before `end` are stored."""
        over = max(first, min(last, end // DAY))
        held = self._known(series, first, over)
        begun = held.begun
        counts = np.zeros(last - first, dtype=np.int16)
        counts[: over - first] = held.between(first, over)
        if over < last and over * DAY < end:
            if begun is None or begun[0] != end:
                begun = (end, len(self._store.read(series, over * DAY, end)))
            counts[over - first] = begun[1]
        self._keep(series, replace(held, begun=begun))
        return counts

    def _known(self, series: Series, first: int, last: int) -> _Counted:
        """Returns counts that have all days in [first, last), which are over."""
        version = self._store.versions.of(series)  # taken before the reads: what is written meanwhile is read again
        held = self._counted.get(series) or _Counted(version, first, np.zeros(0, dtype=np.int16))
        low, high = min(held.first, first), max(held.first + len(held.counts), last)
        counts, begun = held.between(low, high), held.begun
        changed = self._store.versions.changed_since(series, held.version)
        if changed is not None:
            counts[max(0, changed // DAY - low) :] = _UNKNOWN
            begun = None
        for start, stop in _unknown_pieces(counts[first - low : last - low], first):
            days = self._store.read(series, start * DAY, stop * DAY).time // DAY - start
            counts[start - low : stop - low] = np.bincount(days, minlength=stop - start)
        return _Counted(version, low, counts, begun)

    def _keep(self, series: Series, counted: _Counted) -> None:
        self._counted.pop(series, None)
        self._counted[series] = counted
        while len(self._counted) > _KEPT:
            self._counted.pop(next(iter(self._counted)), None)


def _unknown_pieces(counts: Counts, first: int) -> Iterator[tuple[int, int]]:
    """Yields the runs of days without a count, in pieces."""
    unknown = np.flatnonzero(counts == _UNKNOWN)
    if not len(unknown):
        return
    for run in np.split(unknown, np.flatnonzero(np.diff(unknown) > 1) + 1):
        start, stop = first + int(run[0]), first + int(run[-1]) + 1
        for at in range(start, stop, _PIECE):
            yield at, min(at + _PIECE, stop)
