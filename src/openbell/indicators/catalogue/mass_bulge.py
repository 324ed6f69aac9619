"""Dorsey's reversal bulge: the mass index has risen above one level and has not yet fallen below a lower one.

`bulge` is 1 from the bar at which the index is above `bulge` until the bar before it is below `settled`, else 0. The bar at
which it falls from 1 to 0 completes the reversal bulge.
"""

from __future__ import annotations

from math import isnan, nan

import numpy as np

from openbell.indicators.catalogue.mass_index import BULGE, SETTLED, RunningMass, mass_index
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.ties import above, below
from openbell.market.bars import Bars


class _Bulge:
    def __init__(self, bulge: float, settled: float) -> None:
        self._bulge, self._settled = bulge, settled
        self._now = 0.0

    def update(self, mass: float) -> tuple[float]:
        if isnan(mass):
            return (nan,)
        if below(mass, self._settled, mass):
            self._now = 0.0
        elif above(mass, self._bulge, mass):
            self._now = 1.0
        return (self._now,)


def _compute(bars: Bars, fast: int, length: int, bulge: float, settled: float) -> Channels:
    mass = mass_index(bars.high, bars.low, fast, length)
    quiet, high = below(mass, settled, mass), above(mass, bulge, mass)
    # The state of the latest bar that is beyond a level; 0 before the first.
    latest = np.maximum.accumulate(np.where(quiet | high, np.arange(len(mass)), -1))
    state = np.append(np.where(high & ~np.asarray(quiet), 1.0, 0.0), 0.0)[latest]
    return Channels(lines=(Line("bulge", np.where(np.isnan(mass), np.nan, state)),))


class _Stream:
    def __init__(self, fast: int, length: int, bulge: float, settled: float) -> None:
        self._mass, self._state = RunningMass(fast, length), _Bulge(bulge, settled)

    def update(self, bar: Bar) -> tuple[float, ...]:
        return self._state.update(*self._mass.update(bar))


INDICATOR = Indicator(
    name="mass_bulge",
    title="Mass Bulge",
    description="1 while the mass index is in a bulge: from a rise above 27 until a fall below 26.5",
    overlay=False,
    compute=_compute,
    stream=_Stream,
    warmup=lambda fast, length, **_: 2 * fast + length - 2,
    parameters=(
        Parameter("fast", 9, 1, 200),
        Parameter("length", 25, 1, 500),
        Parameter("bulge", BULGE, 1.0, 1000.0),
        Parameter("settled", SETTLED, 1.0, 1000.0),
    ),
    inputs=("high", "low"),
)
