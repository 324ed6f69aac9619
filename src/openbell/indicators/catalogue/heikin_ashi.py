"""Heikin-Ashi candles: each bar is averaged with the previous candle, so that candles of a trend have one colour."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import BarSignal, Channels, Line
from openbell.indicators.flips import SIGNALS, flip_rules, flips
from openbell.indicators.rules import RunningRules
from openbell.indicators.spec import Bar, Indicator
from openbell.indicators.ta_lib import talib
from openbell.indicators.ties import above
from openbell.market.bars import Bars


def _compute(bars: Bars) -> Channels:
    opened, high, low, close = talib.HA(bars.open, bars.high, bars.low, bars.close)
    return Channels(
        lines=(Line("open", opened), Line("high", high), Line("low", low), Line("close", close)),
        signals=flips(np.where(above(close, opened, close), 1.0, 0.0) - above(opened, close, close), close),
    )


class _Stream:
    def __init__(self) -> None:
        self._next_open: float | None = None
        self._side = 0.0
        self._rules = RunningRules(flip_rules, 2)

    def update(self, bar: Bar) -> tuple[float, ...]:
        opened = (bar.open + bar.close) / 2.0 if self._next_open is None else self._next_open
        close = (bar.open + bar.high + bar.low + bar.close) / 4.0
        self._next_open = (opened + close) / 2.0
        if above(close, opened, close):
            self._side = 1.0
        elif above(opened, close, close):
            self._side = -1.0
        self._rules.update(self._side, close)
        return opened, max(bar.high, opened, close), min(bar.low, opened, close), close

    def signals(self) -> tuple[BarSignal, ...]:
        return self._rules.signals()


INDICATOR = Indicator(
    name="heikin_ashi",
    title="Heikin Ashi",
    description="Candles averaged with the candle before; a flip is a body of the other colour",
    overlay=True,
    compute=_compute,
    stream=_Stream,
    warmup=lambda: 1,
    aliases=("ha",),
    inputs=("open", "high", "low", "close"),
    signals=SIGNALS,
)
