"""Timeframes: one type, whatever a contract calls them."""

from __future__ import annotations

from enum import Enum

from openbell.market.errors import InvalidTimeframe


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


def named(text: str, names: dict[str, Timeframe]) -> Timeframe:
    """Read a timeframe by the names of one contract. Raises `InvalidTimeframe`."""
    try:
        return names[text]
    except KeyError:
        raise InvalidTimeframe(text, tuple(names)) from None
