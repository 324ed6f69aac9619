"""The columns that a file of bars must have."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.market.bars import COLUMNS
from openbell.market.errors import InvalidParameter

FIELDS = ("timestamp", *COLUMNS[1:])
"""The columns of a file, in any order."""
TIME_NAMES = ("timestamp", "time", "date", "datetime")
SHOWN = 10
"""How many bad rows or names an error lists."""


def columns_of(names: Sequence[str]) -> list[str]:
    """The columns of a file by our names. Raises `InvalidParameter` if they are not exactly those of a bar."""
    plain = [name.strip().lower() for name in names]
    found = ["timestamp" if name in TIME_NAMES else name for name in plain]
    wrong = {
        "missing": [name for name in FIELDS if name not in found],
        "unknown": [shown(name) if name else "without a name" for name in found if name not in FIELDS],
        "repeated": [shown(name) for at, name in enumerate(found) if name in FIELDS and name in found[:at]],
    }
    if any(wrong.values()):
        said = [f"{what} column {', '.join(columns[:SHOWN])}" for what, columns in wrong.items() if columns]
        raise InvalidParameter(f"{'; '.join(said)} (the columns must be {','.join(FIELDS)}, named by a header)")
    return found


def shown(text: str) -> str:
    """A text as an error shows it."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
