"""Indicators of data beyond bars, by their definitions in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from openbell.indicators.registry import get
from openbell.market.bars import Bars, resample
from openbell.market.extras import Extra
from openbell.market.timeframes import Timeframe
from tests.market.walks import minutes, walk

NEWEST = {"funding": ("funding", 100.0), "oi": ("open_interest", 1.0), "long_short": ("long_short", 1.0)}


@pytest.fixture(scope="module")
def bars() -> Bars:
    found = walk(minutes("2025-03-04T19:00Z", "2025-03-05T06:40Z"), 21, price=54321.0)
    return resample(found, Timeframe.M15, int(found.time[-1]) + 60)


@pytest.fixture(scope="module")
def moments(bars: Bars) -> Extra:
    """Values at odd moments, the first some bars after the start."""
    chance = np.random.default_rng(3)
    times = np.sort(chance.choice(np.arange(bars.time[3] + 7, bars.time[-1]), 200, replace=False)).astype(np.int64)
    return Extra(times, chance.normal(2.0, 1.0, len(times)))


@pytest.mark.parametrize("name", [*NEWEST, "fear_greed"])
def test_the_newest_value_known_at_each_bars_end(name: str, bars: Bars, moments: Extra) -> None:
    kind, factor = NEWEST.get(name, (name, 1.0))
    channels = get(name).run(bars, {kind: moments})
    (found,) = (*channels.lines, *channels.histogram)
    for start, value in zip(bars.time.tolist(), found.values.tolist(), strict=True):
        known = [v for t, v in zip(moments.time.tolist(), moments.value.tolist(), strict=True) if t < start + 900]
        assert value == pytest.approx(factor * known[-1], rel=1e-12) if known else np.isnan(value)


@pytest.mark.parametrize("reset", ["session", "never"])
def test_cvd_adds_up_what_falls_into_each_bar(bars: Bars, moments: Extra, reset: str) -> None:
    (found,) = get("cvd").run(bars, {"delta": moments}, reset=reset).lines
    total, pairs = 0.0, list(zip(moments.time.tolist(), moments.value.tolist(), strict=True))
    for start, value in zip(bars.time.tolist(), found.values.tolist(), strict=True):
        if reset == "session" and start % 86400 == 0:
            total = 0.0
        total += sum(v for t, v in pairs if start <= t < start + 900)
        if start + 900 <= pairs[0][0]:
            assert np.isnan(value)
        else:
            assert value == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", [*NEWEST, "fear_greed"])
def test_a_value_at_the_very_end_of_a_bar_shows_on_the_next(name: str, bars: Bars) -> None:
    kind, factor = NEWEST.get(name, (name, 1.0))
    value = Extra(bars.time[5:6], np.array([3.0]))  # the end of bar 4 and the beginning of bar 5
    channels = get(name).run(bars, {kind: value})
    (found,) = (*channels.lines, *channels.histogram)

    assert np.isnan(found.values[:5]).all()
    assert (found.values[5:] == factor * 3.0).all()
