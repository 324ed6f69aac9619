"""What is wrong with a chart config, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

from openbell.market.nearest import did_you_mean

Severity = Literal["error", "warning"]
MOST = 50
"""Errors of one config that are listed, and as many warnings."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One problem of one field. A config with an error is not drawn."""

    field: str
    message: str
    severity: Severity = "error"
    suggestions: tuple[str, ...] = ()


@dataclass(slots=True)
class ConfigProblems:
    """Collects the problems of one config."""

    found: list[ConfigProblem] = field(default_factory=list)

    def error(self, name: str, message: str, *suggestions: str) -> None:
        """Adds an error."""
        self._add(ConfigProblem(name, message, "error", suggestions))

    def warning(self, name: str, message: str, *suggestions: str) -> None:
        """Adds a warning."""
        self._add(ConfigProblem(name, message, "warning", suggestions))

    def full(self, severity: Severity) -> bool:
        """Returns True if no further problem is listed. Whoever looks for problems of many fields can stop then."""
        return sum(each.severity == severity for each in self.found) > MOST

    def _add(self, problem: ConfigProblem) -> None:
        number = sum(each.severity == problem.severity for each in self.found)
        if number < MOST:
            self.found.append(problem)
        elif number == MOST:
            self.found.append(ConfigProblem("config", f"there are more {problem.severity}s", problem.severity))

    @property
    def errors(self) -> list[ConfigProblem]:
        """The errors only."""
        return [each for each in self.found if each.severity == "error"]

    def choose(self, name: str, value: object, choices: Iterable[str]) -> str | None:
        """Returns the choice that a value names, in any case. Adds an error and returns None if there is none."""
        allowed = tuple(choices)
        if isinstance(value, str):
            exact = [each for each in allowed if each == value]
            alike = exact or [each for each in allowed if each.lower() == value.strip().lower()]
            if len(alike) == 1:
                return alike[0]
        shown = shorten(value)
        advice = did_you_mean(value, allowed) if isinstance(value, str) else ""
        self.error(
            name,
            f"{name} {shown} is not one of {', '.join(allowed)}{advice}",
            f"Set {name} to one of {', '.join(allowed)}",
        )
        return None


def is_finite(value: object) -> bool:
    """Returns True if no number in a value that is not nested deeply is infinite or NaN: JSON has no such numbers."""
    if isinstance(value, Mapping):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or isfinite(value)


def is_nested(value: object, levels: int) -> bool:
    """Returns True if lists and objects are nested in more than some levels."""
    level = [value]
    for _ in range(levels + 1):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [each for part in inner for each in part]
        if not inner:
            return False
    return True


def shorten(value: object) -> str:
    """Returns a client's value for a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."
