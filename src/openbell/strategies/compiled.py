"""A spec whose parameters are bound to numbers: the indicators to compute and the conditions to check.

Its content is what it trades, apart from all names: strategies of the same content have the same signals on the same bars.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isfinite

from openbell.indicators.registry import get
from openbell.indicators.spec import Indicator
from openbell.indicators.spec import Setting as IndicatorSetting
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean
from openbell.strategies.indicator_names import lines
from openbell.strategies.indicator_reading import BARS
from openbell.strategies.spec import (
    Comparison,
    Condition,
    ConditionGroup,
    ConditionType,
    LineOperand,
    Number,
    Operand,
    PositionSide,
    Spec,
    Trend,
    Use,
    lines_of,
)

_Names = Mapping[LineOperand, str]


@dataclass(frozen=True, slots=True)
class IndicatorStep:
    """One indicator to compute, and from what."""

    id: str
    indicator: Indicator
    settings: Mapping[str, IndicatorSetting]
    input: LineOperand | None
    """None for the bars themselves."""
    lines: tuple[LineOperand, ...]
    """In the order of its result: lines, then histograms."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """A strategy with numbers in place of parameters."""

    spec: Spec
    parameters: Mapping[str, Number]
    steps: tuple[IndicatorStep, ...]
    entry: tuple[Condition, ...]
    exit: tuple[Condition, ...]
    stops: Mapping[ConditionType, float]
    """The distance of each stop in per cent."""

    @property
    def name(self) -> str:
        """The name of the spec."""
        return self.spec.name

    @property
    def side(self) -> PositionSide:
        """The side of its positions."""
        return self.spec.side

    @property
    def warmup(self) -> int:
        """The number of bars up to the first one at which all its lines have a value, and one more for crossings."""
        needed: dict[str, int] = {}
        for step in self.steps:
            before = needed.get(step.input.indicator or "", 1) - 1 if step.input else 0
            needed[step.id] = before + step.indicator.warmup(**step.settings)
        trends = [each.bars for each in _leaves((*self.entry, *self.exit)) if isinstance(each, Trend)]
        return max([1, *needed.values()]) + max([1, *(int(each) for each in trends if not isinstance(each, Use))])


def compiled(spec: Spec, parameters: Mapping[str, Number] | None = None) -> Compiled:
    """Bind parameters; those left out keep their defaults. Raises `InvalidParameter`."""
    values = spec.defaults() | _checked(spec, parameters or {})
    steps = []
    for use in spec.indicators:
        indicator = get(use.indicator)
        settings = {name: _bound(value, values) for name, value in use.settings.items()}
        source = None if use.input == BARS else line_of(use.input)
        named = tuple(LineOperand(use.id, name) for name in lines(indicator))
        steps.append(IndicatorStep(use.id, indicator, indicator.settings(**settings), source, named))
    return Compiled(
        spec,
        values,
        tuple(steps),
        tuple(_bind(each, values) for each in spec.entry),
        tuple(_bind(each, values) for each in spec.exit),
        {stop.type: float(_number(stop.percentage, values)) for stop in spec.stops},
    )


def line_of(text: str) -> LineOperand:
    """The line that the text of `LineOperand` names."""
    name, dot, line = text.partition(".")
    return LineOperand(name, line) if dot else LineOperand(None, name)


def used_lines(conditions: tuple[Condition, ...]) -> tuple[LineOperand, ...]:
    """The lines that conditions compare, each once."""
    return tuple(dict.fromkeys(lines_of(conditions)))


def _checked(spec: Spec, given: Mapping[str, Number]) -> dict[str, Number]:
    known = {each.name: each for each in spec.parameters}
    found: dict[str, Number] = {}
    for name, value in given.items():
        if name not in known:
            advice = did_you_mean(name, known) or f"; it has {', '.join(known) or 'none'}"
            raise InvalidParameter(f"{spec.name} has no parameter {str(name)[:80]!r}{advice}")
        parameter = known[name]
        if not is_number(value) or (parameter.whole and value != int(value)):
            whole = "whole " if parameter.whole else ""
            raise InvalidParameter(f"{name} must be a {whole}number, not {value!r}")
        if not parameter.low <= value <= parameter.high:
            raise InvalidParameter(f"{name} must be between {parameter.low} and {parameter.high}, not {value}")
        found[name] = int(value) if parameter.whole else float(value)
    return found


def is_number(value: object) -> bool:
    """Returns True for a finite number."""
    return not isinstance(value, bool) and isinstance(value, int | float) and isfinite(value)


def _bound(value: object, values: Mapping[str, Number]) -> object:
    return values[value.name] if isinstance(value, Use) else value


def _number(value: Number | Use, values: Mapping[str, Number]) -> Number:
    return values[value.name] if isinstance(value, Use) else value


def _bind(condition: Condition, values: Mapping[str, Number]) -> Condition:
    if isinstance(condition, ConditionGroup):
        return ConditionGroup(condition.type, tuple(_bind(each, values) for each in condition.conditions))
    if isinstance(condition, Trend):
        return Trend(condition.type, condition.line, _number(condition.bars, values))
    other: Operand = condition.other
    return Comparison(
        condition.type, condition.line, other if isinstance(other, LineOperand) else float(_number(other, values))
    )


def _leaves(conditions: tuple[Condition, ...]) -> list[Comparison | Trend]:
    found: list[Comparison | Trend] = []
    for each in conditions:
        found += _leaves(each.conditions) if isinstance(each, ConditionGroup) else [each]
    return found


def content_of(strategy: Compiled, *, constants: bool = True) -> str:
    """Returns a hash of the side, conditions and stops of a strategy; without `constants`, of its idea.

    Names of indicators and parameters, and the order of both and of conditions, are left out, and what is written in two
    ways (`OVER a b`, `UNDER b a`) is the same. Strategies of one idea differ in their numbers only. Every part is hashed
    before it becomes a part of another: JSON inside JSON doubles its backslashes at each level, so that a chain of 20
    indicators had a text of gigabytes.
    """
    names: dict[LineOperand, str] = {}
    for step in strategy.steps:
        source = _operand(step.input, names) if step.input else ""
        chosen = [(name, value) for name, value in step.settings.items() if constants or not is_number(value)]
        made = [step.indicator.name, sorted(chosen), source]
        names |= {line: _hash([made, at]) for at, line in enumerate(step.lines)}
    stops = sorted((kind.value, percentage if constants else 0.0) for kind, percentage in strategy.stops.items())
    rules = (_all(each, names, constants=constants) for each in (strategy.entry, strategy.exit))
    return _hash([strategy.side.value, *rules, stops])


def _all(conditions: Iterable[Condition], names: _Names, *, constants: bool) -> list[str]:
    """Returns conditions that must all hold, in a fixed order and each once."""
    found: set[str] = set()
    for each in conditions:
        if isinstance(each, ConditionGroup) and each.type is ConditionType.AND:
            found.update(_all(each.conditions, names, constants=constants))
        else:
            found.add(_condition(each, names, constants=constants))
    return sorted(found)


_TURNED = {ConditionType.UNDER: ConditionType.OVER, ConditionType.CROSSED_DOWN: ConditionType.CROSSED_UP}
"""What holds of two lines when the first holds of them in the other order."""


def _condition(condition: Condition, names: _Names, *, constants: bool) -> str:
    if isinstance(condition, ConditionGroup):
        parts = sorted({_hash(_all([each], names, constants=constants)) for each in condition.conditions})
        return _hash([condition.type.value, parts])
    kind, line = condition.type, condition.line
    other = condition.other if isinstance(condition, Comparison) else condition.bars
    if kind in _TURNED and isinstance(other, LineOperand):
        kind, line, other = _TURNED[kind], other, line
    shown = other if constants or isinstance(other, LineOperand) else 0
    return _hash([kind.value, _operand(line, names), _operand(shown, names)])


def _operand(operand: Operand, names: _Names) -> str:
    """Returns what a line is computed from, or a number."""
    return names.get(operand, operand.name) if isinstance(operand, LineOperand) else str(operand)


def _hash(body: object) -> str:
    return sha256(json.dumps(body, separators=(",", ":"), default=str).encode()).hexdigest()
