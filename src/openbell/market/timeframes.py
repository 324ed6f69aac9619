"""Timeframes: one type for all contracts, and the names that each contract uses."""

from __future__ import annotations

from enum import Enum

from openbell.market.errors import InvalidTimeframe
from openbell.market.nearest import did_you_mean


class Timeframe(Enum):
    """The length of a bar in seconds. Daily and weekly bars of stocks follow the sessions."""

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
        """The nominal length."""
        return self.value

    @property
    def intraday(self) -> bool:
        """True if buckets are equal parts of the UTC day."""
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
"""All timeframes by their short names."""
SPELLINGS = SHORT | {"1min": Timeframe.M1, "5min": Timeframe.M5, "15min": Timeframe.M15, "1hour": Timeframe.H1}
"""All names that the contracts use. Case-sensitive, because other programs call a month 1M."""


def parse_timeframe(text: str, names: dict[str, Timeframe]) -> Timeframe:
    """Returns the timeframe with this name, in any contract's spelling. Raises `InvalidTimeframe` if not in `names`."""
    found = SPELLINGS.get(text)
    if found is None or found not in names.values():
        raise InvalidTimeframe(text, tuple(names), did_you_mean(text, names))
    return found


def name_of(timeframe: Timeframe, names: dict[str, Timeframe]) -> str:
    """Returns the name that a contract uses for one of its timeframes."""
    return next(name for name, each in names.items() if each is timeframe)
