"""Reads the indicators of a spec, and sorts them so that each comes after the one that it is computed from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from openbell.indicators.registry import MAX_INDICATORS
from openbell.indicators.spec import Indicator
from openbell.indicators.spec import Parameter as Bounds
from openbell.market.errors import InvalidParameter
from openbell.strategies.errors import ProblemKind
from openbell.strategies.indicator_names import COLUMNS, SpecScope, indicator_of, parameter_of, short, snake, takes_line
from openbell.strategies.spec import IndicatorUse, Number, Setting, Use

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_KEYS = frozenset({"id", "type", "input", "params"})
_KIND = ProblemKind.INDICATORS
BARS = "bars"


class IndicatorReader:
    """Reads the list `indicators` and adds each to the scope."""

    def __init__(self, scope: SpecScope) -> None:
        self._scope = scope

    def read(self, raw: object) -> tuple[IndicatorUse, ...]:
        """The indicators, each after its input."""
        if not isinstance(raw, list) or not raw or len(raw) > MAX_INDICATORS:
            self._scope.refuse(_KIND, "indicators", f"must be a list of 1 to {MAX_INDICATORS} indicators")
            return ()
        paths: dict[str, str] = {}
        entries: dict[str, Mapping[str, Any]] = {}
        for at, each in enumerate(raw):
            path = f"indicators[{at}]"
            keys = self._keys(each, path)
            name = self._id(keys.get("id"), path) if keys else None
            found = self._indicator(keys.get("type"), path) if keys else None
            if keys and name and found:
                if name in entries:
                    self._scope.refuse(_KIND, f"{path}.id", f"a second indicator {name!r}")
                entries[name], paths[name], self._scope.indicators[name] = keys, path, found
        uses = {name: self._use(name, keys, paths[name]) for name, keys in entries.items()}
        return self._sorted({name: use for name, use in uses.items() if use}, paths)

    def _keys(self, raw: object, path: str) -> Mapping[str, Any]:
        if not isinstance(raw, Mapping):
            self._scope.refuse(_KIND, path, f"must be an object with id, type and params, not {short(raw)}")
            return {}
        for key in raw:
            if key not in _KEYS:
                self._scope.refuse(
                    _KIND, f"{path}.{short(key)}", f"is not a key of an indicator: {', '.join(sorted(_KEYS))}"
                )
        return raw

    def _id(self, raw: object, path: str) -> str | None:
        if not isinstance(raw, str) or not _ID.fullmatch(raw) or snake(raw) in COLUMNS or snake(raw) == BARS:
            message = f"must be a name of letters, digits and _ other than {', '.join(COLUMNS)}, not {short(raw)}"
            self._scope.refuse(_KIND, f"{path}.id", message)
            return None
        return raw

    def _indicator(self, raw: object, path: str) -> Indicator | None:
        try:
            return indicator_of(raw) if isinstance(raw, str) else self._no_type(raw)
        except InvalidParameter as error:
            self._scope.refuse(_KIND, f"{path}.type", error.message)
            return None

    @staticmethod
    def _no_type(raw: object) -> Indicator:
        raise InvalidParameter(f"must be the name of an indicator, not {short(raw)}")

    def _use(self, name: str, keys: Mapping[str, Any], path: str) -> IndicatorUse | None:
        indicator, raw = self._scope.indicators[name], keys.get("params") or {}
        if not isinstance(raw, Mapping):
            self._scope.refuse(_KIND, f"{path}.params", f"must be an object, not {short(raw)}")
            return None
        settings: dict[str, Setting] = {}
        for key, value in raw.items():
            where = f"{path}.params.{short(key) if not isinstance(key, str) else key[:64]}"
            try:
                parameter = parameter_of(indicator, str(key))
            except InvalidParameter as error:
                self._scope.refuse(_KIND, where, error.message)
                continue
            bounds = next(each for each in indicator.parameters if each.name == parameter)
            setting = self._setting(bounds, value, where)
            if parameter in settings:
                self._scope.refuse(_KIND, where, f"sets {parameter} a second time")
            if setting is not None:
                settings[parameter] = setting
        source = self._input(indicator, keys.get("input"), path)
        return IndicatorUse(name, indicator.name, source, settings) if source else None

    def _setting(self, bounds: Bounds, raw: object, path: str) -> Setting | None:
        """A setting within the indicator's bounds, for every value that a parameter may take."""
        if isinstance(bounds.default, str | bool):
            return self._checked(bounds, raw, path)
        value = self._scope.value(raw, _KIND, path)
        if value is None:
            return None
        if isinstance(bounds.default, int) and not self._scope.is_whole(value):
            if isinstance(value, Use) or value != int(value):
                self._scope.refuse(
                    _KIND, path, f"must be a whole number, so its parameter must be INTEGER, not {short(raw)}"
                )
                return None
            value = int(value)
        for limit in self._scope.bounds(value):
            if self._checked(bounds, _as_declared(bounds, limit), path) is None:
                return None
        return value

    def _checked(self, bounds: Bounds, value: object, path: str) -> Setting | None:
        try:
            return bounds.check(value)
        except InvalidParameter as error:
            self._scope.refuse(_KIND, path, error.message)
            return None

    def _input(self, indicator: Indicator, raw: object, path: str) -> str | None:
        if raw is None or (isinstance(raw, str) and snake(raw) in {"close", BARS}):
            return BARS
        if not takes_line(indicator):
            message = f"{indicator.name} is computed from {', '.join(indicator.inputs)} only: leave input out"
            self._scope.refuse(_KIND, f"{path}.input", message)
            return None
        line = self._scope.line(raw, _KIND, f"{path}.input")
        return str(line) if line else None

    def _sorted(self, uses: dict[str, IndicatorUse], paths: Mapping[str, str]) -> tuple[IndicatorUse, ...]:
        done: dict[str, IndicatorUse] = {}
        while left := [use for name, use in uses.items() if name not in done]:
            ready = [
                use for use in left if use.input.partition(".")[0] not in uses or use.input.partition(".")[0] in done
            ]
            if not ready:
                for use in left:
                    self._scope.refuse(_KIND, f"{paths[use.id]}.input", "is computed from itself")
                break
            done |= {use.id: use for use in ready}
        return tuple(done.values())


def _as_declared(bounds: Bounds, value: Number) -> Number:
    """A bound of a parameter as the indicator's own parameter is declared: whole or not."""
    return value if isinstance(bounds.default, int) else float(value)
