"""WaveTrend: two waves around zero, and their crosses."""

from __future__ import annotations

from openbell.indicators.channels import Channels, Direction, Line, Signal
from openbell.indicators.dots import crosses_above, dots, in_order
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.waves import RunningWave, wave_trend, wave_warmup
from openbell.market.bars import Bars, Values

OVERBOUGHT, OVERSOLD = 53.0, -53.0


def _compute(bars: Bars, channel_length: int, average_length: int) -> Channels:
    fast, slow = wave_trend(bars, channel_length, average_length)
    return Channels(
        lines=(Line("WT1", fast), Line("WT2", slow)),
        histogram=(Line("WT1-WT2", fast - slow),),
        signals=_signals(fast, slow),
        hlines=(OVERSOLD, 0.0, OVERBOUGHT),
    )


def _signals(fast: Values, slow: Values) -> tuple[Signal, ...]:
    """Every cross has one dot: that of its zone if it has one."""
    up, down = crosses_above(fast, slow), crosses_above(slow, fast)
    oversold, overbought = slow <= OVERSOLD, slow >= OVERBOUGHT
    return in_order(
        (
            dots("cross_up_os", up & oversold, slow),
            dots("cross_down_ob", down & overbought, slow),
            dots("cross_up", up & ~oversold, slow),
            dots("cross_down", down & ~overbought, slow),
        )
    )


class _Stream:
    def __init__(self, channel_length: int, average_length: int) -> None:
        self._wave = RunningWave(channel_length, average_length)

    def update(self, bar: Bar) -> tuple[float, ...]:
        fast, slow = self._wave.update(bar)
        return fast, slow, fast - slow


INDICATOR = Indicator(
    name="wavetrend",
    title="WaveTrend",
    description="Distance of the typical price from its EMA in units of its usual distance (WT1), and WT1's average (WT2)",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=wave_warmup,
    parameters=(Parameter("channel_length", 9, 2, 500), Parameter("average_length", 12, 1, 500)),
    aliases=("wt",),
    inputs=("high", "low", "close"),
    signals={
        "cross_up_os": Direction.UP,
        "cross_down_ob": Direction.DOWN,
        "cross_up": Direction.UP,
        "cross_down": Direction.DOWN,
    },
)
