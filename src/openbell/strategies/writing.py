"""Makes the keys and lists of a spec, as `reading` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.strategies.indicator_reading import BARS
from openbell.strategies.spec import (
    Comparison,
    Condition,
    ConditionGroup,
    ConditionType,
    IndicatorUse,
    Spec,
    SpecParameter,
    Use,
)

Raw = dict[str, Any]


def write_spec(spec: Spec) -> Raw:
    """Returns plain data, such as JSON can hold, from which `read_spec` makes an equal spec."""
    return {
        "name": spec.name,
        "description": spec.description,
        "complexity": spec.complexity.value,
        "idea": spec.idea,
        "side": spec.side.value,
        "indicators": [_indicator(each) for each in spec.indicators],
        "entryConditions": [_condition(each) for each in spec.entry],
        "exitConditions": _exits(spec),
        "parameters": [_parameter(each) for each in spec.parameters],
    }


def _indicator(use: IndicatorUse) -> Raw:
    named = {"id": use.id, "type": use.indicator, "params": _texts(use.settings)}
    return named if use.input == BARS else {**named, "input": use.input}


def _exits(spec: Spec) -> list[Raw]:
    """Returns the exit conditions. With stops, they are one OR, because each stop closes by itself."""
    stops = [{"type": each.type.value, "params": _texts({"percentage": each.percentage})} for each in spec.stops]
    if not stops:
        return [_condition(each) for each in spec.exit]
    others: tuple[Condition, ...] = spec.exit
    if len(others) == 1 and isinstance(others[0], ConditionGroup) and others[0].type is ConditionType.OR:
        others = others[0].conditions
    return [{"type": ConditionType.OR.value, "conditions": [*map(_condition, others), *stops]}]


def _condition(condition: Condition) -> Raw:
    if isinstance(condition, ConditionGroup):
        return {"type": condition.type.value, "conditions": [_condition(each) for each in condition.conditions]}
    params = _compared(condition) if isinstance(condition, Comparison) else _texts({"barCount": condition.bars})
    return {"type": condition.type.value, "indicator": str(condition.line), "params": params}


def _compared(condition: Comparison) -> Raw:
    other = condition.other
    return {"value": other} if isinstance(other, int | float) else {"other": str(other)}


def _texts(settings: Mapping[str, Any]) -> Raw:
    """Returns settings with uses of parameters as texts: `${period}`."""
    return {name: str(value) if isinstance(value, Use) else value for name, value in settings.items()}


def _parameter(parameter: SpecParameter) -> Raw:
    return {
        "name": parameter.name,
        "type": "INTEGER" if parameter.whole else "DOUBLE",
        "min": parameter.low,
        "max": parameter.high,
        "defaultValue": parameter.default,
    }
