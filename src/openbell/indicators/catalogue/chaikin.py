"""Chaikin oscillator: a fast less a slow exponential average of the accumulation/distribution line.

The level of that line cancels out, so the oscillator is not cumulative: it depends on the first bar only through the seeds
of its averages, which fade. It is computed from the distance of the line to each average, which needs no running total. A
bar without a range or without volume adds nothing.
"""

from __future__ import annotations

from math import nan

from openbell.indicators.channels import Channels, Line
from openbell.indicators.money_flow import money_flow, money_flow_of
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars


class _Distance:
    """The accumulation/distribution line less its exponential average, which starts with the simple average."""

    __slots__ = ("_count", "_keep", "_length", "_seed", "_value")

    def __init__(self, length: int) -> None:
        self._length = length
        self._keep = 1.0 - 2.0 / (length + 1)
        self._count = 0
        self._seed = 0.0
        self._value = nan

    def update(self, flow: float) -> float:
        """The distance after a bar with this money flow."""
        if self._count == self._length:
            self._value = self._keep * (self._value + flow)
            return self._value
        self._seed += self._count * flow
        self._count += 1
        if self._count == self._length:
            self._value = self._seed / self._length
        return self._value


class _Oscillator:
    def __init__(self, fast: int, slow: int) -> None:
        self._fast = _Distance(fast)
        self._slow = _Distance(slow)

    def update(self, flow: float) -> tuple[float, ...]:
        return (self._slow.update(flow) - self._fast.update(flow),)


def _compute(bars: Bars, fast: int, slow: int) -> Channels:
    (values,) = stepwise(_Oscillator(fast, slow).update, 1, money_flow(bars))
    return Channels(lines=(Line("Chaikin", values),), hlines=(0.0,))


class _Stream:
    def __init__(self, fast: int, slow: int) -> None:
        self._oscillator = _Oscillator(fast, slow)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._oscillator.update(money_flow_of(bar))


INDICATOR = Indicator(
    name="chaikin",
    title="Chaikin",
    description="Chaikin oscillator: a fast less a slow EMA of the accumulation/distribution line",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(Parameter("fast", 3, 1, 500), Parameter("slow", 10, 1, 500)),
    aliases=("chaikin_oscillator",),
    inputs=("high", "low", "close", "volume"),
)
