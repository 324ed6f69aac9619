"""Streams over real prices, a stock's daily bars and a currency's hourly ones: their values and signals are the arrays'."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.indicators.spec import Indicator
from tests.indicators.real_series import REAL, series
from tests.indicators.test_every_indicator import close_enough, every_indicator
from tests.indicators.test_ties import settings_of, streamed


@pytest.mark.parametrize("on", REAL)
class TestRealPrices:
    @every_indicator
    def test_bar_by_bar_is_the_same_as_all_at_once(self, indicator: Indicator, on: str) -> None:
        bars = series()[on].tail(330)
        if indicator.stream is None:
            return
        for chosen in settings_of(indicator):
            with np.errstate(all="ignore"):
                batch = indicator.run(bars, **chosen)

            values, signals = streamed(indicator, chosen, bars)

            for line, value in zip((*batch.lines, *batch.histogram), values, strict=True):
                if line.label not in indicator.displaced:
                    assert np.array_equal(np.isnan(line.values), np.isnan(value)), (line.label, chosen)
                    assert close_enough(value, line.values, bars), (line.label, chosen)
            assert signals == [(signal.index, signal.label) for signal in batch.signals], chosen
