"""The names that are known inside a spec while it is read: parameters and indicators, and which of them are used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from openbell.indicators.spec import Indicator
from openbell.market.nearest import did_you_mean
from openbell.strategies.errors import Kind, Problem
from openbell.strategies.indicator_names import COLUMNS, known_lines, lines, snake
from openbell.strategies.spec import Line, Number, Operand, Parameter, Use

_USE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_LARGEST = 1e12


def short(value: object) -> str:
    """A value in an error message."""
    shown = repr(value) if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


@dataclass
class Scope:
    """What the parts of one spec may refer to. Problems are added to one list."""

    parameters: Mapping[str, Parameter]
    problems: list[Problem]
    indicators: dict[str, Indicator] = field(default_factory=dict)
    """By id."""
    used_parameters: set[str] = field(default_factory=set)
    used_indicators: set[str] = field(default_factory=set)

    def refuse(self, kind: Kind, path: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(kind, path, message))

    def value(self, raw: object, kind: Kind, path: str) -> Number | Use | None:
        """A number or the use of a parameter; None, after adding a problem, if it is neither."""
        if isinstance(raw, str) and (match := _USE.fullmatch(raw.strip())):
            name = match[1]
            if name not in self.parameters:
                self.refuse(kind, path, f"no parameter {name!r}{did_you_mean(name, self.parameters)}")
                return None
            self.used_parameters.add(name)
            return Use(name)
        if isinstance(raw, bool) or not isinstance(raw, int | float) or not abs(raw) <= _LARGEST or not isfinite(raw):
            self.refuse(kind, path, f"must be a number or ${{parameter}}, not {short(raw)}")
            return None
        return raw

    def bounds(self, value: Number | Use) -> tuple[Number, Number]:
        """The least and the largest number that a value can be."""
        if isinstance(value, Use):
            return self.parameters[value.name].low, self.parameters[value.name].high
        return value, value

    def is_whole(self, value: Number | Use) -> bool:
        """Returns True if a value is always a whole number."""
        return self.parameters[value.name].whole if isinstance(value, Use) else isinstance(value, int)

    def line(self, raw: object, kind: Kind, path: str) -> Line | None:
        """A column of the bars or a line of an indicator; None, after adding a problem, if it is neither."""
        if not isinstance(raw, str):
            self.refuse(kind, path, f"must name an indicator or a column of the bars, not {short(raw)}")
            return None
        name, _, wanted = raw.strip().partition(".")
        if name in self.indicators:
            return self._line_of(name, wanted, kind, path)
        if not wanted and snake(name) in COLUMNS:
            return Line(None, snake(name))
        known = {*self.indicators, *COLUMNS}
        advice = did_you_mean(name, known) or f"; known are {', '.join(sorted(known))}"
        self.refuse(kind, path, f"no indicator {short(name)}{advice}")
        return None

    def _line_of(self, name: str, wanted: str, kind: Kind, path: str) -> Line | None:
        indicator = self.indicators[name]
        known = known_lines(indicator)
        if not wanted and len(known) > 1 and indicator.name not in known:
            self.refuse(
                kind, path, f"{name} has several lines: write {' or '.join(f'{name}.{each}' for each in known)}"
            )
            return None
        chosen = snake(wanted) if wanted else (indicator.name if indicator.name in known else known[0])
        if chosen not in known:
            later = chosen in lines(indicator)
            why = (
                "is drawn at earlier bars than it is known at, so it looks ahead"
                if later
                else "is not one of its lines"
            )
            self.refuse(kind, path, f"{name}.{short(wanted)} {why}: use {', '.join(known)}")
            return None
        self.used_indicators.add(name)
        return Line(name, chosen)

    def operand(self, raw: object, kind: Kind, path: str) -> Operand | None:
        """A line, a number or the use of a parameter; None, after adding a problem, if it is none of them."""
        if isinstance(raw, str) and not raw.strip().startswith("${"):
            return self.line(raw, kind, path)
        return self.value(raw, kind, path)
