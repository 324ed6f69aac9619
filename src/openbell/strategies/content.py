"""What a strategy trades, apart from all names: strategies of the same content have the same signals on the same bars."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256

from openbell.strategies.compiled import Compiled
from openbell.strategies.spec import Comparison, Condition, ConditionGroup, ConditionType, LineOperand, Operand

_Names = Mapping[LineOperand, str]


def content_of(strategy: Compiled) -> str:
    """Returns a hash of the side, conditions and stops of a strategy.

    Names of indicators and parameters, and the order of both and of conditions, are left out. Every part is hashed before it
    becomes a part of another: JSON inside JSON doubles its backslashes at each level, so that a chain of 20 indicators had
    a text of gigabytes.
    """
    names: dict[LineOperand, str] = {}
    for step in strategy.steps:
        source = _operand(step.input, names) if step.input else ""
        made = [step.indicator.name, sorted(step.settings.items()), source]
        names |= {line: _hash([made, at]) for at, line in enumerate(step.lines)}
    stops = sorted((kind.value, percentage) for kind, percentage in strategy.stops.items())
    return _hash([strategy.side.value, _all(strategy.entry, names), _all(strategy.exit, names), stops])


def _all(conditions: Iterable[Condition], names: _Names) -> list[str]:
    """Returns conditions that must all hold, in a fixed order and each once."""
    found: set[str] = set()
    for each in conditions:
        if isinstance(each, ConditionGroup) and each.type is ConditionType.AND:
            found.update(_all(each.conditions, names))
        else:
            found.add(_condition(each, names))
    return sorted(found)


def _condition(condition: Condition, names: _Names) -> str:
    if isinstance(condition, ConditionGroup):
        return _hash([condition.type.value, sorted({_hash(_all([each], names)) for each in condition.conditions})])
    other = condition.other if isinstance(condition, Comparison) else condition.bars
    return _hash([condition.type.value, _operand(condition.line, names), _operand(other, names)])


def _operand(operand: Operand, names: _Names) -> str:
    """Returns what a line is computed from, or a number."""
    return names.get(operand, operand.name) if isinstance(operand, LineOperand) else str(operand)


def _hash(body: object) -> str:
    return sha256(json.dumps(body, separators=(",", ":"), default=str).encode()).hexdigest()
