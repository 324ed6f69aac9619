"""Running averages: those of `averages`, one value at a time, equal up to rounding."""

from __future__ import annotations

from math import isnan, nan


class RunningAverage:
    """Exponential average with alpha 2 / (length + 1), seeded with the simple average."""

    __slots__ = ("_count", "_factor", "_length", "_sum", "_value")

    def __init__(self, length: int) -> None:
        self._length = length
        self._factor = 2.0 / (length + 1)
        self._count = 0
        self._sum = 0.0
        self._value = nan

    def update(self, value: float) -> float:
        """The average after this value."""
        if isnan(value):
            return nan
        if self._count >= self._length:
            self._value += (value - self._value) * self._factor
            return self._value
        self._count += 1
        self._sum += value
        if self._count == self._length:
            self._value = self._sum / self._length
        return self._value
