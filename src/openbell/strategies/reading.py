"""Makes a `Spec` of the keys and lists that a file or a client contains, and collects everything that is wrong with it.

Keys may be written as in the contract's files (`entryConditions`, `defaultValue`) or in lower case with underscores.
Nothing in a spec is executed: names are looked up, numbers are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from openbell.strategies.condition_reading import ConditionReader
from openbell.strategies.errors import Kind, Problem, Problems, SpecRefused
from openbell.strategies.indicator_names import snake
from openbell.strategies.indicator_reading import IndicatorReader
from openbell.strategies.reachable import contradiction
from openbell.strategies.scope import Scope, short
from openbell.strategies.spec import Complexity, Number, Parameter, Side, Spec

MAX_PARAMETERS = 16
_NAME_LENGTH = (3, 64)
_TEXT = 4000
_KEYS = frozenset(
    "name description complexity idea side indicators entry_conditions exit_conditions parameters reasoning".split()
)
_PARAMETER_KEYS = frozenset({"name", "type", "min", "max", "default_value", "default"})
_LARGEST = 1e12


def read_spec(raw: object) -> Spec:
    """Returns the spec. Raises `SpecRefused` with every problem that was found."""
    problems: list[Problem] = Problems()
    if not isinstance(raw, Mapping):
        raise SpecRefused("", [Problem(Kind.SCHEMA, "spec", f"must be an object, not {short(raw)}")])
    keys = _by_key(raw, _KEYS, "", problems)
    name = _name(keys.get("name"), problems)
    parameters = _parameters(keys.get("parameters", []), problems)
    scope = Scope({each.name: each for each in parameters}, problems)
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
        side=_choice(Side, keys.get("side", Side.LONG), "side", problems),
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


def _check_use(spec: Spec, scope: Scope, paths: tuple[str, str], problems: list[Problem]) -> None:
    """Check what only the whole spec shows: conditions that cannot hold, and parts that nothing uses."""
    for path, conditions in zip(paths, (spec.entry, spec.exit), strict=True):
        if why := contradiction(conditions, spec):
            problems.append(Problem(Kind.CONDITIONS, path, f"{why}, so they can never hold"))
    idle = "nothing uses it: remove it, or use it in a condition"
    unused = [each.name for each in spec.parameters if each.name not in scope.used_parameters]
    problems += [Problem(Kind.SCHEMA, f"parameters.{name}", idle) for name in unused]
    unused = [use.id for use in spec.indicators if use.id not in scope.used_indicators]
    problems += [Problem(Kind.INDICATORS, f"indicators.{name}", idle) for name in unused]


def _by_key(raw: Mapping[Any, Any], known: frozenset[str], path: str, problems: list[Problem]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in raw.items():
        plain = snake(key) if isinstance(key, str) else ""
        where = f"{path}.{short(key)}" if path else short(key)
        if plain not in known:
            problems.append(Problem(Kind.SCHEMA, where, f"is not a key of a spec: use {', '.join(sorted(known))}"))
        elif plain in found:
            problems.append(Problem(Kind.SCHEMA, where, "is there twice"))
        else:
            found[plain] = value
    return found


def _name(value: object, problems: list[Problem]) -> str:
    low, high = _NAME_LENGTH
    if not isinstance(value, str) or not low <= len(value.strip()) <= high:
        problems.append(Problem(Kind.NAME, "name", f"must be a text of {low} to {high} characters"))
        return ""
    plain = value.strip()
    if not all(each.isascii() and (each.isalnum() or each in "_- ") for each in plain) or not plain[0].isalpha():
        message = "must begin with a letter and have letters, digits, spaces, - and _ only"
        problems.append(Problem(Kind.NAME, "name", message))
        return ""
    return snake(plain).upper()


def _text(keys: Mapping[str, Any], key: str, problems: list[Problem]) -> str:
    value = keys.get(key, "")
    if not isinstance(value, str) or len(value) > _TEXT:
        problems.append(Problem(Kind.SCHEMA, key, f"must be a text of at most {_TEXT:,} characters"))
        return ""
    return value.strip()


def _choice(kind: Any, value: object, path: str, problems: list[Problem]) -> Any:
    try:
        return kind(value.upper() if isinstance(value, str) else "")
    except ValueError:
        problems.append(Problem(Kind.SCHEMA, path, f"must be {' or '.join(kind)}, not {short(value)}"))
        return next(iter(kind))


def _parameters(raw: object, problems: list[Problem]) -> tuple[Parameter, ...]:
    if not isinstance(raw, list) or len(raw) > MAX_PARAMETERS:
        problems.append(Problem(Kind.SCHEMA, "parameters", f"must be a list of at most {MAX_PARAMETERS}"))
        return ()
    found: dict[str, Parameter] = {}
    for at, each in enumerate(raw):
        path = f"parameters[{at}]"
        if not isinstance(each, Mapping):
            problems.append(Problem(Kind.SCHEMA, path, f"must be an object, not {short(each)}"))
            continue
        default = _spelled(each, "defaultValue", "default")
        parameter = _parameter(_by_key(each, _PARAMETER_KEYS, path, problems), path, default, problems)
        if parameter is None:
            continue
        if parameter.name in found:
            problems.append(Problem(Kind.SCHEMA, path, f"a second parameter {parameter.name!r}"))
        found.setdefault(parameter.name, parameter)
    return tuple(found.values())


def _parameter(keys: Mapping[str, Any], path: str, default_key: str, problems: list[Problem]) -> Parameter | None:
    name, kind = keys.get("name"), keys.get("type", "DOUBLE")
    kind = kind.upper() if isinstance(kind, str) else ""
    if not isinstance(name, str) or not name.isidentifier() or not name.isascii() or len(name) > 64:
        problems.append(Problem(Kind.SCHEMA, f"{path}.name", "must be a name of letters, digits and _"))
        return None
    if kind not in {"INTEGER", "DOUBLE"}:
        problems.append(
            Problem(Kind.SCHEMA, f"{path}.type", f"must be INTEGER or DOUBLE, not {short(keys.get('type'))}")
        )
        return None
    numbers: list[Number] = []
    default = keys.get("default_value", keys.get("default"))
    for key, value in (("min", keys.get("min")), ("max", keys.get("max")), (default_key, default)):
        number = _number(value, kind == "INTEGER")
        if number is None:
            whole = "whole " if kind == "INTEGER" else ""
            problems.append(Problem(Kind.SCHEMA, f"{path}.{key}", f"must be a {whole}number, not {short(value)}"))
            return None
        numbers.append(number)
    low, high, start = numbers
    if not low <= start <= high:
        problems.append(Problem(Kind.SCHEMA, path, f"min ≤ {default_key} ≤ max does not hold: {low}, {start}, {high}"))
        return None
    return Parameter(name, kind == "INTEGER", low, high, start)


def _number(value: object, whole: bool) -> Number | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    if whole:
        return int(value) if value == int(value) else None
    return float(value) if isfinite(value) else None
