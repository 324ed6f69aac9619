"""Flips: the bars at which a trend changes sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from openbell.indicators.channels import Direction, Signal
from openbell.indicators.rules import Rule, array_signals
from openbell.market.bars import Values

SIGNALS = {"flip_up": Direction.UP, "flip_down": Direction.DOWN}
_UP, _DOWN = SIGNALS


def flip_rules(before: Sequence[Values], now: Sequence[Values]) -> Sequence[Rule]:
    """A flip is a change between the sides 1 (up) and −1 (down). The values are the side and the value of the signal."""
    side_before, side, value = before[0], now[0], now[1]
    return (
        (_UP, (side_before < 0.0) & (side > 0.0), value),
        (_DOWN, (side_before > 0.0) & (side < 0.0), value),
    )


def flips(side: Values, values: Values) -> Sequence[Signal]:
    """A signal at each bar whose side differs from the previous side. Bars of side 0 are skipped."""
    taken = np.maximum.accumulate(np.where(side != 0.0, np.arange(len(side)), 0))
    return array_signals(flip_rules, (side[taken], values))
