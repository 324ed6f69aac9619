"""Sessions as columns: which session each of many bar times belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import eastern, sessions_of

Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SessionTable:
    """The sessions of some years, one row each, times in epoch seconds."""

    premarket: Times
    open: Times
    close: Times
    end: Times
    week: Times
    """The ordinal date of the Monday before: what groups sessions into weeks."""

    def regular(self, times: Times) -> Times:
        """For each time the row of the session in whose regular hours it lies, or −1."""
        return self._within(times, self.open, self.close)

    def extended(self, times: Times) -> Times:
        """For each time the row of the session in whose hours, extended ones included, it lies, or −1."""
        return self._within(times, self.premarket, self.end)

    @staticmethod
    def _within(times: Times, starts: Times, ends: Times) -> Times:
        if not len(starts):
            return np.full(len(times), -1, dtype=np.int64)
        row = np.searchsorted(starts, times, side="right").astype(np.int64) - 1
        inside = (row >= 0) & (times < ends[np.maximum(row, 0)])
        return np.where(inside, row, -1)


@lru_cache(maxsize=32)
def _table(first_year: int, last_year: int) -> SessionTable:
    rows = [session for year in range(first_year, last_year + 1) for session in sessions_of(year)]

    def column(values: list[int]) -> Times:
        return np.array(values, dtype=np.int64)

    return SessionTable(
        column([s.premarket for s in rows]),
        column([s.open for s in rows]),
        column([s.close for s in rows]),
        column([s.end for s in rows]),
        column([s.day.toordinal() - s.day.weekday() for s in rows]),
    )


def table_for(first: float, last: float) -> SessionTable:
    """The sessions of every year that touches [first, last]."""
    return _table(eastern(first).year, eastern(last).year)


def trading_day(instrument: Instrument, times: Times) -> Times:
    """A number per bar that is equal for bars of one trading day, −1 outside it.

    Regular hours of a session for stocks, the UTC day for what trades around the clock: where a session VWAP resets.
    """
    if instrument.asset_class is not AssetClass.STOCK:
        return times // 86400
    if not len(times):
        return times.copy()
    return table_for(int(times[0]), int(times[-1])).regular(times)
