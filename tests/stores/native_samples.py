"""Sample bars of series that are not minutes."""

from __future__ import annotations

from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from tests.stores.samples import at, bars

START, END = at("2019-12-20"), at("2020-02-10")
"""Around the end of a year and of a month."""


def whole(symbol: str, timeframe: Timeframe, version: int = 0, start: int = START, end: int = END) -> Bars:
    """Every bar of a series between two times."""
    series = Series(parse(symbol), timeframe)
    times, _ = buckets(series.instrument, timeframe, start, end)
    return bars(series, times, version)
