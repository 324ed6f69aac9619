"""Historical volatility: the annualised deviation of the log returns, in per cent.

A year is the time in which the instrument trades: 365 days of 24 hours for crypto, 260 for forex, and 252 sessions of 6.5
hours for stocks. Of a stock only bars that overlap regular hours count. The first return of a session includes the night
before, so a year has as many returns as its sessions have bars. Other bars repeat the last value.

With the convention "tradingview" the factor is the root of 365 for bars of up to a day, whatever their length, and of
365 / 7 for longer ones.
"""

from __future__ import annotations

from math import nan, sqrt

import numpy as np

from openbell.indicators.channels import Channels, Line
from openbell.indicators.regular_hours import session_days, session_rows
from openbell.indicators.spec import Indicator, Parameter
from openbell.indicators.windows import offset_and_deviation
from openbell.market.bars import Bars, Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe

CONVENTIONS = ("trading", "tradingview")
DAY = Timeframe.D1.seconds
DAYS_PER_YEAR = {AssetClass.STOCK: 252, AssetClass.CRYPTO: 365, AssetClass.FOREX: 260}
DAYS_PER_WEEK = {AssetClass.STOCK: 5, AssetClass.CRYPTO: 7, AssetClass.FOREX: 5}
SESSION = 23400
"""Seconds of a full session: 6.5 hours."""


def bars_per_year(kind: AssetClass, timeframe: Timeframe) -> float:
    """The number of bars in a year of trading days; for bars within a day as if each day had 24 hours."""
    if timeframe.months:
        return 12 / timeframe.months
    if timeframe is Timeframe.W1:
        return DAYS_PER_YEAR[kind] / DAYS_PER_WEEK[kind]
    return DAYS_PER_YEAR[kind] * DAY / timeframe.seconds


def bars_per_session(timeframe: Timeframe, opens: Times) -> Times:
    """The number of bars that overlap a full session, given the opening times.

    Buckets are anchored to UTC midnight, so it depends on daylight saving time: 2 bars of 4 hours in summer, 3 in winter.
    """
    return -(-(opens + SESSION) // timeframe.seconds) - opens // timeframe.seconds


def by_sessions(kind: AssetClass, timeframe: Timeframe, convention: str) -> bool:
    """Returns True if the factor depends on the session: for bars of a stock within a day."""
    return kind is AssetClass.STOCK and timeframe.intraday and convention == "trading"


def per_year(kind: AssetClass, timeframe: Timeframe, convention: str) -> float:
    """The factor from the deviation of returns to per cent per year."""
    if convention == "tradingview":
        return 100.0 * sqrt(365 if timeframe.seconds <= DAY else 365 / 7)
    return 100.0 * sqrt(bars_per_year(kind, timeframe))


def histvol(bars: Bars, length: int, convention: str) -> Values:
    """In per cent per year; NaN for the first `length` bars that count."""
    kind, timeframe = bars.instrument.asset_class, bars.timeframe
    if kind is not AssetClass.STOCK:
        inside = np.flatnonzero(session_days(bars) >= 0)  # quotes of weekends do not count
        year: Values | float = per_year(kind, timeframe, convention)
    else:
        table, row = session_rows(bars)
        inside = np.flatnonzero(row >= 0)
        year = per_year(kind, timeframe, convention)
        if by_sessions(kind, timeframe, convention):
            year = 100.0 * np.sqrt(DAYS_PER_YEAR[kind] * bars_per_session(timeframe, table.open[row[inside]]))
    values = np.append(_deviation(bars.close[inside], length) * year, nan)
    newest = np.searchsorted(inside, np.arange(len(bars)), side="right") - 1  # −1 selects the NaN at the end
    return values[newest]


def _deviation(close: Values, length: int) -> Values:
    """The deviation of the latest log returns."""
    out = np.full(len(close), np.nan)
    out[1:] = offset_and_deviation(np.log(close[1:] / close[:-1]), length)[1]
    return out


def _compute(bars: Bars, length: int, convention: str) -> Channels:
    return Channels(lines=(Line("HV", histvol(bars, length, convention)),))


INDICATOR = Indicator(
    name="histvol",
    title="HV",
    description=(
        "Population deviation of the log returns in per cent a year of the instrument's trading time: 365 days, 260 for "
        "forex, 252 sessions for stocks, of which only bars with time in regular hours count"
    ),
    brief="Deviation of the log returns, in per cent a year",
    overlay=False,
    compute=_compute,
    warmup=lambda length, convention: length + 1,  # noqa: ARG005 - takes every parameter
    parameters=(
        Parameter("length", 20, 2, 1000, aliases=("period",), tradingview=10),
        Parameter("convention", CONVENTIONS[0], choices=CONVENTIONS),
    ),
    aliases=("hv", "historical_volatility"),
    by_day=True,
    differs=(
        "TradingView takes the root of 365 for bars of up to a day, whatever their length: `convention` "
        '"tradingview" does so.'
    ),
)
