"""Running exponential averages, bit for bit equal to those of `averages`.

For indicators with signals, which a last bit can move to another bar, and for those that magnify rounding, such as a ratio
of two small differences: an error in the 16th digit of an average can reach the 12th digit of the result. TA-Lib's stream
handles compute the same steps as its batch functions. They cannot be pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan

import numpy as np

from openbell.indicators.ta_lib import stream


class ExactAverage:
    """Starts with the simple average. NaN is accepted only before the first number (the warm-up of the input)."""

    __slots__ = ("_handle", "_length", "_seed", "update")

    def __init__(self, length: int, handle: type[stream.EMA | stream.RMA]) -> None:
        self._length = length
        self._handle = handle
        self._seed: list[float] = []
        # After warm-up it is that of TA-Lib's handle: a method around it would take as long as the step.
        self.update: Callable[[float], float] = float if length == 1 else self._warm_up
        """(value): the average after this value."""

    def _warm_up(self, value: float) -> float:
        if isnan(value):
            return nan
        self._seed.append(value)
        if len(self._seed) < self._length:
            return nan
        handle = self._handle(np.array(self._seed), self._length)
        self._seed.clear()
        self.update = handle.update
        return handle.value


def ema(length: int) -> ExactAverage:
    """Exponential average with alpha 2 / (length + 1)."""
    return ExactAverage(length, stream.EMA)


def wilder(length: int) -> ExactAverage:
    """Wilder's average: alpha 1 / length."""
    return ExactAverage(length, stream.RMA)
