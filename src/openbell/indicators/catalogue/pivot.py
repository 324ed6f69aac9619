"""Pivot points: support and resistance from high, low and close of the previous session, week, month or year.

The period "auto" is TradingView's: the session for bars of up to 15 minutes, the week for longer ones within a day, the
month for bars of days, the year for longer ones. The kind "classic" differs from "traditional" in R3 and S3 only.

The levels of a bar come from the last session that had closed when the bar began (for stocks from its regular hours, as in
the daily bar), so bars in extended hours have levels too. A week, month or year ends when the first session of the next one
begins. The levels are NaN until the first period of the data has ended. A period that is only partly in the data counts with
that part.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.regular_hours import calendar_number, day_starts, session_days
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars, Values
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

LEVELS = ("P", "R1", "R2", "R3", "S1", "S2", "S3")
KINDS = ("traditional", "classic")
PERIODS = ("auto", "session", "week", "month", "year")
_DAYS = {"session": 0, "week": 7, "month": 31, "year": 366}


def levels(high: Values, low: Values, close: Values, kind: str) -> tuple[Values, ...]:
    """The levels from a period's high, low and close, in the order of `LEVELS`."""
    middle = (high + low + close) / 3.0
    height = high - low
    first, last = 2.0 * middle - low, 2.0 * middle - high
    top, bottom = (
        (first + height, last - height) if kind == "traditional" else (middle + 2 * height, middle - 2 * height)
    )
    return middle, first, middle + height, top, last, middle - height, bottom


def period_of(timeframe: Timeframe, period: str) -> str:
    """The period that "auto" stands for; others as they are."""
    if period != "auto":
        return period
    if timeframe.intraday:
        return "session" if timeframe.seconds <= Timeframe.M15.seconds else "week"
    return "month" if timeframe.seconds < Timeframe.W1.seconds else "year"


def _periods(bars: Bars, period: str) -> Times:
    """A number per bar that is equal within a period; outside of sessions −1, or that of the bar before if it is longer."""
    day = session_days(bars)
    if period == "session":
        return day
    latest = np.maximum.accumulate(np.where(day >= 0, np.arange(len(day)), -1))
    number = np.append(calendar_number(bars.instrument, day, period), -1)  # −1 selects the −1 at the end
    return number[latest]


def pivots(bars: Bars, regular: Bars, kind: str, period: str) -> Values:
    """A row for each of `LEVELS`."""
    out = np.full((len(LEVELS), len(bars)), np.nan)
    number = _periods(bars, period_of(bars.timeframe, period))
    traded = np.flatnonzero((session_days(bars) >= 0) & ~np.isnan(regular.close))
    if not len(traded):
        return out
    begins = day_starts(number[traded])
    high = np.maximum.reduceat(regular.high[traded], begins)
    low = np.minimum.reduceat(regular.low[traded], begins)
    close = regular.close[traded[np.append(begins[1:], len(traded)) - 1]]
    # The levels of a period apply from the first bar after it to the last bar of the next period.
    runs = np.append(day_starts(number), len(bars))
    since = runs[np.searchsorted(runs, traded[begins], side="right")]
    out[:, since[0] :] = np.repeat(levels(high, low, close, kind), np.diff(since, append=len(bars)), axis=1)
    return out


def _compute(bars: Bars, regular: Bars, kind: str, period: str) -> Channels:
    rows = pivots(bars, regular, kind, period)
    return Channels(lines=tuple(Line(label, row) for label, row in zip(LEVELS, rows, strict=True)))


INDICATOR = Indicator(
    name="pivot",
    title="Pivots",
    description=(
        "Pivot points: three supports and resistances from high, low and close of the last period that had ended when the "
        "bar began: the session (UTC day where trading never stops) for bars of up to 15 minutes, the week for longer ones "
        "within a day, the month for bars of days, the year for bars of weeks and longer"
    ),
    brief="Pivot points: three supports and three resistances",
    overlay=True,
    compute=_compute,
    warmup=lambda **_: 0,  # depends on where sessions start
    parameters=(
        Parameter("kind", KINDS[0], choices=KINDS, aliases=("type",)),
        Parameter("period", PERIODS[0], choices=PERIODS, aliases=("pivots_timeframe",)),
    ),
    aliases=("pivot_points", "pivot_points_standard"),
    inputs=("high", "low", "close"),
    regular=True,
    by_day=True,
    lookback=lambda timeframe, period, **_: 2 * _DAYS[period_of(timeframe, period)] * 86400,
    differs=(
        "TradingView draws up to five levels on either side. A stock's levels come from regular hours. Levels of a "
        "week, month or year change with the first session of the next. A bar counts as a whole in the period in which it "
        "opens, so the levels differ from those of finer bars where a period ends within a bar: at 17:00 New York in forex "
        "bars of more than an hour, at the end of a month or year in weekly bars. Bars of an hour or less are exact."
    ),
)
