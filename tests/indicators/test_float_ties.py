"""No comparison is decided by rounding: prices that are moved by one unit in the last place give the same results.

Equal prices move alike, so that they stay equal: an indicator may compare prices as they were traded.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from openbell.indicators.channels import Channels
from openbell.indicators.float_ties import above, at_least, at_most, below
from openbell.indicators.spec import Indicator, Setting
from openbell.market.bars import Bars, Values, make
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe
from tests.indicators.parameter_sets import parameter_sets
from tests.indicators.test_every_indicator import every_indicator, extras_for, series
from tests.market.walks import CRYPTO, FOREX, STOCK, at

LAST_DIGITS = 1e-9
"""The largest relative change. Oscillators magnify rounding by the price over its moves."""


@cache
def ticks(instrument: Instrument, price: float, decimals: int, seed: int) -> Bars:
    """Bars whose prices are few ticks apart, so that many computed prices are equal; some bars have no range."""
    random = np.random.default_rng(seed)
    count, tick = 700, 10.0**-decimals
    steps = random.integers(-3, 4, count)
    steps[300:340] = 0  # a halt
    close = price + np.cumsum(steps) * tick
    opened = close - steps * tick
    high = np.maximum(opened, close) + random.integers(0, 3, count) * tick
    low = np.minimum(opened, close) - random.integers(0, 3, count) * tick
    time = at("2025-03-04T15:00Z") + np.arange(count) * 300
    columns = [np.round(column, decimals) for column in (opened, high, low, close)]
    return make(instrument, Timeframe.M5, time, *columns, random.integers(0, 9, count) * 10.0)


SERIES = {
    "currency": lambda: ticks(FOREX, 1.1, 5, 1),
    "stock": lambda: ticks(STOCK, 31.07, 2, 2),
    "coin": lambda: ticks(CRYPTO, 60_000.0, 1, 3),
}


WAYS: dict[str, tuple[float, ...]] = {
    "up": (np.inf,),
    "down": (0.0,),
    "mixed": (0.0, np.inf),
    "mixed too": (np.inf, 0.0),
}


def moved(bars: Bars, way: str) -> Bars:
    """The bars with each price moved up or down by one unit in the last place."""
    values, places = np.unique(np.stack(bars.columns()[1:5]), return_inverse=True)
    towards = np.random.default_rng(1).choice(WAYS[way], len(values))
    prices = np.nextafter(values, towards)[places].reshape(4, -1)
    return make(bars.instrument, bars.timeframe, bars.time, *prices, bars.volume)


def same(found: Values, expected: Values, scale: float) -> bool:
    return bool(np.allclose(found, expected, rtol=LAST_DIGITS, atol=LAST_DIGITS * scale, equal_nan=True))


def different(found: Channels, expected: Channels, price: float) -> list[str]:
    """What differs by more than the last digits."""
    names = []
    for (label, one), (_, other) in zip(series(found), series(expected), strict=True):
        if not same(one, other, float(np.nanmax(np.abs(other), initial=0.0))):
            names.append(label)
    if [(s.index, s.label) for s in found.signals] != [(s.index, s.label) for s in expected.signals]:
        names.append("signals")
    if len(found.hlines) != len(expected.hlines) or not same(np.array(found.hlines), np.array(expected.hlines), price):
        names.append("levels")
    rows = [[(bar.y, bar.width, bar.offset) for bar in each.hbars] for each in (found, expected)]
    if len(rows[0]) != len(rows[1]) or (rows[0] and not same(np.array(rows[0]), np.array(rows[1]), 1.0)):
        names.append("profile")
    if [(d.x1, d.x2) for d in found.divlines] != [(d.x1, d.x2) for d in expected.divlines]:
        names.append("segments")
    return names


def settings_of(indicator: Indicator) -> list[dict[str, Setting]]:
    """The defaults and two other sets."""
    return [each.get(indicator.name, {}) for each in ({}, *parameter_sets())][: 3 if indicator.parameters else 1]


@pytest.mark.parametrize("name", SERIES)
class TestOneUnitInTheLastPlace:
    @every_indicator
    def test_changes_nothing_but_the_last_digits(self, indicator: Indicator, name: str) -> None:
        bars = SERIES[name]()
        price = float(bars.close.max())
        for chosen in settings_of(indicator):
            expected = indicator.run(bars, extras_for(bars), **chosen)
            for way in WAYS:
                found = indicator.run(moved(bars, way), extras_for(bars), **chosen)

                assert different(found, expected, price) == [], (way, chosen)


class TestTies:
    def test_values_that_differ_by_rounding_are_equal(self) -> None:
        more, less, price = (np.array([value]) for value in (0.1 + 0.2, 0.3, 0.3))
        assert more > less
        assert not above(more, less, price)
        assert not below(less, more, price)
        assert at_least(less, more, price)
        assert at_most(more, less, price)

    def test_the_next_tick_is_not_equal(self) -> None:
        assert above(np.array([60_000.00000001]), 60_000.0, 100.0)
        less, more = np.array([1.10001]), np.array([1.10002])
        assert below(less, more, 1.1)
        assert not at_least(less, more, 1.1)
        assert not at_most(more, less, 1.1)

    def test_nothing_is_true_of_a_missing_value(self) -> None:
        missing = np.array([np.nan])
        for compare in (above, below, at_least, at_most):
            assert not compare(missing, 1.0, 1.0)
