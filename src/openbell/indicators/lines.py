"""Lines that do not follow from bar to bar: drawn a number of bars later, or held from one change to the next.

A held line is, for example, the level of the last complete brick.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from openbell.market.bars import Values

MAX_OFFSET = 500


def shifted_later(values: Values, by: int) -> Values:
    """The values `by` bars later, cut off at the last bar."""
    out = np.full(len(values), np.nan)
    out[by:] = values[: max(0, len(values) - by)]
    return out


def beyond_the_last(values: Values, by: int) -> Values:
    """The values that `shifted_later` cuts off: those of the `by` bars after the last one."""
    out = np.full(by, np.nan)
    kept = min(by, len(values))
    out[by - kept :] = values[len(values) - kept :]
    return out


def step_lines(changes: Mapping[int, tuple[float, ...]], before: tuple[float, ...], count: int) -> tuple[Values, ...]:
    """A line for each value of a state, given the states at the bars that change it, in order.

    `before` is the state before the first change, `count` the number of bars.
    """
    lengths = np.diff([0, *changes, count])
    return tuple(np.repeat(np.array(column), lengths) for column in zip(before, *changes.values(), strict=True))
