"""Chaikin oscillator: a fast less a slow exponential average of the accumulation/distribution line.

The level of that line cancels out, so the oscillator is not cumulative: it depends on the first bar only through the seeds
of its averages, which fade. It is computed from the distance of the line to each average, which needs no running total. A
bar without a range or without volume adds nothing.
"""

from __future__ import annotations

from math import nan

import numpy as np

from openbell.indicators.catalogue.ad import money_flow
from openbell.indicators.channels import ZERO, Channels, Line
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _distances(flows: list[float], length: int) -> list[float]:
    """The accumulation/distribution line less its exponential average, which starts with the simple average."""
    keep, seed, found = 1.0 - 2.0 / (length + 1), 0.0, [nan] * min(length, len(flows))
    for count, flow in enumerate(flows[:length]):
        seed += count * flow
    if len(flows) >= length:
        found[-1] = value = seed / length
        found += [value := keep * (value + flow) for flow in flows[length:]]
    return found


def _compute(bars: Bars, fast: int, slow: int) -> Channels:
    flows = money_flow(bars).tolist()
    quick, calm = (np.array(_distances(flows, length)) for length in (fast, slow))
    return Channels(lines=(Line("Chaikin", calm - quick),), hlines=(ZERO,))


INDICATOR = Indicator(
    name="chaikin",
    title="Chaikin",
    description="Chaikin oscillator: a fast less a slow EMA of the accumulation/distribution line",
    brief="Chaikin oscillator: fast less slow EMA of accumulation",
    overlay=False,
    compute=_compute,
    warmup=lambda **lengths: max(lengths.values()),
    parameters=(
        Parameter("fast", 3, 1, 500, aliases=("fast_length",)),
        Parameter("slow", 10, 1, 500, aliases=("slow_length",)),
    ),
    aliases=("chaikin_oscillator",),
    inputs=("high", "low", "close", "volume"),
)
