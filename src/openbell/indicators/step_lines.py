"""Lines that hold their values from one change to the next, such as the level of the last complete brick."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openbell.market.bars import Values


def step_lines(changes: Mapping[int, tuple[float, ...]], before: tuple[float, ...], count: int) -> tuple[Values, ...]:
    """A line for each value of a state, given the states at the bars that change it, in order.

    `before` is the state before the first change, `count` the number of bars.
    """
    lengths = np.diff([0, *changes, count])
    return tuple(np.repeat(np.array(column), lengths) for column in zip(before, *changes.values(), strict=True))
