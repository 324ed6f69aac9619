"""Sessions as numpy columns, to find the session of many bar times at once."""

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
    """The sessions of some years, one row per session, times in epoch seconds."""

    premarket: Times
    open: Times
    close: Times
    end: Times
    week: Times
    """The ordinal date of the Monday of the session's week."""

    def regular(self, times: Times) -> Times:
        """Returns for each time the row of the session whose regular hours contain it, or −1."""
        return self._within(times, self.open, self.close)

    def extended(self, times: Times) -> Times:
        """Returns for each time the row of the session whose regular or extended hours contain it, or −1."""
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
    """Returns the sessions of all years that overlap [first, last]."""
    return _table(eastern(first).year, eastern(last).year)


def trading_day(instrument: Instrument, times: Times) -> Times:
    """Returns a number for each bar that is equal for all bars of a trading day; −1 for bars outside all trading days.

    A trading day is the regular hours of a session for stocks and the UTC day for other instruments. A session VWAP starts
    again with each trading day.
    """
    if instrument.asset_class is not AssetClass.STOCK:
        return times // 86400
    if not len(times):
        return times.copy()
    return table_for(int(times[0]), int(times[-1])).regular(times)
