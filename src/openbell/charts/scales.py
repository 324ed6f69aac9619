"""Scales: from values to pixels, and where ticks go."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, log, log10, nan
from typing import Literal

import numpy as np

from openbell.charts.scene import Box
from openbell.market.bars import Values

Kind = Literal["linear", "log", "percent"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values of one panel to y. Percent is linear with other labels; `base` is what its labels relate to."""

    low: float
    high: float
    box: Box
    kind: Kind = "linear"
    base: float = 1.0

    def y(self, values: Values) -> Values:
        """Pixels, the higher the value the smaller."""
        if self.kind == "log":
            with np.errstate(invalid="ignore", divide="ignore"):
                values = np.log(np.where(values > 0, values, np.nan))
        low, high = self._ends()
        share: Values = (values - low) / (high - low)
        return self.box.bottom - share * self.box.height

    def at(self, value: float) -> float:
        """One value's pixel."""
        if self.kind == "log":
            value = log(value) if value > 0 else nan
        low, high = self._ends()
        return self.box.bottom - (value - low) / (high - low) * self.box.height

    def _ends(self) -> tuple[float, float]:
        return (log(self.low), log(self.high)) if self.kind == "log" else (self.low, self.high)

    def ticks(self, spacing: float = 44.0) -> list[float]:
        """Round values about `spacing` pixels apart."""
        most = max(2, int(self.box.height / spacing))
        if self.kind == "percent":
            steps = nice_ticks(self._percent(self.low), self._percent(self.high), most)
            return [self.base * (1 + step / 100) for step in steps]
        return nice_ticks(self.low, self.high, most)

    def label(self, value: float, decimals: int) -> str:
        """A tick's text."""
        if self.kind == "percent":
            return f"{self._percent(value):+.2f}%".replace("-", "−")
        return number(value, decimals)

    def _percent(self, value: float) -> float:
        return (value / self.base - 1) * 100


def fit(values: list[Values], box: Box, kind: Kind, margin: float = 0.06, base: float = 1.0) -> Scale:
    """A scale that shows all values with some room around them."""
    finite = [v[np.isfinite(v)] for v in values]
    finite = [v for v in finite if len(v)]
    if not finite:
        return Scale(0.0, 1.0, box, "linear", base)
    low, high = min(float(v.min()) for v in finite), max(float(v.max()) for v in finite)
    if kind == "log" and low <= 0:
        kind = "linear"
    if high <= low:
        room = abs(high) * 0.01 or 1.0
    elif kind == "log":
        ratio = (high / low) ** margin
        return Scale(low / ratio, high * ratio, box, kind, base)
    else:
        room = (high - low) * margin
    return Scale(low - room, high + room, box, kind, base)


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, at most `most` of them."""
    span = high - low
    if not isfinite(span) or span <= 0:
        return []
    raw = span / most
    power = 10.0 ** floor(log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = ceil(low / step - 1e-9)
    return [n * step for n in range(first, floor(high / step + 1e-9) + 1)]


def decimals_for(values: Values) -> int:
    """How many decimals the prices really have, at most 8."""
    sample = values[np.isfinite(values)][-60:]
    largest = float(np.abs(sample).max(initial=0))
    for decimals in range(9):
        if np.abs(sample - np.round(sample, decimals)).max(initial=0) <= 1e-9 * max(1e-9, largest):
            return max(decimals, 2) if largest < 10000 else max(decimals, 1)
    return 8


def number(value: float, decimals: int) -> str:
    """A number with thousands separated and a real minus."""
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−")


def short(value: float) -> str:
    """A large number in few characters: 1.23M."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if abs(value) >= limit:
            return f"{value / limit:.2f}{unit}".replace("-", "−")
    return f"{value:.2f}".replace("-", "−") if abs(value) < 100 else f"{value:.0f}".replace("-", "−")
