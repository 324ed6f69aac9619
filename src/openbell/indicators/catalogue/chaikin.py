"""Chaikin oscillator: a fast less a slow exponential average of the accumulation/distribution line.

The level of that line cancels out, so the oscillator is not cumulative: it depends on the first bar only through the seeds
of its averages, which fade. It is computed from the distance of the line to each average, which needs no running total. A
bar without a range or without volume adds nothing.
"""

from __future__ import annotations

from math import nan

import numpy as np

from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.money_flow import money_flow, money_flow_of
from openbell.indicators.spec import Bar, Indicator, Parameter
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

    def follow(self, flows: list[float]) -> list[float]:
        """The distance after each bar of a whole series."""
        found = [self.update(flow) for flow in flows[: self._length]]
        value, keep = self._value, self._keep
        return found + [value := keep * (value + flow) for flow in flows[self._length :]]


def _compute(bars: Bars, fast: int, slow: int) -> Channels:
    flows = money_flow(bars).tolist()
    quick, calm = (np.array(_Distance(length).follow(flows)) for length in (fast, slow))
    return Channels(lines=(Line("Chaikin", calm - quick),), hlines=(ZERO,))


class _Stream:
    def __init__(self, fast: int, slow: int) -> None:
        self._fast, self._slow = _Distance(fast), _Distance(slow)

    def update(self, bar: Bar) -> tuple[float, ...]:
        flow = money_flow_of(bar)
        return (self._slow.update(flow) - self._fast.update(flow),)


INDICATOR = Indicator(
    name="chaikin",
    title="Chaikin",
    description="Chaikin oscillator: a fast less a slow EMA of the accumulation/distribution line",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(
        Parameter("fast", 3, 1, 500, aliases=("fast_length",)),
        Parameter("slow", 10, 1, 500, aliases=("slow_length",)),
    ),
    aliases=("chaikin_oscillator",),
    inputs=("high", "low", "close", "volume"),
)
