"""True strength index: the doubly smoothed change of the close over its doubly smoothed size. 0 while nothing moves."""

from __future__ import annotations

from math import nan

import numpy as np

from openbell.indicators.averages import ema
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.exact_averages import ema as running_ema
from openbell.indicators.line_pairs import LinePair
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.market.bars import Bars, Values


def true_strength(close: Values, long: int, short: int) -> Values:
    """−1 to 1, from EMAs over `short` of EMAs over `long`."""
    change = np.diff(close, prepend=np.nan)
    net, size = (ema(ema(values, long), short) for values in (change, np.abs(change)))
    return np.divide(net, size, out=0.0 * size, where=~(size <= 0.0))


class RunningStrength:
    """`true_strength`, one close at a time, bit for bit equal."""

    __slots__ = ("_close", "_net", "_net_long", "_size", "_size_long")

    def __init__(self, long: int, short: int) -> None:
        self._net_long, self._size_long = running_ema(long), running_ema(long)
        self._net, self._size = running_ema(short), running_ema(short)
        self._close = nan

    def update(self, close: float) -> float:
        """The index after this close."""
        change, self._close = close - self._close, close
        net = self._net.update(self._net_long.update(change))
        size = self._size.update(self._size_long.update(abs(change)))
        return 0.0 if size <= 0.0 else net / size


def _compute(bars: Bars, long: int, short: int, signal: int) -> Channels:
    line = 100.0 * true_strength(bars.close, long, short)
    return Channels(lines=(Line("TSI", line), Line("Signal", ema(line, signal))), hlines=(ZERO,))


class _Stream:
    def __init__(self, long: int, short: int, signal: int) -> None:
        self._strength, self._signal = RunningStrength(long, short), running_ema(signal)

    def update(self, bar: Bar) -> tuple[float, ...]:
        line = 100.0 * self._strength.update(bar.close)
        return line, self._signal.update(line)


INDICATOR = Indicator(
    name="tsi",
    title="TSI",
    description="True strength index: doubly smoothed change of the close in per cent of its size, and its signal",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda long, short, signal: long + short + signal - 1,
    parameters=(
        Parameter("long", 25, 1, 500, aliases=("long_length",)),
        Parameter("short", 13, 1, 500, aliases=("short_length",)),
        Parameter("signal", 13, 1, 500, aliases=("signal_length",)),
    ),
    aliases=("true_strength", "true_strength_index"),
    differs="While the price does not move it is 0, where TradingView has no value.",
    crosses=(LinePair("TSI", "Signal"),),
)
