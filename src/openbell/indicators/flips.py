"""Where a trend turns from one side to the other."""

from __future__ import annotations

import numpy as np

from openbell.indicators.channels import Signal
from openbell.market.bars import Values

LABELS = ("flip_up", "flip_down")


def flips(side: Values, values: Values) -> tuple[Signal, ...]:
    """A signal at each bar whose side (1 up, −1 down) is not the one before; 0 takes no side, the first is no turn."""
    taken = np.flatnonzero(side)
    sides = side[taken]
    turned = taken[1:][sides[1:] != sides[:-1]]
    labels = [LABELS[0] if up else LABELS[1] for up in (side[turned] > 0).tolist()]
    return tuple(map(Signal, turned.tolist(), values[turned].tolist(), labels))
