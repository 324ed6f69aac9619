"""Plain calculations with series that begin with missing values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.strategies.plain_rules import Rows, Series

Closes = list[int]
"""The positions of the bars at whose close a rule holds."""
Rule = Callable[[Rows], Closes]
Average = Callable[[Sequence[float], int], Series]


def closes(rows: Rows) -> list[float]:
    return [row.close for row in rows]


def combined(make: Callable[..., float], *lines: Sequence[float | None]) -> Series:
    """The value made of those of all lines at each bar; missing where one of them is."""
    return [None if None in values else make(*values) for values in zip(*lines, strict=True)]


def of_series(average: Average, values: Series, length: int) -> Series:
    """An average of a series, from its first value on."""
    known = [value for value in values if value is not None]
    return [*[None] * (len(values) - len(known)), *average(known, length)]


def highest(rows: Rows, length: int) -> Series:
    """The highest high of the latest bars."""
    windows = (rows[at - length + 1 : at + 1] for at in range(length - 1, len(rows)))
    return [*[None] * (length - 1), *(max(row.high for row in window) for window in windows)]


def lowest(rows: Rows, length: int) -> Series:
    """The lowest low of the latest bars."""
    windows = (rows[at - length + 1 : at + 1] for at in range(length - 1, len(rows)))
    return [*[None] * (length - 1), *(min(row.low for row in window) for window in windows)]
