"""WaveTrend: two waves around zero, and their crosses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import Channels, Direction, Line, bounds
from openbell.indicators.float_ties import OSCILLATOR, above, at_least, at_most, below
from openbell.indicators.rules import Rule, array_signals, crosses_above
from openbell.indicators.spec import Indicator, LinePair, Parameter
from openbell.indicators.windows import window_sum
from openbell.market.bars import Bars, Values

OVERBOUGHT, OVERSOLD = 53.0, -53.0
UNIT = 0.015
SLOW = 3
"""WT2 is the simple average of this many values of WT1."""


def _compute(bars: Bars, channel_length: int, average_length: int) -> Channels:
    fast, slow = wave_trend(bars, channel_length, average_length)
    return Channels(
        lines=(Line("WT1", fast), Line("WT2", slow)),
        histogram=(Line("WT1-WT2", fast - slow),),
        signals=array_signals(_rules, (fast, slow)),
        hlines=bounds(OVERSOLD, OVERBOUGHT, middle=True),
    )


def _rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """Each cross is one signal, with its own label in the oversold and overbought zones."""
    (fast_before, slow_before), (fast, slow) = before, now
    up = crosses_above(fast_before, slow_before, fast, slow)
    down = crosses_above(slow_before, fast_before, slow, fast)
    return (
        ("cross_up_os", up & at_most(slow, OVERSOLD, OSCILLATOR), slow),
        ("cross_down_ob", down & at_least(slow, OVERBOUGHT, OSCILLATOR), slow),
        ("cross_up", up & above(slow, OVERSOLD, OSCILLATOR), slow),
        ("cross_down", down & below(slow, OVERBOUGHT, OSCILLATOR), slow),
    )


def wave_trend(bars: Bars, channel_length: int, average_length: int) -> tuple[Values, Values]:
    """WT1 and WT2; 0 while the price does not move."""
    price = (bars.high + bars.low + bars.close) / 3.0
    moved = price - price[:1]
    distance = moved - ema(moved, channel_length)
    usual = ema(np.abs(distance), channel_length)
    index = np.divide(distance, UNIT * usual, out=0.0 * usual, where=above(usual, 0.0, price))
    fast = ema(index, average_length)
    return fast, window_sum(fast, SLOW) / SLOW


def wave_warmup(channel_length: int, average_length: int) -> int:
    """The number of bars up to the first WT2."""
    return 2 * (channel_length - 1) + (average_length - 1) + SLOW


INDICATOR = Indicator(
    name="wavetrend",
    title="WaveTrend",
    description="Distance of the typical price from its EMA in units of its usual distance (WT1), and WT1's average (WT2)",
    brief="WaveTrend: distance of price from its EMA (WT1, WT2)",
    overlay=False,
    compute=_compute,
    warmup=wave_warmup,
    parameters=(
        Parameter("channel_length", 9, 2, 500, aliases=("ch_len",)),
        Parameter("average_length", 12, 1, 500, aliases=("avg_len",)),
    ),
    aliases=("wt",),
    inputs=("high", "low", "close"),
    signals={
        "cross_up_os": Direction.UP,
        "cross_down_ob": Direction.DOWN,
        "cross_up": Direction.UP,
        "cross_down": Direction.DOWN,
    },
    differs="While the price does not move it is 0, where TradingView has no value.",
    crosses=(LinePair("WT1", "WT2"),),
)
