"""The latest values of some columns as arrays, for streams that compute on the whole window at each bar."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import Values

ROOM = 4
"""Windows for which there is room, so that values are seldom moved."""


class Latest:
    """A window of the latest `length` values of each column."""

    __slots__ = ("_columns", "_count", "_length", "_room", "_values")

    def __init__(self, length: int, columns: int) -> None:
        self._length, self._count, self._room = length, 0, ROOM * length
        self._values = np.zeros((columns, self._room))
        self._columns = tuple(self._values)

    def update(self, *values: float) -> Values | None:
        """A row per column, oldest first, which is valid until the next update; None until there are enough values."""
        count, length = self._count, self._length
        if count == self._room:  # the window moves back to the start
            count = length - 1
            self._values[:, :count] = self._values[:, self._room - count :]
        for column, value in zip(self._columns, values, strict=True):
            column[count] = value
        self._count = count = count + 1
        return None if count < length else self._values[:, count - length : count]


def sum_of(values: Values) -> float:
    """The sum, added oldest first. The order in which `np.sum` adds depends on the number of values."""
    total: float = values.cumsum().item(-1)
    return total
