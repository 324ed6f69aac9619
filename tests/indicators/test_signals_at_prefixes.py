"""Signals at every prefix of the bars: a later bar neither adds one to an earlier bar nor takes one away."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.channels import Signal
from openbell.indicators.registry import all_indicators, get
from openbell.indicators.spec import Indicator, Parameter, Setting
from openbell.market.bars import Bars, make
from openbell.market.timeframes import Timeframe
from tests.counts import runs
from tests.indicators.test_every_indicator import crypto_bars, stock_bars
from tests.market.walks import CRYPTO, at, minutes, walk

WITH_SIGNALS = [indicator for indicator in all_indicators().values() if indicator.signals]
WALKS = runs(10, soak=200)
KNOWN = """cipher_b double_pattern fractals gann_swing heikin_ashi kalman_volume rsi rsi_mfi_stoch sar squeeze supertrend
volatility_stop volume_spread wavetrend zigzag""".split()

each_with_signals = pytest.mark.parametrize("indicator", WITH_SIGNALS, ids=lambda indicator: indicator.name)


@cache
def long_swings() -> Bars:
    """A walk with long swings up and down, and with more bars than any two of the longest settings need."""
    noise = walk(minutes("2025-03-04T00:00Z", "2025-03-05T12:00Z"), 9, step=0.01)
    swing = np.exp(np.sin(np.arange(len(noise)) / 50.0))
    return make(CRYPTO, Timeframe.M1, noise.time, *(column * swing for column in noise.columns()[1:5]), noise.volume)


@cache
def in_ticks() -> Bars:
    """Prices in few whole ticks, so that many are equal; with halts, and a while without volume."""
    moving = walk(minutes("2025-03-04T00:00Z", "2025-03-04T16:00Z"), 12, price=1.0, step=0.003)
    opened, high, low, close = (np.round(column * 500) / 500 for column in moving.columns()[1:5])
    for begin in range(100, len(moving), 200):
        for column in (opened, high, low, close):
            column[begin : begin + 100] = close[begin - 1]
    volume = np.where((moving.time // 60) % 960 < 100, 0.0, moving.volume)
    return make(CRYPTO, Timeframe.M1, moving.time, opened, high, low, close, volume)


def extremes_of(parameter: Parameter) -> list[Setting]:
    if isinstance(parameter.default, bool):
        return [True, False]
    return list(parameter.choices) if isinstance(parameter.default, str) else [parameter.low, parameter.high]


def extreme_settings(indicator: Indicator) -> list[dict[str, Setting]]:
    """The defaults, each parameter at each of its bounds, and all of them at their first and at their last."""
    bounds = {parameter.name: extremes_of(parameter) for parameter in indicator.parameters}
    found = [indicator.settings()]
    found += [indicator.settings(**{name: value}) for name, values in bounds.items() for value in values]
    for end in (0, -1):
        found.append(indicator.settings(**{name: values[end] for name, values in bounds.items()}))
    return [each for number, each in enumerate(found) if each not in found[:number]]


def assert_at_every_prefix(indicator: Indicator, chosen: dict[str, Setting], bars: Bars) -> None:
    with np.errstate(all="ignore"):
        whole = list(indicator.run(bars, **chosen).signals)
        for count in range(len(bars) + 1):
            then = indicator.run(bars.take(slice(0, count)), **chosen)
            assert list(then.signals) == [signal for signal in whole if signal.index < count], (chosen, count)


def test_every_indicator_with_signals_is_known() -> None:
    assert [indicator.name for indicator in WITH_SIGNALS] == KNOWN


def test_a_candle_without_a_body_is_no_flip() -> None:
    """Heikin-Ashi: no body, up (the first colour: no flip), no body, up, no body, down."""
    rows = [(10, 12, 10, 12), (12, 14, 12, 14), (12, 12, 12, 12), (13, 13, 13, 13), (12.5, 12.5, 12.5, 12.5), (11,) * 4]
    time = at("2025-03-04T00:00Z") + np.arange(len(rows)) * 60
    bars = make(CRYPTO, Timeframe.M1, time, *zip(*rows, strict=True), np.ones(len(rows)))
    opened, _, _, close = (line.values for line in get("heikin_ashi").run(bars).lines)
    assert np.sign(close - opened).tolist() == [0, 1, 0, 1, 0, -1]

    assert list(get("heikin_ashi").run(bars).signals) == [Signal(5, 11.0, "flip_down")]


@each_with_signals
class TestSignals:
    def test_come_with_every_label(self, indicator: Indicator) -> None:
        """What the other tests compare is there at all."""
        seen = {
            signal.label
            for bars in (crypto_bars(), stock_bars(), long_swings(), in_ticks())
            for chosen in extreme_settings(indicator)
            for signal in indicator.run(bars, **chosen).signals
        }

        assert seen == set(indicator.labels)

    def test_are_never_added_to_an_earlier_bar(self, indicator: Indicator) -> None:
        """At every prefix."""
        data = long_swings().tail(150)
        for chosen in extreme_settings(indicator):
            assert_at_every_prefix(indicator, chosen, data)

    @given(
        seed=st.integers(0, 2**32),
        count=st.integers(0, 90),
        price=st.sampled_from([1e-8, 1.0, 1e9]),
        step=st.sampled_from([1e-6, 0.003, 0.1]),
        ticks=st.sampled_from([None, 20, 1000]),
        data=st.data(),
    )
    @settings(deadline=None, max_examples=WALKS)
    def test_of_any_walk_with_any_settings_at_every_prefix(
        self,
        indicator: Indicator,
        seed: int,
        count: int,
        price: float,
        step: float,
        ticks: int | None,
        data: st.DataObject,
    ) -> None:
        bars = walk(at("2025-03-04T23:30Z") + np.arange(count) * 60, seed, price=price, step=step)
        if ticks:
            columns = [
                np.maximum(np.round(column / price * ticks), 1.0) / ticks * price for column in bars.columns()[1:5]
            ]
            bars = make(CRYPTO, Timeframe.M1, bars.time, *columns, bars.volume)
        chosen = indicator.settings(**{p.name: data.draw(drawn(p), p.name) for p in indicator.parameters})

        assert_at_every_prefix(indicator, chosen, bars)


def drawn(parameter: Parameter) -> st.SearchStrategy[Setting]:
    """Mostly short lengths: long ones are never warm on few bars."""
    if isinstance(parameter.default, bool | str):
        return st.sampled_from(extremes_of(parameter))
    if isinstance(parameter.default, int):
        return st.integers(int(parameter.low), min(int(parameter.high), 12))
    return st.floats(parameter.low, parameter.high)
