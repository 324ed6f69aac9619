"""The timeframes of Yahoo's charts: how far back they reach, and when their bars are final.

Only timeframes whose buckets are ours are declared. Left out are 30m, for which Yahoo returns bars of an hour; hours of
stocks, which begin at 9:30 New York; days of forex, which begin at midnight in London; and weeks. Bars of those are made of
the declared ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from openbell.market.instruments import AssetClass
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe

_DAY = 86400
DELAY = 1200.0
"""Seconds after its end at which an intraday bar is final: 15 minutes, the delay of many exchanges, and some more."""
_MARGIN = 600
"""Seconds. Bars that leave the reach within this time are not offered: a request may have to wait so long."""

INTERVALS = {
    Timeframe.M1: "1m",
    Timeframe.M5: "5m",
    Timeframe.M15: "15m",
    Timeframe.H1: "1h",
    Timeframe.D1: "1d",
}
"""Yahoo's names of the timeframes."""
_REACH = {
    Timeframe.M1: 30 * _DAY,
    Timeframe.M5: 60 * _DAY,
    Timeframe.M15: 60 * _DAY,
    Timeframe.H1: 730 * _DAY,
}
"""Seconds before the present for which Yahoo has bars; without a limit for days."""
PAGE = {Timeframe.M1: 7 * _DAY}
"""Seconds that one request may span, if that is less than the reach."""
_SHORT = (Timeframe.M1, Timeframe.M5, Timeframe.M15)
_DAYS = {
    # The calendar of sessions begins in 1971. A daily bar may still change half an hour after extended hours.
    AssetClass.STOCK: Native(31_536_000, delay=16_200.0),
    # From 2014-09-17 on. Yahoo often has no values of the last day for hours.
    AssetClass.CRYPTO: Native(1_410_912_000, delay=float(_DAY)),
}


def natives_of(asset_class: AssetClass, present: float) -> Mapping[Timeframe, Native]:
    """Returns the timeframes of an asset class. `present` is the machine's time, from which Yahoo counts its reach."""
    intraday = _SHORT if asset_class is AssetClass.STOCK else (*_SHORT, Timeframe.H1)
    found = {}
    for timeframe in intraday:
        reach = _REACH[timeframe] - _MARGIN
        found[timeframe] = Native(int(present) - reach, reach, DELAY)
    return {**found, Timeframe.D1: _DAYS[asset_class]} if asset_class in _DAYS else found
