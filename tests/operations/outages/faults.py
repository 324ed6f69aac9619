"""What can happen to a store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

CONDITIONS = ("stopped", "stalled", "refused", "full", "read-only", "restored older")
Work = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One condition of a store, made and ended."""

    how: str
    """What is done to the store, for the page."""
    begin: Work
    end: Work
    restarts: bool = False
    """True if the desk is stopped before the fault begins and ends, and started afterwards."""
    restarts_after: bool = False
    """True if the desk is stopped and started after the fault has ended."""
    runs_out: bool = False
    """True if writes succeed while there is room: each is repeated until it is refused."""
    copy: Work | None = None
    """Makes the copy that `begin` puts back; more is acknowledged in between."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """A condition that a store cannot have."""

    why: str


@dataclass(frozen=True, slots=True)
class Store:
    """A store and its conditions, in the order in which they are walked."""

    title: str
    faults: Mapping[str, Fault | Impossible]
    holds_records: bool
