"""What an indicator can emit. Arrays are aligned 1:1 with the bars; before warm-up they hold NaN, null on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from openbell.market.bars import Values


@dataclass(frozen=True, slots=True)
class Line:
    """One value per bar."""

    label: str
    values: Values


@dataclass(frozen=True, slots=True)
class Fill:
    """A shaded region between two series."""

    upper: Values
    lower: Values


@dataclass(frozen=True, slots=True)
class Signal:
    """Something that happened at one bar: the bar that confirms it."""

    index: int
    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Channels:
    """Everything that one computation gives."""

    lines: tuple[Line, ...] = ()
    histogram: tuple[Line, ...] = ()
    fills: tuple[Fill, ...] = ()
    signals: tuple[Signal, ...] = ()
    hlines: tuple[float, ...] = ()
    y_range: tuple[float, float] | None = None
