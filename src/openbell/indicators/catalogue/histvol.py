"""Historical volatility: the annualised deviation of the log returns, in per cent.

For a stock only bars that overlap regular hours count. The first return of a session includes the night before, so a year
has as many returns as its sessions have bars. Other bars repeat the last value.
"""

from __future__ import annotations

from math import inf, isnan, log, nan, sqrt
from typing import TypeVar

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.regular_hours import session_rows
from openbell.indicators.running import RunningWindow
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import mean_and_deviation
from openbell.market.bars import Bars, Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times
from openbell.market.sessions import eastern, session_on
from openbell.market.timeframes import Timeframe

Moment = TypeVar("Moment", int, Times)

DAY = Timeframe.D1.seconds
DAYS_PER_YEAR, SESSIONS_PER_YEAR = 365, 252
_LEAST_DAYS = {
    Timeframe.W1: 5,
    Timeframe.MONTH: 26,
    Timeframe.QUARTER: 85,
    Timeframe.HALF: 175,
    Timeframe.YEAR: 355,
}
"""The fewest days from one bar to the next of timeframes of which holidays and the calendar can shorten a bar."""
SESSION = 23400
"""Seconds of a full session: 6.5 hours."""


def bars_per_year(timeframe: Timeframe) -> float:
    """The number of bars in 365 days of 24 hours, for instruments that trade around the clock."""
    if timeframe.months:
        return 12 / timeframe.months
    return DAYS_PER_YEAR * DAY / timeframe.seconds


def bars_per_session(timeframe: Timeframe, opens: Moment) -> Moment:
    """The number of bars that overlap a full session, given its opening time.

    Buckets are anchored to UTC midnight, so it depends on daylight saving time: 2 bars of 4 hours in summer, 3 in winter.
    """
    return -(-(opens + SESSION) // timeframe.seconds) - opens // timeframe.seconds


def sessions_per_year(timeframe: Timeframe) -> float:
    """252 sessions; for longer bars the number of them in a year."""
    if timeframe.months:
        return 12 / timeframe.months
    return SESSIONS_PER_YEAR / {Timeframe.D2: 2, Timeframe.D3: 3, Timeframe.W1: 5}.get(timeframe, 1)


def histvol(bars: Bars, length: int) -> Values:
    """In per cent per year; NaN for the first `length` bars that count."""
    if bars.instrument.asset_class is not AssetClass.STOCK:
        return _deviation(bars.close, length) * 100.0 * sqrt(bars_per_year(bars.timeframe))
    table, row = session_rows(bars)
    inside = np.flatnonzero(row >= 0)
    year = sessions_per_year(bars.timeframe) * bars_per_session(bars.timeframe, table.open[row[inside]])
    values = np.append(_deviation(bars.close[inside], length) * 100.0 * np.sqrt(year), nan)
    newest = np.searchsorted(inside, np.arange(len(bars)), side="right") - 1  # −1 selects the NaN at the end
    return values[newest]


def _deviation(close: Values, length: int) -> Values:
    """The deviation of the latest log returns."""
    out = np.full(len(close), np.nan)
    out[1:] = mean_and_deviation(np.log(close[1:] / close[:-1]), length)[1]
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("HV", histvol(bars, length)),))


class _Stream:
    """Infers the timeframe from the shortest step between bars, and the kind of instrument from the day numbers."""

    def __init__(self, length: int) -> None:
        self._window = RunningWindow(length)
        self._close = self._deviation = self._year = nan
        self._time, self._step = -inf, inf
        self._day = -1
        self._opened: int | None = None

    def update(self, bar: Bar) -> tuple[float, ...]:
        step, self._time = bar.time - self._time, bar.time
        another = bar.day not in (self._day, -1)
        if another:
            self._day, self._opened = bar.day, _session_open(bar)
        if another or step < self._step:
            self._step = min(step, self._step)
            self._year = 100.0 * sqrt(_per_year(_timeframe(self._step), self._opened))
        if bar.day >= 0:
            before, self._close = self._close, bar.close
            if not isnan(before):
                self._deviation = self._window.update(log(bar.close / before))[1]
        return (self._year * self._deviation,)


def _session_open(bar: Bar) -> int | None:
    """The opening time of the bar's session; None for instruments that trade around the clock."""
    if bar.day == bar.time // DAY:
        return None
    session = session_on(eastern(bar.time).date())
    return session.open if session else bar.time


def _per_year(timeframe: Timeframe, opened: int | None) -> float:
    if opened is None:
        return bars_per_year(timeframe)
    return sessions_per_year(timeframe) * bars_per_session(timeframe, opened)


def _timeframe(step: float) -> Timeframe:
    """The longest timeframe whose bars can be this many seconds apart. Holidays can shorten the steps of longer bars."""
    fitting = [each for each in Timeframe if _LEAST_DAYS.get(each, each.seconds / DAY) * DAY <= step]
    return fitting[-1] if fitting else Timeframe.M1


INDICATOR = Indicator(
    name="histvol",
    title="HV",
    description=(
        "Population deviation of the log returns in per cent a year: 365 days, or 252 sessions for stocks, "
        "of which only bars with time in regular hours count"
    ),
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 20, 2, 1000),),
    aliases=("hv",),
    by_day=True,
)
