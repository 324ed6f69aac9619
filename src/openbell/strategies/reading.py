"""Makes a `Spec` of the keys and lists that a file or a client contains, and collects everything that is wrong with it.

Keys may be written as in the contract's files (`entryConditions`, `defaultValue`) or in lower case with underscores.
Nothing in a spec is executed: names are looked up, numbers are compared. The conditions of a list must all hold; stops close
a position by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from openbell.market.nearest import did_you_mean
from openbell.strategies.errors import ProblemKind, SpecProblem, SpecProblems, SpecRefused
from openbell.strategies.indicator_names import SpecScope, short, snake
from openbell.strategies.indicator_reading import IndicatorReader
from openbell.strategies.reachable import contradiction
from openbell.strategies.spec import (
    GROUPS,
    STOPS,
    TRENDS,
    Comparison,
    Complexity,
    Condition,
    ConditionGroup,
    ConditionType,
    Number,
    PositionSide,
    Spec,
    SpecParameter,
    Stop,
    Trend,
)

MAX_PARAMETERS = 16
_NAME_LENGTH = (3, 64)
_TEXT = 4000
_KEYS = frozenset(
    "name description complexity idea side indicators entry_conditions exit_conditions parameters reasoning".split()
)
_PARAMETER_KEYS = frozenset({"name", "type", "min", "max", "default_value", "default"})
_LARGEST = 1e12
MAX_CONDITIONS, MAX_DEPTH = 64, 8
_KIND = ProblemKind.CONDITIONS
_CONDITION_KEYS = frozenset({"type", "indicator", "params", "conditions"})
_COMPARED_KEYS = ("crosses", "other", "value", "threshold")
_BAR_KEYS = ("bar_count", "bars")
_LARGEST_PERCENTAGE = {ConditionType.STOP_GAIN: 10_000.0}
_APART = "a stop closes by itself: write it alone, or in one OR with the other exits"


def read_spec(raw: object) -> Spec:
    """Returns the spec. Raises `SpecRefused` with every problem that was found."""
    problems: list[SpecProblem] = SpecProblems()
    if not isinstance(raw, Mapping):
        raise SpecRefused("", [SpecProblem(ProblemKind.SCHEMA, "spec", f"must be an object, not {short(raw)}")])
    keys = _by_key(raw, _KEYS, "", problems)
    name = _name(keys.get("name"), problems)
    parameters = _parameters(keys.get("parameters", []), problems)
    scope = SpecScope({each.name: each for each in parameters}, problems)
    indicators = IndicatorReader(scope).read(keys.get("indicators", []))
    conditions = ConditionReader(scope)
    paths = _spelled(raw, "entryConditions"), _spelled(raw, "exitConditions")
    entry = conditions.entry(keys.get("entry_conditions", []), paths[0])
    exit_, stops = conditions.exit(keys.get("exit_conditions", []), paths[1])
    spec = Spec(
        name=name,
        description=_text(keys, "description", problems),
        complexity=_choice(Complexity, keys.get("complexity", Complexity.SIMPLE), "complexity", problems),
        idea=_text(keys, "idea", problems),
        side=_choice(PositionSide, keys.get("side", PositionSide.LONG), "side", problems),
        indicators=indicators,
        entry=entry,
        exit=exit_,
        stops=stops,
        parameters=parameters,
    )
    if not problems:
        _check_use(spec, scope, paths, problems)
    if problems:
        given = keys.get("name", "")
        raise SpecRefused(name or (given if isinstance(given, str) else short(given)), problems)
    return spec


def _spelled(raw: Mapping[Any, Any], *usual: str) -> str:
    """Returns the key that was written for one of some names, in the caller's spelling; the first name if there is none."""
    plain = {snake(each) for each in usual}
    return next((key for key in raw if isinstance(key, str) and snake(key) in plain), usual[0])


def _check_use(spec: Spec, scope: SpecScope, paths: tuple[str, str], problems: list[SpecProblem]) -> None:
    """Check what only the whole spec shows: conditions that cannot hold, and parts that nothing uses."""
    for path, conditions in zip(paths, (spec.entry, spec.exit), strict=True):
        if why := contradiction(conditions, spec):
            problems.append(SpecProblem(ProblemKind.CONDITIONS, path, f"{why}, so they can never hold"))
    idle = "nothing uses it: remove it, or use it in a condition"
    unused = [each.name for each in spec.parameters if each.name not in scope.used_parameters]
    problems += [SpecProblem(ProblemKind.SCHEMA, f"parameters.{name}", idle) for name in unused]
    unused = [use.id for use in spec.indicators if use.id not in scope.used_indicators]
    problems += [SpecProblem(ProblemKind.INDICATORS, f"indicators.{name}", idle) for name in unused]


def _by_key(raw: Mapping[Any, Any], known: frozenset[str], path: str, problems: list[SpecProblem]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in raw.items():
        plain = snake(key) if isinstance(key, str) else ""
        where = f"{path}.{short(key)}" if path else short(key)
        if plain not in known:
            problems.append(
                SpecProblem(ProblemKind.SCHEMA, where, f"is not a key of a spec: use {', '.join(sorted(known))}")
            )
        elif plain in found:
            problems.append(SpecProblem(ProblemKind.SCHEMA, where, "is there twice"))
        else:
            found[plain] = value
    return found


def _name(value: object, problems: list[SpecProblem]) -> str:
    low, high = _NAME_LENGTH
    if not isinstance(value, str) or not low <= len(value.strip()) <= high:
        problems.append(SpecProblem(ProblemKind.NAME, "name", f"must be a text of {low} to {high} characters"))
        return ""
    plain = value.strip()
    if not all(each.isascii() and (each.isalnum() or each in "_- ") for each in plain) or not plain[0].isalpha():
        message = "must begin with a letter and have letters, digits, spaces, - and _ only"
        problems.append(SpecProblem(ProblemKind.NAME, "name", message))
        return ""
    return snake(plain).upper()


def _text(keys: Mapping[str, Any], key: str, problems: list[SpecProblem]) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str) or len(value) > _TEXT:
        problems.append(SpecProblem(ProblemKind.SCHEMA, key, f"must be a text of at most {_TEXT:,} characters"))
        return ""
    return value.strip()


def _choice(kind: Any, value: object, path: str, problems: list[SpecProblem]) -> Any:
    try:
        return kind(value.upper() if isinstance(value, str) else "")
    except ValueError:
        problems.append(SpecProblem(ProblemKind.SCHEMA, path, f"must be {' or '.join(kind)}, not {short(value)}"))
        return next(iter(kind))


def _parameters(raw: object, problems: list[SpecProblem]) -> tuple[SpecParameter, ...]:
    if not isinstance(raw, list) or len(raw) > MAX_PARAMETERS:
        problems.append(SpecProblem(ProblemKind.SCHEMA, "parameters", f"must be a list of at most {MAX_PARAMETERS}"))
        return ()
    found: dict[str, SpecParameter] = {}
    for at, each in enumerate(raw):
        path = f"parameters[{at}]"
        if not isinstance(each, Mapping):
            problems.append(SpecProblem(ProblemKind.SCHEMA, path, f"must be an object, not {short(each)}"))
            continue
        default = _spelled(each, "defaultValue", "default")
        parameter = _parameter(_by_key(each, _PARAMETER_KEYS, path, problems), path, default, problems)
        if parameter is None:
            continue
        if parameter.name in found:
            problems.append(SpecProblem(ProblemKind.SCHEMA, path, f"a second parameter {parameter.name!r}"))
        found.setdefault(parameter.name, parameter)
    return tuple(found.values())


def _parameter(
    keys: Mapping[str, Any], path: str, default_key: str, problems: list[SpecProblem]
) -> SpecParameter | None:
    name, kind = keys.get("name"), keys.get("type", "DOUBLE")
    kind = kind.upper() if isinstance(kind, str) else ""
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > 64:
        problems.append(SpecProblem(ProblemKind.SCHEMA, f"{path}.name", "must be a name of letters, digits and _"))
        return None
    if kind not in {"INTEGER", "DOUBLE"}:
        problems.append(
            SpecProblem(ProblemKind.SCHEMA, f"{path}.type", f"must be INTEGER or DOUBLE, not {short(keys.get('type'))}")
        )
        return None
    numbers: list[Number] = []
    default = keys.get("default_value", keys.get("default"))
    for key, value in (("min", keys.get("min")), ("max", keys.get("max")), (default_key, default)):
        number = _number(value, kind == "INTEGER")
        if number is None:
            whole = "whole " if kind == "INTEGER" else ""
            problems.append(
                SpecProblem(ProblemKind.SCHEMA, f"{path}.{key}", f"must be a {whole}number, not {short(value)}")
            )
            return None
        numbers.append(number)
    low, high, start = numbers
    if not low <= start <= high:
        problems.append(
            SpecProblem(ProblemKind.SCHEMA, path, f"min ≤ {default_key} ≤ max does not hold: {low}, {start}, {high}")
        )
        return None
    return SpecParameter(name, kind == "INTEGER", low, high, start)


def _number(value: object, whole: bool) -> Number | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    if whole:
        return int(value) if value == int(value) else None
    return float(value) if isfinite(value) else None


class ConditionReader:
    """Reads the lists `entryConditions` and `exitConditions`."""

    def __init__(self, scope: SpecScope) -> None:
        self._scope = scope
        self._count = 0

    def entry(self, raw: object, path: str) -> tuple[Condition, ...]:
        """The entry conditions. `path` is their key as it was written."""
        return self._all(raw, path)

    def exit(self, raw: object, path: str) -> tuple[tuple[Condition, ...], tuple[Stop, ...]]:
        """The exit conditions without stops, and the stops."""
        if not isinstance(raw, list) or len(raw) != 1 or not isinstance(raw[0], Mapping):
            return self._all(raw, path), ()
        kind, children = raw[0].get("type"), raw[0].get("conditions")
        if _type(kind) in STOPS:
            return (), self._stops([(f"{path}[0]", raw[0])])
        if _type(kind) is not ConditionType.OR or not isinstance(children, list):
            return self._all(raw, path), ()
        paths = [(f"{path}[0].conditions[{at}]", each) for at, each in enumerate(children)]
        is_stop = [isinstance(each, Mapping) and _type(each.get("type")) in STOPS for _, each in paths]
        if not any(is_stop):
            return self._all(raw, path), ()
        stops = self._stops([pair for pair, stop in zip(paths, is_stop, strict=True) if stop])
        others = [pair for pair, stop in zip(paths, is_stop, strict=True) if not stop]
        read = [self._condition(each, where, 1) for where, each in others]
        found = tuple(each for each in read if each)
        return ((ConditionGroup(ConditionType.OR, found),) if len(found) > 1 else found), stops

    def _all(self, raw: object, path: str) -> tuple[Condition, ...]:
        if not isinstance(raw, list) or not raw:
            self._scope.refuse(_KIND, path, "must be a list with at least one condition")
            return ()
        read = [self._condition(each, f"{path}[{at}]", 0) for at, each in enumerate(raw[: MAX_CONDITIONS + 1])]
        return tuple(each for each in read if each)

    def _condition(self, raw: object, path: str, depth: int) -> Condition | None:
        self._count += 1
        if self._count > MAX_CONDITIONS or depth > MAX_DEPTH:
            if self._count == MAX_CONDITIONS + 1 or depth == MAX_DEPTH + 1:
                limit = f"more than {MAX_CONDITIONS} conditions, or deeper than {MAX_DEPTH}"
                self._scope.refuse(_KIND, path, limit)
            return None
        if not isinstance(raw, Mapping):
            self._scope.refuse(_KIND, path, f"must be an object with a type, not {short(raw)}")
            return None
        if unknown := [key for key in raw if key not in _CONDITION_KEYS]:
            self._scope.refuse(
                _KIND, f"{path}.{short(unknown[0])}", f"is not a key of a condition: {', '.join(sorted(_KEYS))}"
            )
            return None
        kind = _type(raw.get("type"))
        if kind is None:
            known, named = [each.value for each in ConditionType], raw.get("type")
            advice = did_you_mean(named, known) if isinstance(named, str) else ""
            self._scope.refuse(_KIND, f"{path}.type", f"no condition {short(named)}{advice or f'; known are {known}'}")
            return None
        if kind in STOPS:
            self._scope.refuse(
                _KIND, path, _APART if path.lower().startswith("exit") else "a stop cannot open a position"
            )
            return None
        return self._group(kind, raw, path, depth) if kind in GROUPS else self._leaf(kind, raw, path)

    def _group(self, kind: ConditionType, raw: Mapping[str, Any], path: str, depth: int) -> Condition | None:
        children = raw.get("conditions")
        wanted = "exactly one condition" if kind is ConditionType.NOT else "at least one condition"
        if not isinstance(children, list) or not children or (kind is ConditionType.NOT and len(children) != 1):
            self._scope.refuse(_KIND, f"{path}.conditions", f"{kind} needs a list with {wanted}")
            return None
        numbered = enumerate(children[: MAX_CONDITIONS + 1])
        read = [self._condition(each, f"{path}.conditions[{at}]", depth + 1) for at, each in numbered]
        found = tuple(each for each in read if each)
        return ConditionGroup(kind, found) if len(found) == len(children) else None

    def _leaf(self, kind: ConditionType, raw: Mapping[str, Any], path: str) -> Condition | None:
        line = self._scope.line(raw.get("indicator"), _KIND, f"{path}.indicator")
        params = self._params(raw, path, _BAR_KEYS if kind in TRENDS else _COMPARED_KEYS)
        if params is None or line is None:
            return None
        if kind in TRENDS:
            where = f"{path}.params.{_first_key(raw, 'barCount')}"
            bars = self._scope.value(next(iter(params.values()), 1), _KIND, where)
            if bars is None:
                return None
            low, high = self._scope.bounds(bars)
            if not self._scope.is_whole(bars) or low < 1 or high > 500:
                self._scope.refuse(_KIND, where, "must be a whole number from 1 to 500")
                return None
            return Trend(kind, line, bars)
        if len(params) != 1:
            message = f"{kind} needs what it is compared with: one of {', '.join(_COMPARED_KEYS)}"
            self._scope.refuse(_KIND, f"{path}.params", message)
            return None
        [(key, value)] = params.items()
        other = self._scope.operand(value, _KIND, f"{path}.params.{key}")
        if other is None:
            return None
        if other == line:
            self._scope.refuse(_KIND, f"{path}.params.{key}", f"{line} is compared with itself")
            return None
        return Comparison(kind, line, other)

    def _params(self, raw: Mapping[str, Any], path: str, known: tuple[str, ...]) -> dict[str, Any] | None:
        params = raw.get("params") or {}
        if not isinstance(params, Mapping):
            self._scope.refuse(_KIND, f"{path}.params", f"must be an object, not {short(params)}")
            return None
        found = {snake(str(key)): value for key, value in params.items()}
        if unknown := [str(key) for key in params if snake(str(key)) not in known]:
            self._scope.refuse(_KIND, f"{path}.params.{unknown[0][:64]}", f"is not known here: use {', '.join(known)}")
            return None
        return found

    def _stops(self, raw: list[tuple[str, Mapping[str, Any]]]) -> tuple[Stop, ...]:
        found: dict[ConditionType, Stop] = {}
        for path, each in raw:
            kind = ConditionType(str(each["type"]).upper())
            params = self._params(each, path, ("percentage", "value", "threshold"))
            if params is None:
                continue
            where = f"{path}.params.{_first_key(each, 'percentage')}"
            value = self._scope.value(next(iter(params.values()), None), _KIND, where)
            if value is None:
                continue
            low, high = self._scope.bounds(value)
            most = _LARGEST_PERCENTAGE.get(kind, 100.0)
            if low <= 0 or high >= most:
                self._scope.refuse(_KIND, where, f"must be more than 0 and less than {most:g} per cent")
                continue
            if kind in found:
                self._scope.refuse(_KIND, path, f"a second {kind}")
            found[kind] = Stop(kind, value)
        return tuple(found.values())


def _first_key(raw: Mapping[str, Any], usual: str) -> str:
    """Returns the first key of a condition's params as it was written; `usual` if there is none."""
    return str(next(iter(raw.get("params") or {}), usual))


def _type(raw: object) -> ConditionType | None:
    """The condition type of a name in any case; None if there is none."""
    try:
        return ConditionType(raw.upper()) if isinstance(raw, str) else None
    except ValueError:
        return None
