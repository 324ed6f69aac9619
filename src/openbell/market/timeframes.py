"""Timeframes: one type for all contracts, and the names that each contract uses."""

from __future__ import annotations

from enum import Enum

from openbell.market.errors import InvalidTimeframe
from openbell.market.nearest import did_you_mean


class Timeframe(Enum):
    """The length of a bar in seconds, shortest first. A stock's bars from one day on follow the sessions."""

    M1 = 60
    M2 = 120
    M3 = 180
    M5 = 300
    M15 = 900
    M30 = 1800
    M45 = 2700
    H1 = 3600
    H2 = 7200
    H3 = 10800
    H4 = 14400
    H6 = 21600
    H8 = 28800
    H12 = 43200
    D1 = 86400
    D2 = 2 * D1
    D3 = 3 * D1
    W1 = 7 * D1
    MONTH = 30 * D1
    QUARTER = 91 * D1
    HALF = 182 * D1
    YEAR = 365 * D1

    @property
    def seconds(self) -> int:
        """The nominal length: calendar months, quarters, halves and years are not all of one length."""
        return self.value

    @property
    def intraday(self) -> bool:
        """True if buckets are equal parts of the UTC day."""
        return self.value < Timeframe.D1.value

    @property
    def months(self) -> int:
        """The calendar months in a bar; 0 for timeframes up to one week."""
        return _MONTHS.get(self, 0)

    @property
    def of_days(self) -> bool:
        """True for several days, months and longer: minutes make days first, and the days make these bars."""
        return self.value > Timeframe.D1.value and self is not Timeframe.W1


_MONTHS = {Timeframe.MONTH: 1, Timeframe.QUARTER: 3, Timeframe.HALF: 6, Timeframe.YEAR: 12}


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
"""The timeframes that servers and commands accept, by their short names."""
ALL_NAMES = SHORT | {
    "2m": Timeframe.M2,
    "45m": Timeframe.M45,
    "3h": Timeframe.H3,
    "8h": Timeframe.H8,
    "2d": Timeframe.D2,
    "3d": Timeframe.D3,
    "1mo": Timeframe.MONTH,
    "3mo": Timeframe.QUARTER,
    "6mo": Timeframe.HALF,
    "1y": Timeframe.YEAR,
}
"""All timeframes by their names in stores and messages. No two differ by case alone: folders and LIKE may ignore case."""
CHART = {
    "1m": Timeframe.M1,
    "2m": Timeframe.M2,
    "3m": Timeframe.M3,
    "5m": Timeframe.M5,
    "15m": Timeframe.M15,
    "30m": Timeframe.M30,
    "45m": Timeframe.M45,
    "1h": Timeframe.H1,
    "2h": Timeframe.H2,
    "3h": Timeframe.H3,
    "4h": Timeframe.H4,
    "6h": Timeframe.H6,
    "8h": Timeframe.H8,
    "12h": Timeframe.H12,
    "1D": Timeframe.D1,
    "2D": Timeframe.D2,
    "3D": Timeframe.D3,
    "1W": Timeframe.W1,
    "1M": Timeframe.MONTH,
    "3M": Timeframe.QUARTER,
    "6M": Timeframe.HALF,
    "1Y": Timeframe.YEAR,
}
"""All timeframes by their names in charts: 1m is a minute and 1M is a month."""
SPELLINGS = SHORT | {"1min": Timeframe.M1, "5min": Timeframe.M5, "15min": Timeframe.M15, "1hour": Timeframe.H1}
"""All names that the contracts use. Case-sensitive, because other programs call a month 1M."""


def parse_timeframe(text: str, names: dict[str, Timeframe]) -> Timeframe:
    """Returns the timeframe with this name, in any contract's spelling. Raises `InvalidTimeframe` if not in `names`."""
    found = names.get(text) or SPELLINGS.get(text)
    if found is None or found not in names.values():
        raise InvalidTimeframe(text, tuple(names), did_you_mean(text, names))
    return found


def name_of(timeframe: Timeframe, names: dict[str, Timeframe]) -> str:
    """Returns the name that a contract uses for one of its timeframes."""
    return next(name for name, each in names.items() if each is timeframe)
