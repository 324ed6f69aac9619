"""Timeframes: one type for all contracts, and the names that each contract uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from math import log

from openbell.market.errors import InvalidTimeframe
from openbell.market.nearest import did_you_mean


class Timeframe(Enum):
    """The length of a bar in seconds, shortest first. Bars of stocks and forex from one day on follow their trading days."""

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
_FORM = re.compile(r"(?:([1-9][0-9]{0,3})[ _-]?)?([A-Za-z]+)|([1-9][0-9]{0,3})")
"""A number with a unit, a unit, or a number."""
_LONGEST = 40
_UNITS = {
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
    **dict.fromkeys(("w", "wk", "week", "weeks"), 7 * 86400),
}
"""Seconds of each unit, in any case. The letter m alone is read by its case."""
_CALENDAR = {
    **dict.fromkeys(("mo", "month", "months"), 1),
    **dict.fromkeys(("q", "quarter", "quarters"), 3),
    **dict.fromkeys(("y", "yr", "year", "years"), 12),
}
"""Months of each calendar unit, in any case."""
_WORDS = {
    "minutely": Timeframe.M1,
    "hourly": Timeframe.H1,
    "daily": Timeframe.D1,
    "weekly": Timeframe.W1,
    "monthly": Timeframe.MONTH,
    "quarterly": Timeframe.QUARTER,
    "yearly": Timeframe.YEAR,
}
_BY_SECONDS = {each.seconds: each for each in Timeframe if not each.months}
_BY_MONTHS = {months: each for each, months in _MONTHS.items()}


def read_timeframe(text: str) -> Timeframe | None:
    """Returns the timeframe of any spelling: 1h, 1H, 1hour, 60m, 60min and 60 (minutes) are one. None if it is none.

    The letter m alone is a minute and M alone is a month, as in the contracts: 5M is refused, because no bar has five
    months. An m without a number is refused, because other programs call a month so.
    """
    form = _FORM.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if form is None:
        return None
    number, unit, minutes = form.groups()
    if minutes:  # as in TradingView
        return _BY_SECONDS.get(int(minutes) * 60)
    if number or unit == "m":
        return _counted(int(number or 0), unit)
    return _WORDS.get(unit.lower()) or _counted(1, unit)


def _counted(count: int, unit: str) -> Timeframe | None:
    if unit == "M":
        return _BY_MONTHS.get(count)
    small = "min" if unit == "m" else unit.lower()
    if months := _CALENDAR.get(small):
        return _BY_MONTHS.get(count * months)
    return _BY_SECONDS.get(count * _UNITS.get(small, 0))


def parse_timeframe(text: str, names: Mapping[str, Timeframe]) -> Timeframe:
    """Returns the timeframe with this name, in any spelling. Raises `InvalidTimeframe` if it is not in `names`."""
    found = names.get(text) or read_timeframe(text)
    if found is None:
        raise InvalidTimeframe(text, tuple(names), did_you_mean(text, names))
    if found not in names.values():
        near = min(names, key=lambda name: abs(log(names[name].seconds / found.seconds)))
        raise InvalidTimeframe(
            text, tuple(names), f"; {name_of(found, ALL_NAMES)} is not among them, {near} is nearest"
        )
    return found


def name_of(timeframe: Timeframe, names: Mapping[str, Timeframe]) -> str:
    """Returns the name that a contract uses for one of its timeframes."""
    return next(name for name, each in names.items() if each is timeframe)
