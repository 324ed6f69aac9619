"""The output of an indicator. Arrays hold one value per bar; before warm-up the value is NaN (null in JSON)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    ahead: Values | None = None
    """The values after the last bar, one per bar to come, such as those of Ichimoku's spans."""


@dataclass(frozen=True, slots=True)
class FilledBand:
    """A shaded region between two series."""

    upper: Values
    lower: Values
    ahead: tuple[Values, Values] | None = None
    """Both series after the last bar."""


class HorizontalBar(NamedTuple):
    """A bar at a price level, such as a row of a volume profile. A tuple, because there are thousands."""

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
    label: str = ""
    """The name of a level that holds between the bars, such as `POC`; empty for other lines."""


class Level(float):
    """A horizontal line: a number with a name and, if it comes from a part of the bars, the first of them."""

    __slots__ = ("index", "label")

    label: str
    index: int | None

    def __new__(cls, value: float, label: str, index: int | None = None) -> Level:
        """`index` is the first bar of the session that the level comes from."""
        made = super().__new__(cls, value)
        made.label, made.index = label, index
        return made

    def moved(self, by: int) -> Level:
        """The level `by` bars later; without an index if that is before the first bar."""
        return (
            self if self.index is None else Level(self, self.label, self.index + by if self.index + by >= 0 else None)
        )


ZERO = Level(0.0, "zero")


def bounds(low: float, high: float, *, middle: bool = False) -> tuple[Level, ...]:
    """The levels of an oscillator at which it is oversold and overbought and, with `middle`, zero between them."""
    between = (ZERO,) if middle else ()
    return (Level(low, "oversold"), *between, Level(high, "overbought"))


@dataclass(frozen=True, slots=True)
class Signal:
    """An event at one bar: the bar that confirms it."""

    index: int
    value: float
    label: str
    extreme: int | None = field(default=None, compare=False, kw_only=True)
    """The earlier bar of the high or low that is confirmed, if that is another bar and among the bars."""

    def moved(self, by: int) -> Signal:
        """The signal `by` bars later."""
        extreme = None if self.extreme is None or self.extreme + by < 0 else self.extreme + by
        return replace(self, index=self.index + by, extreme=extreme)


@dataclass(frozen=True, slots=True)
class Channels:
    """The result of one computation."""

    lines: tuple[Line, ...] = ()
    histogram: tuple[Line, ...] = ()
    fills: tuple[FilledBand, ...] = ()
    hbars: tuple[HorizontalBar, ...] = ()
    divlines: tuple[Segment, ...] = ()
    signals: Sequence[Signal] = ()
    hlines: tuple[Level, ...] = ()
    y_range: tuple[float, float] | None = None

    def since(self, first: int) -> Channels:
        """The channels from one bar on, with that bar as index 0. Segments and signals that begin earlier are left out."""
        if first <= 0:
            return self
        return replace(
            self,
            lines=tuple(Line(line.label, line.values[first:], line.ahead) for line in self.lines),
            histogram=tuple(Line(line.label, line.values[first:]) for line in self.histogram),
            fills=tuple(FilledBand(fill.upper[first:], fill.lower[first:], fill.ahead) for fill in self.fills),
            hlines=tuple(level.moved(-first) for level in self.hlines),
            divlines=tuple(
                replace(segment, x1=segment.x1 - first, x2=segment.x2 - first)
                for segment in self.divlines
                if segment.x1 >= first
            ),
            signals=tuple(signal.moved(-first) for signal in self.signals if signal.index >= first),
        )
