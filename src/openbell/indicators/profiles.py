"""Profiles: the volume traded at each price, or the number of bars that touched it.

The price range of a session is divided into rows of equal height. A bar's volume is spread evenly over the prices between
its low and its high, so a row gets the share of the bar's range that lies within it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import HorizontalBar
from openbell.indicators.regular_hours import session_days, session_rows
from openbell.indicators.spec import Parameter
from openbell.market.bars import Bars, Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times

SESSIONS = ("daily", "weekly", "hourly")
SESSION_PARAMETERS = (Parameter("bins", 24, 1, 200), Parameter("session", "daily", choices=SESSIONS))
"""The parameters of profiles that are made for each session."""
WIDEST = 0.3
"""Width of the longest row, as a share of the chart's width."""
THIN = 0.25
"""Height of a bar that shows a single price, as a share of its row's height."""

_HOUR, _WEEK = 3600, 604800
_MONDAY = 345600  # 1970-01-05, the first Monday

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Bars grouped by session; bars outside of sessions are left out."""

    bars: Bars
    begins: Indices
    """The index of each session's first bar in `bars`."""
    first: Indices
    """The index of each session's first (and `last`) bar among all bars, including those left out."""
    last: Indices

    def __len__(self) -> int:
        return len(self.begins)

    def latest(self, count: int) -> Sessions:
        """The latest `count` sessions."""
        if len(self) <= count:
            return self
        start = self.begins[-count]
        bars = self.bars.take(slice(int(start), None))
        return Sessions(bars, self.begins[-count:] - start, self.first[-count:], self.last[-count:])


def one_session(bars: Bars) -> Sessions:
    """All bars as one session; no session if there are no bars."""
    first = np.zeros(min(1, len(bars)), dtype=np.intp)
    return Sessions(bars, first, first, first + len(bars) - 1)


def by_session(bars: Bars, kind: str) -> Sessions:
    """Group by trading day, by week of trading days, or by clock hour: `kind` is one of `SESSIONS`."""
    number = _numbers(bars, kind)
    places = np.flatnonzero(number >= 0)
    number = number[places]
    begins, ends = np.ones((2, len(number)), dtype=bool)
    begins[1:] = ends[:-1] = number[1:] != number[:-1]
    return Sessions(bars.take(places), np.flatnonzero(begins), places[begins], places[ends])


def _numbers(bars: Bars, kind: str) -> Times:
    """A number per bar that is equal within a session; −1 for a stock's bars outside of regular hours.

    A bar that overlaps regular hours belongs to them, such as a 4-hour bar that starts before the opening.
    """
    if kind == "hourly":
        return bars.time // _HOUR
    if kind == "daily":
        return session_days(bars)
    if bars.instrument.asset_class is not AssetClass.STOCK:
        return (bars.time - _MONDAY) // _WEEK
    table, row = session_rows(bars)
    return np.append(table.week, -1)[row]


class PriceRows:
    """The price rows of each session, and the rows that each bar overlaps."""

    def __init__(self, sessions: Sessions, bins: int) -> None:
        bars, begins = sessions.bars, sessions.begins
        self._bins = bins
        self._bottom: Values = np.minimum.reduceat(bars.low, begins)
        self._height: Values = (np.maximum.reduceat(bars.high, begins) - self._bottom) / bins
        self._fill(bars, np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(bars)))))

    def _fill(self, bars: Bars, session: Indices) -> None:
        """One cell for each bar and row that overlap: the bar, the row of the session, and the bar's share in it."""
        bottom, height = self._bottom[session], self._height[session]
        first, last = (self._row(price, bottom, height) for price in (bars.low, bars.high))
        count = last - first + 1
        ends = np.cumsum(count)
        begins = ends - count
        self._bar = bar = np.repeat(np.arange(len(bars)), count)
        row = np.arange(len(bar)) - (begins - first)[bar]
        self._cell = session[bar] * self._bins + row
        # A bar leaves a row at the row's upper edge (its last row at the bar's high) and enters the next row there.
        leaves = np.minimum(np.maximum(bottom[bar] + height[bar] * (row + 1), bars.low[bar]), bars.high[bar])
        leaves[ends - 1] = bars.high
        enters = np.empty_like(leaves)
        enters[1:] = leaves[:-1]
        enters[begins] = bars.low
        self._share = np.ones(len(bar))
        np.divide(leaves - enters, (bars.high - bars.low)[bar], out=self._share, where=count[bar] > 1)

    def _row(self, price: Values, bottom: Values, height: Values) -> Indices:
        """The row of each price; the first row if the session has no range."""
        place = np.divide(price - bottom, height, out=np.zeros(len(price)), where=height > 0.0)
        return np.minimum(place, self._bins - 1).astype(np.intp)

    def spread(self, amounts: Values) -> Values:
        """The sum of the amounts in each row, one line per session; each bar's amount is spread evenly over its prices."""
        return self._sums(amounts[self._bar] * self._share)

    def visits(self) -> Values:
        """The number of bars that overlap each row, one line per session."""
        return self._sums(np.ones(len(self._bar)))

    def _sums(self, amounts: Values) -> Values:
        cells = len(self._bottom) * self._bins
        sums = np.bincount(self._cell, weights=amounts, minlength=cells)
        return sums.astype(np.float64).reshape(-1, self._bins)

    def price(self, row: float, session: int = 0) -> float:
        """The middle of a row."""
        return float(self._bottom[session] + self._height[session] * (row + 0.5))

    def horizontal_bars(self, widths: Values, offsets: Values | float, left: bool) -> list[HorizontalBar]:
        """A bar for each row of each session, from the bottom up; one bar for a session without a range."""
        row, height = np.arange(self._bins), np.broadcast_to(self._height[:, None], widths.shape)
        shown = (height > 0.0) | (row == 0)
        middles = self._bottom[:, None] + height * (row + 0.5)
        columns = (middles, height, widths, np.broadcast_to(offsets, widths.shape))
        rows = zip(*(column[shown].tolist() for column in columns), strict=True)
        return [HorizontalBar(y, high, width, offset, left) for y, high, width, offset in rows]

    def thin_bar(self, row: int, width: float, offset: float, left: bool, session: int = 0) -> HorizontalBar:
        """A thin bar along the middle of one row."""
        return HorizontalBar(self.price(row, session), float(self._height[session]) * THIN, width, offset, left)
