"""Pairs of lines of one indicator whose crosses traders read, such as MACD and its signal."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Unit(Enum):
    """What the values of a pair are: it decides which differences are rounding alone."""

    PRICE = "price"
    VOLUME = "volume"
    RATIO = "ratio"
    """Shares, per cent and other numbers that do not grow with the price."""


class LinePair(NamedTuple):
    """Two lines, by their labels."""

    line: str
    other: str
    unit: Unit = Unit.RATIO
