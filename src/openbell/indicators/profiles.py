"""Profiles: how much was traded, or how often the price came by, at each price.

Rows of equal height lead from the lowest price of a session to the highest. A bar's volume is spread evenly over the
prices between its low and its high, so a row takes the share of the bar's range that lies within it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import HorizontalBar
from openbell.indicators.regular_hours import session_days, session_rows
from openbell.market.bars import Bars, Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times

SESSIONS = ("daily", "weekly", "hourly")
WIDEST = 0.3
"""The largest row's part of the chart's width."""
THIN = 0.25
"""The height of a bar that marks a price, as a part of its row's."""

_HOUR, _WEEK = 3600, 604800
_MONDAY = 345600  # 1970-01-05, the first Monday

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Bars in runs, one for each session; bars outside of sessions are left out."""

    bars: Bars
    begins: Indices
    """The place of each session's first bar in `bars`."""
    first: Indices
    """The places of each session's first and last bar among all bars, those left out included."""
    last: Indices

    def __len__(self) -> int:
        return len(self.begins)

    def newest(self, count: int) -> Sessions:
        """The newest sessions."""
        if len(self) <= count:
            return self
        start = self.begins[-count]
        bars = self.bars.take(slice(int(start), None))
        return Sessions(bars, self.begins[-count:] - start, self.first[-count:], self.last[-count:])


def all_in_one(bars: Bars) -> Sessions:
    """All bars as one session; none if there are no bars."""
    first = np.zeros(min(1, len(bars)), dtype=np.intp)
    return Sessions(bars, first, first, first + len(bars) - 1)


def by_session(bars: Bars, kind: str) -> Sessions:
    """Trading days, their weeks, or hours of the clock."""
    number = _numbers(bars, kind)
    places = np.flatnonzero(number >= 0)
    number = number[places]
    begins, ends = np.ones((2, len(number)), dtype=bool)
    begins[1:] = ends[:-1] = number[1:] != number[:-1]
    return Sessions(bars.take(places), np.flatnonzero(begins), places[begins], places[ends])


def _numbers(bars: Bars, kind: str) -> Times:
    """A number per bar that is equal within a session; −1 outside of the regular hours of stocks.

    A bar belongs to the regular hours that it shares any time with: a stock's 4-hour bar that holds the opening began
    before it.
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
    """The rows of each session, and which of them every bar reaches."""

    def __init__(self, sessions: Sessions, bins: int) -> None:
        bars, begins = sessions.bars, sessions.begins
        self._bins = bins
        self._bottom: Values = np.minimum.reduceat(bars.low, begins)
        self._height: Values = (np.maximum.reduceat(bars.high, begins) - self._bottom) / bins
        self._fill(bars, np.repeat(np.arange(len(begins)), np.diff(np.append(begins, len(bars)))))

    def _fill(self, bars: Bars, session: Indices) -> None:
        """A cell for each bar and row that meet: which bar, which row of which session, and the bar's share in it."""
        bottom, height = self._bottom[session], self._height[session]
        first, last = (self._row(price, bottom, height) for price in (bars.low, bars.high))
        count = last - first + 1
        ends = np.cumsum(count)
        begins = ends - count
        self._bar = bar = np.repeat(np.arange(len(bars)), count)
        row = np.arange(len(bar)) - (begins - first)[bar]
        self._cell = session[bar] * self._bins + row
        # A bar leaves a row at the row's upper edge, the last one at the bar's high, and enters the next one there.
        leaves = np.minimum(np.maximum(bottom[bar] + height[bar] * (row + 1), bars.low[bar]), bars.high[bar])
        leaves[ends - 1] = bars.high
        enters = np.empty_like(leaves)
        enters[1:] = leaves[:-1]
        enters[begins] = bars.low
        self._share = np.ones(len(bar))
        np.divide(leaves - enters, (bars.high - bars.low)[bar], out=self._share, where=count[bar] > 1)

    def _row(self, price: Values, bottom: Values, height: Values) -> Indices:
        """The row that a price falls into; all is in the first where a session has no range."""
        place = np.divide(price - bottom, height, out=np.zeros(len(price)), where=height > 0.0)
        return np.minimum(place, self._bins - 1).astype(np.intp)

    def spread(self, amounts: Values) -> Values:
        """One line per session: each bar's amount, spread evenly over its prices."""
        return self._sums(amounts[self._bar] * self._share)

    def visits(self) -> Values:
        """One line per session: how many bars came by each row."""
        return self._sums(np.ones(len(self._bar)))

    def _sums(self, amounts: Values) -> Values:
        cells = len(self._bottom) * self._bins
        sums = np.bincount(self._cell, weights=amounts, minlength=cells)
        return sums.astype(np.float64).reshape(-1, self._bins)

    def price(self, row: float, session: int = 0) -> float:
        """The middle of a row."""
        return float(self._bottom[session] + self._height[session] * (row + 0.5))

    def drawn(self, widths: Values, offsets: Values | float, left: bool) -> list[HorizontalBar]:
        """A bar for each row of each session, from the bottom up; only one where a session has no range."""
        row, height = np.arange(self._bins), np.broadcast_to(self._height[:, None], widths.shape)
        shown = (height > 0.0) | (row == 0)
        middles = self._bottom[:, None] + height * (row + 0.5)
        columns = (middles, height, widths, np.broadcast_to(offsets, widths.shape))
        rows = zip(*(column[shown].tolist() for column in columns), strict=True)
        return [HorizontalBar(y, high, width, offset, left) for y, high, width, offset in rows]

    def mark(self, row: int, width: float, offset: float, left: bool, session: int = 0) -> HorizontalBar:
        """A thin bar along the middle of one row."""
        return HorizontalBar(self.price(row, session), float(self._height[session]) * THIN, width, offset, left)
