"""The halt as every part of the desk sees it: why no position may be opened, and whether that is known."""

from __future__ import annotations

from dataclasses import dataclass

from openbell.market.foreign_text import one_visible_line


@dataclass(frozen=True, slots=True)
class Halt:
    """Why no position may be opened."""

    reason: str
    """The operator's words as they were stored, or why nobody can tell."""
    known: bool = True
    """False if nobody can tell whether trading is halted: then no position is opened, and no order is cancelled."""

    def __str__(self) -> str:
        reason = one_visible_line(self.reason)
        return reason if self.known else f"unknown: {reason}"

    @property
    def text(self) -> str:
        """That trading is halted, or that nobody can tell, in words."""
        return f"trading is halted: {self}" if self.known else f"halt {self}"

    @property
    def until(self) -> str:
        """What ends it."""
        return "openbell resume" if self.known else "the file can be read"
