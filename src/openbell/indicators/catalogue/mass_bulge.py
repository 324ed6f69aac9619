"""Dorsey's reversal bulge: the mass index has risen above one level and has not yet fallen below a lower one.

`bulge` is 1 from the bar at which the index is above `bulge` until the bar before it is below `settled`, else 0. The bar at
which it falls from 1 to 0 completes the reversal bulge.
"""

from __future__ import annotations

import numpy as np

from openbell.indicators.catalogue.mass_index import BULGE, SETTLED, mass_index
from openbell.indicators.channels import Channels, Line
from openbell.indicators.float_ties import above, below
from openbell.indicators.spec import Indicator, Parameter
from openbell.market.bars import Bars


def _compute(bars: Bars, fast: int, length: int, bulge: float, settled: float) -> Channels:
    mass = mass_index(bars.high, bars.low, fast, length)
    quiet, high = below(mass, settled, mass), above(mass, bulge, mass)
    # The state of the latest bar that is beyond a level; 0 before the first.
    latest = np.maximum.accumulate(np.where(quiet | high, np.arange(len(mass)), -1))
    state = np.append(np.where(high & ~quiet, 1.0, 0.0), 0.0)[latest]
    return Channels(lines=(Line("bulge", np.where(np.isnan(mass), np.nan, state)),))


INDICATOR = Indicator(
    name="mass_bulge",
    title="Mass Bulge",
    description="1 while the mass index is in a bulge: from a rise above 27 until a fall below 26.5",
    brief="1 while the mass index is in a reversal bulge",
    overlay=False,
    compute=_compute,
    warmup=lambda fast, length, **_: 2 * fast + length - 2,
    parameters=(
        Parameter("fast", 9, 1, 200),
        Parameter("length", 25, 1, 500),
        Parameter("bulge", BULGE, 1.0, 1000.0),
        Parameter("settled", SETTLED, 1.0, 1000.0),
    ),
    inputs=("high", "low"),
)
