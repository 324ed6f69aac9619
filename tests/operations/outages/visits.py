"""What a walk has seen: one visit for each condition of each store, with one cell for each action."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Cell:
    """What one user saw."""

    works: bool
    text: str
    seconds: float


@dataclass
class Visit:
    """One condition of one store."""

    store: str
    condition: str
    how: str
    impossible: bool = False
    cells: dict[str, Cell] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """What was lost, doubled, invented or wrong after the fault had ended."""
    seconds: float = 0.0

    @classmethod
    def read(cls, found: dict[str, Any]) -> Visit:
        """A visit of a file."""
        cells = {name: Cell(**cell) for name, cell in found["cells"].items()}
        return cls(**{**found, "cells": cells})
