"""A strategy spec as data: indicators, entry and exit conditions, and the parameters that may be varied.

`reading` makes one from the keys that the contract's users write; `compiled` binds its parameters to values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

Number = int | float


class Complexity(StrEnum):
    """How much there is to a spec; for readers only."""

    SIMPLE = "SIMPLE"
    MEDIUM = "MEDIUM"
    COMPLEX = "COMPLEX"


class PositionSide(StrEnum):
    """The side of the positions that a spec opens."""

    LONG = "LONG"
    SHORT = "SHORT"


class ConditionType(StrEnum):
    """The kinds of conditions."""

    CROSSED_UP = "CROSSED_UP"
    CROSSED_DOWN = "CROSSED_DOWN"
    OVER = "OVER"
    UNDER = "UNDER"
    IS_RISING = "IS_RISING"
    IS_FALLING = "IS_FALLING"
    AND = "AND"
    OR = "OR"
    NOT = "NOT"
    STOP_LOSS = "STOP_LOSS"
    STOP_GAIN = "STOP_GAIN"
    TRAILING_STOP_LOSS = "TRAILING_STOP_LOSS"


STOPS = frozenset({ConditionType.STOP_LOSS, ConditionType.STOP_GAIN, ConditionType.TRAILING_STOP_LOSS})
GROUPS = frozenset({ConditionType.AND, ConditionType.OR, ConditionType.NOT})
TRENDS = frozenset({ConditionType.IS_RISING, ConditionType.IS_FALLING})


@dataclass(frozen=True, slots=True)
class Use:
    """The use of a parameter in place of a number: `${period}`."""

    name: str

    def __str__(self) -> str:
        return f"${{{self.name}}}"


Value = Number | Use
Setting = Value | str | bool
"""What an indicator's parameter is set to."""


@dataclass(frozen=True, slots=True)
class SpecParameter:
    """A number that may be varied."""

    name: str
    whole: bool
    low: Number
    high: Number
    default: Number


@dataclass(frozen=True, slots=True)
class IndicatorUse:
    """An indicator under a name of its own."""

    id: str
    indicator: str
    """Its name in the registry."""
    input: str
    """What it is computed from: `bars`, `open`, `high`, `low`, `volume`, or a line of another indicator."""
    settings: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class LineOperand:
    """A value that changes with every bar: a column of the bars, or a line of an indicator."""

    indicator: str | None
    """The id of an `IndicatorUse`; None for a column."""
    name: str

    def __str__(self) -> str:
        return self.name if self.indicator is None else f"{self.indicator}.{self.name}"


Operand = LineOperand | Value


@dataclass(frozen=True, slots=True)
class Comparison:
    """CROSSED_UP, CROSSED_DOWN, OVER or UNDER: a line against a line or a number."""

    type: ConditionType
    line: LineOperand
    other: Operand


@dataclass(frozen=True, slots=True)
class Trend:
    """IS_RISING or IS_FALLING: a line has moved in one direction at each of the last `bars` bars."""

    type: ConditionType
    line: LineOperand
    bars: Value


@dataclass(frozen=True, slots=True)
class ConditionGroup:
    """AND, OR or NOT of other conditions."""

    type: ConditionType
    conditions: tuple[Condition, ...]


Condition = Comparison | Trend | ConditionGroup


@dataclass(frozen=True, slots=True)
class Stop:
    """An exit that fills inside a bar, at a distance in per cent from the entry or from the best price since then."""

    type: ConditionType
    percentage: Value


@dataclass(frozen=True, slots=True)
class Spec:
    """A strategy."""

    name: str
    description: str
    complexity: Complexity
    idea: str
    """The source of the idea, one line."""
    side: PositionSide
    indicators: tuple[IndicatorUse, ...]
    """In the order in which they can be computed."""
    entry: tuple[Condition, ...]
    """All must hold at the close of a bar; the position is opened at the next open."""
    exit: tuple[Condition, ...]
    """All must hold at the close of a bar; empty if only stops close."""
    stops: tuple[Stop, ...]
    """Each closes by itself; at most one of each type."""
    parameters: tuple[SpecParameter, ...]

    def defaults(self) -> dict[str, Number]:
        """The default of each parameter."""
        return {each.name: each.default for each in self.parameters}


def lines_of(conditions: tuple[Condition, ...]) -> Iterator[LineOperand]:
    """Every line that conditions compare, repeated ones too."""
    for each in conditions:
        if isinstance(each, ConditionGroup):
            yield from lines_of(each.conditions)
            continue
        yield each.line
        if isinstance(each, Comparison) and isinstance(each.other, LineOperand):
            yield each.other
