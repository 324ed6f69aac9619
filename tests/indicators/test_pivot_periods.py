"""Which bars count for the pivots of a period, by the length of the bars."""

from __future__ import annotations

from math import inf

import numpy as np

from openbell.indicators.catalogue.pivot import pivots
from openbell.indicators.registry import get
from openbell.indicators.regular_hours import regular_part
from openbell.market.bars import Bars, resample
from openbell.market.timeframes import Timeframe
from tests.stores.samples import run

START = 1_735_689_600  # 2025-01-01, a Wednesday
DAYS = 70


def agree(symbol: str, timeframe: Timeframe, period: str) -> bool:
    """Returns True if bars of a timeframe have the levels that minutes have at the same time."""
    minutes = run(symbol, START, DAYS * 1440)
    longer = resample(minutes, timeframe, inf)
    at = np.searchsorted(minutes.time, longer.time)
    exact, found = levels(minutes, period)[:, at], levels(longer, period)
    assert np.isfinite(found).any()
    return bool(np.array_equal(exact, found, equal_nan=True))


def levels(bars: Bars, period: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return pivots(bars, regular_part(bars), "traditional", period)


def test_bars_of_up_to_an_hour_are_exact_and_longer_ones_where_no_period_ends_within_them() -> None:
    for timeframe in (Timeframe.M15, Timeframe.H1):
        assert agree("EUR/USD", timeframe, "session")
        assert agree("EUR/USD", timeframe, "week")
    for timeframe in (Timeframe.H1, Timeframe.H4, Timeframe.H12):
        assert agree("BTC/USD", timeframe, "session")
        assert agree("BTC/USD", timeframe, "month")


def test_bars_that_hold_the_end_of_a_period_count_where_they_open() -> None:
    assert not agree("EUR/USD", Timeframe.H4, "session")
    assert not agree("BTC/USD", Timeframe.W1, "month")


def test_the_page_says_which_bars_count() -> None:
    assert "the year for bars of weeks" in get("pivot").description
    assert "counts as a whole in the period in which it opens" in get("pivot").differences
