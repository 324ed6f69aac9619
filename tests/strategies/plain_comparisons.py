"""Comparisons and sums for plain rules. Numbers that differ by less than 1e-12, relative to the larger one, are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.strategies.plain_rules import Rows, Series, over, where

Rule = Callable[[Rows], list[int]]


def under(value: float | None, other: float | None) -> bool:
    return over(other, value)


def crossed_up(line: Series, other: Series | float, at: int) -> bool:
    now, before = (other[at], other[at - 1]) if isinstance(other, list) else (other, other)
    return over(line[at], now) and not over(line[at - 1], before)


def crossed_down(line: Series, other: Series | float, at: int) -> bool:
    now, before = (other[at], other[at - 1]) if isinstance(other, list) else (other, other)
    return under(line[at], now) and not under(line[at - 1], before)


def crossings(lines: Callable[[Rows], tuple[Series, Series | float]]) -> tuple[Rule, Rule]:
    """The entry and the exit of a strategy that is long while one line is above another."""

    def entries(rows: Rows) -> list[int]:
        line, other = lines(rows)
        return where(len(rows), lambda at: crossed_up(line, other, at))

    def exits(rows: Rows) -> list[int]:
        line, other = lines(rows)
        return where(len(rows), lambda at: crossed_down(line, other, at))

    return entries, exits


def known(line: Series) -> list[float]:
    """The values of a line after its warm-up."""
    return [value for value in line if value is not None]


def padded(values: Sequence[float | None], count: int) -> Series:
    """Values at the end of a line of `count` bars; the ones before are missing."""
    return [*[None] * (count - len(values)), *values]


def smoothed(line: Series, average: Callable[[Sequence[float], int], Series], length: int) -> Series:
    """The average of a line that starts with missing values."""
    return padded(average(known(line), length), len(line))


def sums(values: Sequence[float], length: int) -> list[float]:
    """The sum of each `length` values in a row."""
    return [sum(values[end - length : end]) for end in range(length, len(values) + 1)]
