"""Errors of strategies.

InputError
    SpecRefused         a spec has problems, each with the path of its part and what to do about it
        InvalidName, InvalidIndicators, InvalidConditions, InvalidSchema
                        the same, by the part of the first problem
    DuplicateName       the caller has a spec of this name, or a canonical one has it
    InvalidMetric, InvalidSource, InvalidStatus, InvalidPeriod, InvalidDateRange
UnknownStrategy         no implementation and no spec of this id
UnknownSpec             no spec of this id
DataError
    NoStrategies        nothing was found for the symbol
    NoSignal            the strategy has no signal for the symbol
    NoActiveStrategies  no strategy of the symbol is validated or deployed
    NoPerformance       the strategy has not traded in the period
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from openbell.market.errors import DataError, InputError, OpenbellError


class ProblemKind(StrEnum):
    """The part of a spec that a problem concerns; the value is the contract's error code."""

    NAME = "INVALID_NAME"
    INDICATORS = "INVALID_INDICATORS"
    CONDITIONS = "INVALID_CONDITIONS"
    SCHEMA = "SCHEMA_VALIDATION_ERROR"


@dataclass(frozen=True, slots=True)
class SpecProblem:
    """One reason to refuse a spec."""

    kind: ProblemKind
    path: str
    """Where it is, such as `indicators[1].params.length`."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class SpecProblems(list[SpecProblem]):
    """Problems of one spec; only the first are kept."""

    MOST = 50

    def append(self, problem: SpecProblem) -> None:
        """Add a problem unless there are many already."""
        if len(self) < self.MOST:
            super().append(problem)


class SpecRefused(InputError):
    """A spec has problems; `problems` lists all that were found."""

    def __init__(self, name: str, problems: Sequence[SpecProblem]) -> None:
        shown = "; ".join(str(each) for each in problems[:5])
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        named = f"spec {name[:80]!r}" if name else "the spec"
        super().__init__(f"{named} is refused: {shown}{more}", name=name[:80])
        self.problems = tuple(problems)


class InvalidName(SpecRefused):
    """The first problem of a spec concerns its name."""


class InvalidIndicators(SpecRefused):
    """The first problem of a spec concerns its indicators."""


class InvalidConditions(SpecRefused):
    """The first problem of a spec concerns its conditions."""


class InvalidSchema(SpecRefused):
    """The first problem of a spec concerns another part."""


_BY_KIND = {
    ProblemKind.NAME: InvalidName,
    ProblemKind.INDICATORS: InvalidIndicators,
    ProblemKind.CONDITIONS: InvalidConditions,
    ProblemKind.SCHEMA: InvalidSchema,
}


def by_part(refused: SpecRefused) -> SpecRefused:
    """Returns the refusal as the error of its first problem's part, with every problem in its details."""
    found = _BY_KIND[refused.problems[0].kind](refused.details["name"], refused.problems)
    found.details["validation_errors"] = [
        {"code": each.kind.value, "path": each.path, "message": each.message} for each in refused.problems
    ]
    return found


class DuplicateName(InputError):
    """The caller has a spec of this name already, or a canonical spec has it."""


class InvalidMetric(InputError):
    """The ranking has no such metric."""


class InvalidSource(InputError):
    """Specs have no such source."""


class InvalidStatus(InputError):
    """Implementations have no such status."""


class InvalidPeriod(InputError):
    """There is no such period."""


class InvalidDateRange(InputError):
    """A date is not a date, or the start is not before the end."""


class UnknownStrategy(OpenbellError):
    """There is no implementation and no spec of this id."""


class UnknownSpec(OpenbellError):
    """There is no spec of this id."""


class NoStrategies(DataError):
    """Nothing was found for the symbol."""


class NoSignal(DataError):
    """The strategy has no signal for the symbol."""


class NoActiveStrategies(DataError):
    """No strategy of the symbol is validated or deployed."""


class NoPerformance(DataError):
    """The strategy has not traded in the period."""
