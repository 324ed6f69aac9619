"""Profiles: the volume traded at each price, or the number of periods that touched it, with the value area.

The price range of a session is divided into rows of equal height. A bar's volume is spread evenly over the prices between
its low and its high, so a row gets the share of the bar's range that lies within it.

Volumes that differ by less than a billionth of all the volume count as equal. Rows that hold the same bars are equal but for
rounding, and the order in which volumes were added must not decide between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import Channels, HorizontalBar, Level, Segment
from openbell.indicators.float_ties import TOLERANCE
from openbell.indicators.regular_hours import session_days, session_rows
from openbell.indicators.spec import Finer, Parameter
from openbell.market.bars import Bars, Values, ends_of
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import currency_opens_on

SESSIONS = ("daily", "weekly", "hourly")
SESSION_PARAMETERS = (Parameter("bins", 24, 1, 200), Parameter("session", "daily", choices=SESSIONS))
"""The parameters of profiles that are made for each session."""
WIDEST = 0.3
"""Width of the longest row, as a share of the chart's width."""
WIDEST_OF_SESSION = 0.7
"""Width of the longest row of a session's profile, as a share of the session's width."""
MAX_SESSIONS = 100
"""Only the rows of the latest sessions are drawn: with more, each profile would be narrower than a candle."""
LEVELS = ("POC", "VAH", "VAL")
"""The point of control, and the upper and lower end of the value area."""
THIN = 0.25
"""Height of a bar that shows a single price, as a share of its row's height."""

_HOUR, _WEEK = 3600, 604800
_MONDAY = 345600  # 1970-01-05, the first Monday

_MINUTES, _HOURS = (Timeframe.M1, Timeframe.M5), (Timeframe.M30, Timeframe.H1, Timeframe.H4)
_FINER = {
    "hourly": (Timeframe.H1.seconds, _MINUTES),
    "daily": (Timeframe.D1.seconds, _HOURS),
    "weekly": (Timeframe.W1.seconds, _HOURS),
}
"""The length of each kind of session in seconds, and the bars that show where it traded, the best first."""

Indices = npt.NDArray[np.intp]
VALUE_AREA = 0.7
"""The least share of the volume in the value area."""
EQUAL = 1e-9
"""Volumes that differ by less than this share of all the volume are equal."""

Rows = npt.NDArray[np.intp]


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


def finer_bars(timeframe: Timeframe, session: str, count: int) -> Finer | None:
    """The finer bars that profiles of the latest `count` sessions need where one bar is a session; None where it is not.

    The range of a single bar has the same volume in each row, so that it has no point of control.
    """
    length, finer = _FINER[session]
    if timeframe.seconds >= Timeframe.W1.seconds and session != "hourly":
        finer = (*finer, Timeframe.D1)
    reason = "one bar is a session, so its profile comes from finer bars"
    return Finer(finer, count, reason) if timeframe.seconds >= length else None


def profiled_sessions(bars: Bars, kind: str, finer: Bars | None) -> Sessions:
    """`by_session`; where one bar is a session, the finer bars in each bar, or no session if there are none."""
    if finer_bars(bars.timeframe, kind, 0) is None:
        return by_session(bars, kind)
    if finer is None or not len(bars):
        return by_session(bars.take(slice(0)), kind)
    bar = places_of(finer, bars)
    kept, bar = finer.take(bar >= 0), bar[bar >= 0]
    begins = np.flatnonzero(np.diff(bar, prepend=-1))
    return Sessions(kept, begins, bar[begins], bar[begins])


def places_of(finer: Bars, bars: Bars) -> Indices:
    """The index of the bar that each finer bar is a part of; −1 if it is outside of sessions, or that bar is missing.

    Where bars are days or longer, the finer bar's trading day decides: an hour of a stock may begin before its session.
    """
    day = session_days(finer)
    begun = finer.time
    if not bars.timeframe.intraday and finer.instrument.asset_class is AssetClass.STOCK:
        begun = day
    elif not bars.timeframe.intraday and finer.instrument.asset_class is AssetClass.FOREX:
        begun = np.where(day >= 0, currency_opens_on(np.maximum(day, 0)), -1)
    place = np.searchsorted(bars.time, begun, side="right") - 1
    inside = (place >= 0) & (day >= 0)
    inside &= begun < np.append(ends_of(bars), 0)[place]
    return np.where(inside, place, -1)


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
    """A number per bar that is equal within a session; −1 for bars outside of trading days.

    A bar that overlaps regular hours belongs to them, such as a 4-hour bar that starts before the opening.
    """
    if kind == "hourly":
        return bars.time // _HOUR
    if kind == "daily":
        return session_days(bars)
    if bars.instrument.asset_class is AssetClass.FOREX:  # the week of the trading day: Sunday evening is Monday's
        day = session_days(bars)
        return np.where(day >= 0, (day + 3) // 7, -1)
    if bars.instrument.asset_class is AssetClass.CRYPTO:
        return (bars.time - _MONDAY) // _WEEK
    table, row = session_rows(bars)
    return np.append(table.week, -1)[row]


class PriceRows:
    """The price rows of each session, and the rows that each bar overlaps."""

    def __init__(self, sessions: Sessions, bins: int) -> None:
        bars, begins = sessions.bars, sessions.begins
        self._bins, self._begins = bins, begins
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
        """The row of each price; the first row if the session has no range. A price at an edge is in the row above it."""
        place = np.divide(price - bottom + TOLERANCE * price, height, out=np.zeros(len(price)), where=height > 0.0)
        return np.minimum(place, self._bins - 1).astype(np.intp)

    def spread(self, amounts: Values) -> Values:
        """The sum of the amounts in each row, one line per session; each bar's amount is spread evenly over its prices."""
        return self._sums(amounts[self._bar] * self._share)

    def visits(self, periods: Indices) -> Values:
        """The number of periods with a bar that overlaps each row, one line per session.

        `periods` has the number of each bar's period, in order of time.
        """
        changes = np.diff(periods, prepend=periods[:1]) != 0
        changes[self._begins[1:]] = True
        number = np.cumsum(changes)
        seen = np.zeros((number[-1] + 1, self._bins), dtype=np.bool_)
        seen[number[self._bar], self._cell % self._bins] = True
        counts: Values = np.add.reduceat(seen, number[self._begins], axis=0, dtype=np.float64)
        return counts

    def _sums(self, amounts: Values) -> Values:
        cells = len(self._bottom) * self._bins
        sums = np.bincount(self._cell, weights=amounts, minlength=cells)
        return sums.astype(np.float64).reshape(-1, self._bins)

    def price(self, row: float, session: int = 0) -> float:
        """The middle of a row."""
        return float(self._bottom[session] + self._height[session] * (row + 0.5))

    def levels(
        self, amounts: Values, session: int = 0, share: float = VALUE_AREA, index: int | None = None
    ) -> tuple[Level, Level, Level]:
        """The point of control of the amounts in a session's rows, and the upper and lower end of the area with a share.

        `index` is the session's first bar among all bars.
        """
        control = int(control_row(amounts, float(amounts.sum())))
        first, last = value_area([0.0, *accumulate(amounts.tolist())], control, share)
        poc, vah, val = (
            Level(self.price(row, session), label, index)
            for row, label in zip((control, last + 0.5, first - 0.5), LEVELS, strict=True)
        )
        return poc, vah, val

    def horizontal_bars(
        self,
        widths: Values,
        offsets: Values | float,
        left: bool,
        drawn: npt.NDArray[np.bool_] | None = None,
    ) -> list[HorizontalBar]:
        """A bar for each row of the sessions drawn, from the bottom up; one for a session without a range."""
        row, height = np.arange(self._bins), np.broadcast_to(self._height[:, None], widths.shape)
        shown = (height > 0.0) | (row == 0)
        if drawn is not None:
            shown &= drawn[:, None]
        middles = self._bottom[:, None] + height * (row + 0.5)
        columns = (middles, height, widths, np.broadcast_to(offsets, widths.shape))
        rows = zip(*(column[shown].tolist() for column in columns), strict=True)
        return [HorizontalBar(y, high, width, offset, left) for y, high, width, offset in rows]

    def thin_bar(self, row: int, width: float, offset: float, left: bool, session: int = 0) -> HorizontalBar:
        """A thin bar along the middle of one row."""
        return HorizontalBar(self.price(row, session), float(self._height[session]) * THIN, width, offset, left)


def session_channels(
    sessions: Sessions, rows: PriceRows, amounts: Values, bars: int, *, left: bool = True, value_area: bool = True
) -> Channels:
    """Profiles side by side, each within its session, with their points of control and, dashed, their value areas.

    The levels of the newest session are horizontal lines too. `bars` is the number of bars shown.
    """
    largest: Values = amounts.max(axis=1, keepdims=True)
    known = largest[:, 0] > 0.0
    if not known.any():
        return Channels()
    begin, end = (place[:, None] / bars for place in (sessions.first, sessions.last + 1))
    widths = np.divide(amounts, largest, out=np.zeros(amounts.shape), where=largest > 0.0)
    drawn = known & (np.arange(len(known)) >= len(known) - MAX_SESSIONS)
    hbars = rows.horizontal_bars(WIDEST_OF_SESSION * (end - begin) * widths, begin if left else 1.0 - end, left, drawn)
    count = 3 if value_area else 1
    levels = {
        number: rows.levels(amounts[number], number, index=int(sessions.first[number]))[:count]
        for number in np.flatnonzero(known).tolist()
    }
    segments = tuple(
        Segment(
            int(sessions.first[number]), level, int(sessions.last[number]), level, dashed=place > 0, label=level.label
        )
        for number, found in levels.items()
        for place, level in enumerate(found)
    )
    return Channels(hbars=tuple(hbars), divlines=segments, hlines=levels.get(len(amounts) - 1, ()))


def control_row(volumes: Values, traded: float | Values) -> Rows:
    """The lowest row with the most volume, along the first axis. `traded` is all the volume."""
    rows: Rows = (volumes >= volumes.max(axis=0) - EQUAL * traded).argmax(axis=0)
    return rows


def value_area(below: Sequence[float], control: int, share: float = VALUE_AREA) -> tuple[int, int]:
    """The first and last row of the area around the row `control` that holds this share of the volume.

    `below` is the volume below each edge of the rows, from 0 to all the volume. The area grows by the two rows above or the
    two rows below, whichever have more volume; by those above if both have the same.
    """
    first, last, top = control, control, len(below) - 2
    slack = EQUAL * below[-1]
    wanted = share * below[-1] - slack
    while below[last + 1] - below[first] < wanted:
        lower = first - 2 if first > 2 else 0
        upper = min(top, last + 2)
        above, beneath = below[upper + 1] - below[last + 1], below[first] - below[lower]
        if last < top and (first == 0 or above >= beneath - slack):
            last = upper
        else:
            first = lower
    return first, last


def value_areas(below: Values, control: Rows) -> tuple[Rows, Rows]:
    """`value_area` of many profiles: `below` has a row per edge and a column per profile."""
    firsts, lasts = control.copy(), control.copy()
    slacks = EQUAL * below[-1]
    wanted = VALUE_AREA * below[-1] - slacks
    top, flat = len(below) - 2, np.ascontiguousarray(below.T).ravel()
    starts = np.arange(len(control)) * len(below)
    some = np.arange(len(control))  # the areas that still grow
    first, last = firsts, lasts
    while True:
        end_of_last, start_of_first = flat[starts + last + 1], flat[starts + first]
        small = np.flatnonzero(end_of_last - start_of_first < wanted)
        if not len(small):
            return firsts, lasts
        some, starts, first, last, end_of_last, start_of_first, wanted, slacks = (
            each[small] for each in (some, starts, first, last, end_of_last, start_of_first, wanted, slacks)
        )
        lower, upper = np.maximum(first - 2, 0), np.minimum(last + 2, top)
        above, beneath = flat[starts + upper + 1] - end_of_last, start_of_first - flat[starts + lower]
        up = (last < top) & ((first == 0) | (above >= beneath - slacks))
        first, last = np.where(up, first, lower), np.where(up, upper, last)
        firsts[some], lasts[some] = first, last
