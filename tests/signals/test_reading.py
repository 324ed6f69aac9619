"""Signals in words, and the newest bar of each crossing against a loop over all bars."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openbell.market.bars import Bars, make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.signals.crossings import NEEDED, read
from openbell.signals.series import SignalSeries


def bars_of(closes: list[float]) -> Bars:
    close = np.array(closes)
    time = 1_760_000_400 // 3600 * 3600 + np.arange(len(close)) * 60
    return make(parse("BTC/USD"), Timeframe.M1, time, close, close, close, close, np.ones(len(close)))


def plain_last_true(series: SignalSeries) -> dict[str, int | None]:
    found: dict[str, int | None] = dict.fromkeys(series.crossings(NEEDED - 1).table())
    for index in range(1, len(series.bars)):
        with np.errstate(all="ignore"):
            for name in series.crossings(index).true():
                found[name] = index
    return found


walks = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 3.0, -3.0]), min_size=NEEDED, max_size=160)


@given(walks)
def test_the_newest_bar_of_each_crossing(steps: list[float]) -> None:
    bars = bars_of([100 + each for each in np.cumsum(steps)])
    series = SignalSeries(bars, bars)
    with np.errstate(all="ignore"):
        found = series.last_true()
    assert found == plain_last_true(series)


def test_flat_prices_have_crossed_nothing() -> None:
    bars = bars_of([100.1] * 100)
    with np.errstate(all="ignore"):
        found = SignalSeries(bars, bars).last_true()
    assert {name for name, index in found.items() if index is not None} == {"bb_squeeze"}


def test_words() -> None:
    rising = bars_of([100.0 * 1.01**each for each in range(60)])
    up = read(SignalSeries(rising, rising).newest().last)
    assert (up.rsi, up.macd) == ("overbought", "above signal")
    assert up.price_vs_ema9_pct > 0
    assert up.bb_position_pct is not None
    assert up.bb_position_pct > 50
    falling = bars_of([100.0] * 50 + [99.0, 90.0])
    down = read(SignalSeries(falling, falling).newest().last)
    assert (down.rsi, down.macd, down.bollinger) == ("oversold", "below signal", "below lower")
    assert down.bb_position_pct is not None
    assert down.bb_position_pct < 0
    flat = bars_of([100.0] * 60)
    assert read(SignalSeries(flat, flat).newest().last).bb_position_pct is None
