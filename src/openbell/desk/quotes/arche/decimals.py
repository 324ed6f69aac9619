"""Prices and volumes as decimal texts: the shortest that is the same float64, without an exponent."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal


def decimal_text(value: float) -> str:
    """Returns a finite number as a decimal text. Up to 15 digits it has exactly those that the feed sent."""
    text = repr(value)
    return format(Decimal(text), "f") if "e" in text else text


def decimal_texts(values: Iterable[float]) -> list[str]:
    """Returns many numbers as decimal texts."""
    return [decimal_text(value) for value in values]
