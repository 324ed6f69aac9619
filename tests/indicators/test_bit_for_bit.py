"""Indicators whose running form has every bit of the arrays, at any settings, through ticks, halts and no trades."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.indicators.registry import get
from openbell.market.bars import Bars
from tests.indicators.test_every_indicator import crypto_bars, settings_of, stock_bars, streamed
from tests.indicators.test_panels import halting
from tests.indicators.test_streamed_signals import in_ticks, long_swings

EXACT = [
    *("momentum", "chaikin", "pvt", "frama", "rainbow", "rvi", "vidya"),
    *("relative_volume", "volume_balance", "volume_macd"),
    *("volatility_stop", "renko", "range_bars", "gann_swing", "fibonacci", "double_pattern", "gap"),
    *("regression_channel", "rolling_profile", "volume_spread"),
]


def tiny_prices() -> Bars:
    return halting(1e-8)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize(
    "bars", [crypto_bars, stock_bars, long_swings, in_ticks, tiny_prices], ids=lambda b: b.__name__
)
def test_bar_by_bar_has_every_bit_of_the_arrays(name: str, bars: object) -> None:
    assert callable(bars)
    data, indicator = bars(), get(name)
    for chosen in settings_of(indicator):
        result = indicator.run(data, **chosen)

        found = streamed(indicator, chosen, data)

        for line, values in zip((*result.lines, *result.histogram), found, strict=True):
            assert np.array_equal(values, line.values, equal_nan=True), (line.label, chosen)
