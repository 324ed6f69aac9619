"""Scales: map values to pixels and choose ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, isfinite, log, log10
from typing import Literal

import numpy as np

from openbell.charts.scene import Box
from openbell.market.bars import Values

Kind = Literal["linear", "log", "percent", "indexed"]
LABEL_SPACING = 20.0
"""Minimum distance between two labels in pixels."""
_MARGIN = 0.06
_FAR_BELOW = 1e-6
"""Values that are not positive are drawn at this share of a logarithmic scale's lowest value, far below the panel."""
_ROUND = (
    *((1.0,), (2.0, 5.0), (3.0,), (1.5, 4.0, 7.0), (2.5, 6.0, 8.0), (1.2, 3.5, 9.0)),
    *((1.1, 1.3, 1.4, 1.6, 1.7, 1.8, 1.9), (2.2, 2.4, 2.6, 2.8, 3.2, 3.6, 3.8, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5)),
)
"""Ticks within each power of ten: the first group, and further groups if there is room."""
_LEAST_LOG_RATIO = 3.0
"""If the highest value divided by the lowest is smaller, a logarithmic scale has evenly spaced ticks."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps the values of one panel to y. "percent" and "indexed" are linear with labels relative to `base`.

    "percent" has the change from `base` in per cent, "indexed" the value with `base` as 100.
    """

    low: float
    high: float
    box: Box
    kind: Kind = "linear"
    base: float = 1.0

    def y(self, values: Values) -> Values:
        """Returns the y of each value in pixels; higher values have smaller y."""
        if self.kind == "log":
            values = np.log(np.maximum(values, self.low * _FAR_BELOW))
        low, high = self._ends()
        share: Values = (values - low) / (high - low)
        return self.box.bottom - share * self.box.height

    def at(self, value: float) -> float:
        """Returns the y of one value in pixels."""
        if self.kind == "log":
            value = log(max(value, self.low * _FAR_BELOW))
        low, high = self._ends()
        return self.box.bottom - (value - low) / (high - low) * self.box.height

    def _ends(self) -> tuple[float, float]:
        return (log(self.low), log(self.high)) if self.kind == "log" else (self.low, self.high)

    def continued(self, area: Box) -> Scale:
        """Returns the same scale, extended to the edges of a larger area."""
        low, high = self._ends()
        per = (high - low) / self.box.height
        high, low = high + (self.box.top - area.top) * per, low - (area.bottom - self.box.bottom) * per
        if self.kind == "log":
            low, high = exp(low), exp(high)
        return Scale(low, high, area, self.kind, self.base)

    def ticks(self, spacing: float = 44.0) -> list[float]:
        """Returns round values that are about `spacing` pixels apart."""
        most = max(3, int(self.box.height / spacing))
        if self.kind == "percent":
            steps = nice_ticks(self._percent(self.low), self._percent(self.high), most)
            return [self.base * (1 + step / 100) for step in steps]
        if self.kind == "indexed":
            steps = nice_ticks(100 * self.low / self.base, 100 * self.high / self.base, most)
            return [self.base * step / 100 for step in steps]
        if self.kind == "log" and self.high / self.low >= _LEAST_LOG_RATIO:
            return self._log_ticks(spacing)
        return nice_ticks(self.low, self.high, most)

    def _log_ticks(self, spacing: float) -> list[float]:
        """Returns 1, 2 and 5 times each power of ten, then the factors between them, as far as there is room."""
        # Closer than on other scales, so that the uneven spacing shows that the scale is logarithmic.
        spacing = max(LABEL_SPACING, spacing * 0.7)
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        chosen: list[tuple[float, float]] = []
        for factors in _ROUND:
            for value in (factor * 10.0**power for power in powers for factor in factors):
                y = self.at(value)
                if self.low <= value <= self.high and all(abs(y - other) >= spacing for _, other in chosen):
                    chosen.append((value, y))
        return sorted(value for value, _ in chosen)

    def _percent(self, value: float) -> float:
        return (value / self.base - 1) * 100


def extent(values: Sequence[Values]) -> tuple[float, float] | None:
    """Returns the lowest and the highest finite value; None if there is none."""
    every = np.concatenate(values) if values else np.empty(0)
    every = every[np.isfinite(every)]
    return (float(every.min()), float(every.max())) if len(every) else None


def fit(
    values: Sequence[Values], box: Box, kind: Kind = "linear", also: Sequence[Values] = (), base: float = 1.0
) -> Scale:
    """Returns a scale that shows all `values` with a margin.

    It also shows `also`; on a logarithmic scale only as far as `values` keep most of the height.
    """
    found = extent(values)
    if found is None:
        return Scale(0.0, 1.0, box, "linear", base)
    low, high = found
    if kind == "log" and low <= 0:
        kind = "linear"
    if more := extent(also):
        if kind == "log":
            room = max(high / low, 1.05) ** 0.5
            more = max(more[0], low / room), min(more[1], high * room)
        low, high = min(low, more[0]), max(high, more[1])
    if high <= low:
        room = abs(high) * 0.01 or 1.0
    elif kind == "log":
        ratio = (high / low) ** _MARGIN
        return Scale(low / ratio, high * ratio, box, kind, base)
    else:
        room = (high - low) * _MARGIN
    return Scale(low - room, high + room, box, kind, base)


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Returns at most `most` + 1 multiples of 1, 2, 2.5 or 5 times a power of ten."""
    span = high - low
    if not isfinite(span) or span <= 0:
        return []
    raw = span / most
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = ceil(low / step - 1e-9)
    return [n * step for n in range(first, floor(high / step + 1e-9) + 1)]
