"""What an indicator can emit. Arrays are aligned 1:1 with the bars; before warm-up they hold NaN, null on the wire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from openbell.market.bars import Values


class Direction(Enum):
    """What a signal speaks for."""

    UP = "up"
    DOWN = "down"
    STRONGLY_UP = "strongly up"
    NEITHER = "neither"


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
class HorizontalBar:
    """A bar at a price level, such as a row of a volume profile."""

    y: float
    """The middle of the row, a price."""
    height: float
    """In price."""
    width: float
    """0 to 1 of the chart's width."""
    offset: float
    """Where it begins, 0 to 1 of the chart's width from its edge."""
    left: bool
    """Which edge it stands at."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A straight line between two bars, such as a divergence."""

    x1: int
    y1: float
    x2: int
    y2: float
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Signal:
    """Something that happened at one bar: the bar that confirms it."""

    index: int
    value: float
    label: str


class BarSignal(NamedTuple):
    """A signal that a stream emits at its latest bar: the bar that confirms it."""

    label: str
    value: float


@dataclass(frozen=True, slots=True)
class Channels:
    """Everything that one computation gives."""

    lines: tuple[Line, ...] = ()
    histogram: tuple[Line, ...] = ()
    fills: tuple[Fill, ...] = ()
    hbars: tuple[HorizontalBar, ...] = ()
    divlines: tuple[Segment, ...] = ()
    signals: tuple[Signal, ...] = ()
    hlines: tuple[float, ...] = ()
    y_range: tuple[float, float] | None = None

    def since(self, first: int) -> Channels:
        """The same from one bar on: what is shown of what was computed on more bars."""
        if first <= 0:
            return self
        return replace(
            self,
            lines=tuple(Line(line.label, line.values[first:]) for line in self.lines),
            histogram=tuple(Line(line.label, line.values[first:]) for line in self.histogram),
            fills=tuple(Fill(fill.upper[first:], fill.lower[first:]) for fill in self.fills),
            divlines=tuple(
                replace(segment, x1=segment.x1 - first, x2=segment.x2 - first)
                for segment in self.divlines
                if segment.x1 >= first
            ),
            signals=tuple(
                replace(signal, index=signal.index - first) for signal in self.signals if signal.index >= first
            ),
        )
