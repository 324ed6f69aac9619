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


def named(text: str, names: dict[str, Timeframe]) -> Timeframe:
    """Read a timeframe by the names of one contract. Raises `InvalidTimeframe`."""
    try:
        return names[text]
    except KeyError:
        raise InvalidTimeframe(text, tuple(names)) from None
