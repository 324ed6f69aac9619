"""Timeframes: one type, whatever a contract calls them."""

from __future__ import annotations

from enum import Enum

from openbell.market.errors import InvalidTimeframe
from openbell.market.nearest import hint


class Timeframe(Enum):
    """The length of a bar in seconds. Days and weeks follow the session where there is one."""

    M1 = 60
    M3 = 180
    M5 = 300
    M15 = 900
    M30 = 1800
    H1 = 3600
    H2 = 7200
    H4 = 14400
    H6 = 21600
    H12 = 43200
    D1 = 86400
    W1 = 604800

    @property
    def seconds(self) -> int:
        """Nominal length."""
        return self.value

    @property
    def intraday(self) -> bool:
        """Whether buckets are plain slices of the UTC day."""
        return self.value < Timeframe.D1.value


SHORT = {
    "1m": Timeframe.M1,
    "3m": Timeframe.M3,
    "5m": Timeframe.M5,
    "15m": Timeframe.M15,
    "30m": Timeframe.M30,
    "1h": Timeframe.H1,
    "2h": Timeframe.H2,
    "4h": Timeframe.H4,
    "6h": Timeframe.H6,
    "12h": Timeframe.H12,
    "1d": Timeframe.D1,
    "1w": Timeframe.W1,
}
"""All of them by their short names."""
SPELLINGS = SHORT | {"1min": Timeframe.M1, "5min": Timeframe.M5, "15min": Timeframe.M15, "1hour": Timeframe.H1}
"""Every name that a contract has for a timeframe. The case counts: elsewhere 1M is a month."""


def named(text: str, names: dict[str, Timeframe]) -> Timeframe:
    """Read a timeframe that a contract offers, by any contract's name for it. Raises `InvalidTimeframe`."""
    found = SPELLINGS.get(text)
    if found is None or found not in names.values():
        raise InvalidTimeframe(text, tuple(names), hint(text, names))
    return found


def name_of(timeframe: Timeframe, names: dict[str, Timeframe]) -> str:
    """What a contract calls one of its timeframes: the name that answers repeat."""
    return next(name for name, each in names.items() if each is timeframe)
