"""What is wrong with a chart config, and what would mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from openbell.market.nearest import did_you_mean

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of one field. A config with an error is not drawn."""

    field: str
    message: str
    severity: Severity = "error"
    suggestions: tuple[str, ...] = ()


@dataclass(slots=True)
class Problems:
    """Collects the problems of one config."""

    found: list[Problem] = field(default_factory=list)

    def error(self, name: str, message: str, *suggestions: str) -> None:
        """Adds an error."""
        self.found.append(Problem(name, message, "error", suggestions))

    def warning(self, name: str, message: str, *suggestions: str) -> None:
        """Adds a warning."""
        self.found.append(Problem(name, message, "warning", suggestions))

    @property
    def errors(self) -> list[Problem]:
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


def shorten(value: object) -> str:
    """Returns a client's value for a message."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value[:60] if isinstance(value, str) else value)
    return text if len(text) <= 60 else text[:57] + "..."
