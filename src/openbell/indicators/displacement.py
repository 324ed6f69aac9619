"""Lines that are drawn a number of bars after the bar that determines them, over arrays and one value at a time."""

from __future__ import annotations

from collections import deque
from math import nan

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


class Delay:
    """`shifted_later`, one value at a time."""

    __slots__ = ("_values",)

    def __init__(self, by: int) -> None:
        self._values = deque([nan] * (by + 1), maxlen=by + 1)

    def update(self, value: float) -> float:
        """The value of `by` bars ago; NaN before the first."""
        self._values.append(value)
        return self._values[0]
