"""Dorsey's reversal bulge: the mass index has risen above one level and has not yet fallen below a lower one.

`bulge` is 1 from the bar at which the index is above `bulge` until the bar before it is below `settled`, else 0. The bar at
which it falls from 1 to 0 completes the reversal bulge.
"""

from __future__ import annotations

from math import isnan, nan

from openbell.indicators.catalogue.mass_index import BULGE, SETTLED, RunningMass, mass_index
from openbell.indicators.channels import Channels, Line
from openbell.indicators.spec import Bar, Indicator, Parameter
from openbell.indicators.stepwise import stepwise
from openbell.market.bars import Bars


class _Bulge:
    def __init__(self, bulge: float, settled: float) -> None:
        self._bulge, self._settled = bulge, settled
        self._now = 0.0

    def update(self, mass: float) -> tuple[float]:
        if isnan(mass):
            return (nan,)
        if mass < self._settled:
            self._now = 0.0
        elif mass > self._bulge:
            self._now = 1.0
        return (self._now,)


def _compute(bars: Bars, fast: int, length: int, bulge: float, settled: float) -> Channels:
    mass = mass_index(bars.high, bars.low, fast, length)
    return Channels(lines=(Line("bulge", *stepwise(_Bulge(bulge, settled).update, 1, mass)),))


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
