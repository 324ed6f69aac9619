"""The output of an indicator. Arrays hold one value per bar; before warm-up the value is NaN (null in JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from openbell.market.bars import Values


class Direction(Enum):
    """The move of the price that a signal indicates."""

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
    """In units of price."""
    width: float
    """0 to 1 of the chart's width."""
    offset: float
    """Distance from the chart's edge to its start, 0 to 1 of the chart's width."""
    left: bool
    """True if that edge is the left one."""


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
    """An event at one bar: the bar that confirms it."""

    index: int
    value: float
    label: str


class BarSignal(NamedTuple):
    """A signal of the latest bar of a stream."""

    label: str
    value: float


@dataclass(frozen=True, slots=True)
class Channels:
    """The result of one computation."""

    lines: tuple[Line, ...] = ()
    histogram: tuple[Line, ...] = ()
    fills: tuple[Fill, ...] = ()
    hbars: tuple[HorizontalBar, ...] = ()
    divlines: tuple[Segment, ...] = ()
    signals: Sequence[Signal] = ()
    hlines: tuple[float, ...] = ()
    y_range: tuple[float, float] | None = None

    def since(self, first: int) -> Channels:
        """The channels from one bar on, with that bar as index 0. Segments and signals that begin earlier are left out."""
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
