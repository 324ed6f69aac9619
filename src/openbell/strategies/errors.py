"""Errors of strategies: a spec with problems, each with the path of its part and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from openbell.market.errors import InputError


class Kind(StrEnum):
    """The part of a spec that a problem concerns; the value is the contract's error code."""

    NAME = "INVALID_NAME"
    INDICATORS = "INVALID_INDICATORS"
    CONDITIONS = "INVALID_CONDITIONS"
    SCHEMA = "SCHEMA_VALIDATION_ERROR"


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a spec."""

    kind: Kind
    path: str
    """Where it is, such as `indicators[1].params.length`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class Problems(list[Problem]):
    """Problems of one spec; only the first are kept."""

    MOST = 50

    def append(self, problem: Problem) -> None:
        """Add a problem unless there are many already."""
        if len(self) < self.MOST:
            super().append(problem)


class SpecRefused(InputError):
    """A spec has problems; `problems` lists all that were found."""

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        shown = "; ".join(str(each) for each in problems[:5])
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        super().__init__(f"spec {name[:80]!r} is refused: {shown}{more}", name=name[:80])
        self.problems = tuple(problems)
