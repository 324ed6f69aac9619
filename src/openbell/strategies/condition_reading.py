"""Reads the conditions of a spec. The conditions of a list must all hold; stops close a position by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openbell.market.nearest import did_you_mean
from openbell.strategies.errors import Kind
from openbell.strategies.indicator_names import snake
from openbell.strategies.scope import Scope, short
from openbell.strategies.spec import GROUPS, STOPS, TRENDS, Comparison, Condition, ConditionType, Group, Stop, Trend

MAX_CONDITIONS, MAX_DEPTH = 64, 8
_KIND = Kind.CONDITIONS
_KEYS = frozenset({"type", "indicator", "params", "conditions"})
_OTHER = ("crosses", "other", "value", "threshold")
_BARS = ("bar_count", "bars")
_LARGEST_PERCENTAGE = {ConditionType.STOP_GAIN: 10_000.0}
_APART = "a stop closes by itself: write it alone, or in one OR with the other exits"


class ConditionReader:
    """Reads the lists `entryConditions` and `exitConditions`."""

    def __init__(self, scope: Scope) -> None:
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
        return ((Group(ConditionType.OR, found),) if len(found) > 1 else found), stops

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
        if unknown := [key for key in raw if key not in _KEYS]:
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
        return Group(kind, found) if len(found) == len(children) else None

    def _leaf(self, kind: ConditionType, raw: Mapping[str, Any], path: str) -> Condition | None:
        line = self._scope.line(raw.get("indicator"), _KIND, f"{path}.indicator")
        params = self._params(raw, path, _BARS if kind in TRENDS else _OTHER)
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
            message = f"{kind} needs what it is compared with: one of {', '.join(_OTHER)}"
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
