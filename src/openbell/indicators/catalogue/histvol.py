"""Historical volatility: the deviation of the log returns, for a year, in per cent."""

from __future__ import annotations

from math import inf, isnan, log, nan, sqrt

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.running import RunningWindow
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.sums import mean_and_deviation
from openbell.market.bars import Bars, Values
from openbell.market.instruments import AssetClass
from openbell.market.timeframes import Timeframe

DAY = Timeframe.D1.seconds
DAYS, SESSIONS = 365, 252
SESSION = 6.5 * 3600
"""Regular hours: what a year of intraday bars of a stock is counted by."""


def bars_per_year(timeframe: Timeframe, stock: bool) -> float:
    """365 days of 24 hours, or 252 sessions of six and a half."""
    days, hours, week = (SESSIONS, SESSION, 5) if stock else (DAYS, DAY, 7)
    return days / week if timeframe is Timeframe.W1 else days * max(1.0, hours / timeframe.seconds)


def histvol(bars: Bars, length: int) -> Values:
    """In per cent a year, NaN for the first `length` bars."""
    out = np.full(len(bars), np.nan)
    stock = bars.instrument.asset_class is AssetClass.STOCK
    _, deviation = mean_and_deviation(np.log(bars.close[1:] / bars.close[:-1]), length)
    out[1:] = 100.0 * sqrt(bars_per_year(bars.timeframe, stock)) * deviation
    return out


def _compute(bars: Bars, length: int) -> Channels:
    return Channels(lines=(Line("HV", histvol(bars, length)),))


class _Stream:
    """Is told neither timeframe nor instrument: the shortest step between bars and the days' numbers tell."""

    def __init__(self, length: int) -> None:
        self._window = RunningWindow(length)
        self._close = nan
        self._time = -inf
        self._step = inf
        self._year = nan

    def update(self, bar: Bar) -> tuple[float, ...]:
        step = bar.time - self._time
        if step < self._step:
            self._step = step
            self._year = 100.0 * sqrt(bars_per_year(_timeframe(step), bar.day != bar.time // DAY))
        before, self._close, self._time = self._close, bar.close, bar.time
        if isnan(before):
            return (nan,)
        return (self._year * self._window.update(log(bar.close / before))[1],)


def _timeframe(step: float) -> Timeframe:
    """That of the longest bars that can follow each other so soon: weekends, holidays and clock changes included."""
    if step >= 5 * DAY:
        return Timeframe.W1
    fitting = [each for each in Timeframe if each.seconds <= min(step, DAY)]
    return fitting[-1] if fitting else Timeframe.M1


INDICATOR = Indicator(
    name="histvol",
    title="HV",
    description="Population deviation of the log returns in per cent a year: 365 days, or 252 sessions for stocks",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda length: length + 1,
    parameters=(Parameter("length", 20, 2, 1000),),
    aliases=("hv",),
)
