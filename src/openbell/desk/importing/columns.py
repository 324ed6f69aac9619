"""The columns of a file of bars."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.market.bars import COLUMNS
from openbell.market.errors import InvalidParameter

FIELDS = ("timestamp", *COLUMNS[1:])
"""The required columns, in any order."""
TIME_NAMES = ("timestamp", "time", "date", "datetime")
SHOWN = 10
"""How many bad rows or names an error message lists."""


def columns_of(names: Sequence[str]) -> list[str]:
    """The names of `FIELDS` for the columns of a file. Raises `InvalidParameter` unless it has exactly these columns."""
    plain = [name.strip().lower() for name in names]
    found = ["timestamp" if name in TIME_NAMES else name for name in plain]
    wrong = {
        "missing": [name for name in FIELDS if name not in found],
        "unknown": [shown(name) if name else "without a name" for name in found if name not in FIELDS],
        "repeated": [shown(name) for at, name in enumerate(found) if name in FIELDS and name in found[:at]],
    }
    if any(wrong.values()):
        faults = [f"{what} column {', '.join(columns[:SHOWN])}" for what, columns in wrong.items() if columns]
        raise InvalidParameter(f"{'; '.join(faults)} (the columns must be {','.join(FIELDS)}, named by a header)")
    return found


def shown(text: str) -> str:
    """A text quoted for an error message, at most 40 characters long."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
