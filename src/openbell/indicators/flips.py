"""Where a trend turns from one side to the other."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Direction, Signal
from openbell.market.bars import Values

SIGNALS = {"flip_up": Direction.UP, "flip_down": Direction.DOWN}


def flips(side: Values, values: Values) -> tuple[Signal, ...]:
    """A signal at each bar whose side (1 up, −1 down) is not the one before; 0 takes no side, the first is no turn."""
    taken = np.flatnonzero(side)
    sides = side[taken]
    turned = taken[1:][sides[1:] != sides[:-1]]
    above, below = SIGNALS
    labels = [above if up else below for up in (side[turned] > 0).tolist()]
    return tuple(map(Signal, turned.tolist(), values[turned].tolist(), labels))
