"""The latest values of some columns as arrays, for streams that compute on the whole window at each bar."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Values


class Latest:
    """A window of the latest `length` values of each column."""

    __slots__ = ("_count", "_length", "_values")

    def __init__(self, length: int, columns: int) -> None:
        self._length = length
        # Each value is stored twice, so that the window is always a slice.
        self._values = np.zeros((columns, 2 * length))
        self._count = 0

    def update(self, *values: float) -> Values | None:
        """A row per column, oldest first, which is valid until the next update; None until there are enough values."""
        place = self._count % self._length
        self._count += 1
        both = self._values[:, place :: self._length]
        both[:, 0] = both[:, 1] = values
        return None if self._count < self._length else self._values[:, place + 1 : place + 1 + self._length]


def sum_of(values: Values) -> float:
    """The sum, added oldest first. The order in which `np.sum` adds depends on the number of values."""
    total: float = values.cumsum().item(-1)
    return total
