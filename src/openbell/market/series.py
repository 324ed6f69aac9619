"""A series is an instrument at a timeframe: the key under which feeds deliver bars and stores keep them.

A series is native (a vendor or a file has bars of that timeframe) or made of a finer one. `bases` returns the timeframes
that bars of a timeframe can be made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of

_DAY_STEPS = {AssetClass.STOCK: 1800, AssetClass.FOREX: 3600, AssetClass.CRYPTO: Timeframe.D1.seconds}
"""Seconds of which the starts and ends of trading days are multiples: the regular hours of stocks begin and end on half
hours, on half days too, and the days of forex at 21:00 or 22:00 UTC."""


@dataclass(frozen=True, slots=True)
class Series:
    """Bars of one instrument at one timeframe."""

    instrument: Instrument
    timeframe: Timeframe = Timeframe.M1

    @property
    def name(self) -> str:
        """The name in stores: the symbol for minutes (`AAPL`), with the timeframe for others (`AAPL 1d`)."""
        return _name(self)

    def at(self, timeframe: Timeframe) -> Series:
        """Returns the series of the same instrument at another timeframe."""
        return self if timeframe is self.timeframe else Series(self.instrument, timeframe)

    def __lt__(self, other: Series) -> bool:
        return (self.instrument, self.timeframe.seconds) < (other.instrument, other.timeframe.seconds)

    def __str__(self) -> str:
        return self.name


@lru_cache(maxsize=8192)
def _name(series: Series) -> str:
    if series.timeframe is Timeframe.M1:
        return series.instrument.symbol
    return f"{series.instrument.symbol} {name_of(series.timeframe, ALL_NAMES)}"


def series_of(name: str) -> Series:
    """Returns the series of a name in a store. Raises `InvalidSymbol` and `KeyError`."""
    symbol, _, timeframe = name.partition(" ")
    return Series(parse(symbol), ALL_NAMES[timeframe] if timeframe else Timeframe.M1)


def bases(instrument: Instrument, timeframe: Timeframe) -> tuple[Timeframe, ...]:
    """Returns the timeframes that bars of a timeframe can be made of, itself first and minutes last."""
    return _bases(instrument.asset_class, timeframe)


@cache
def _bases(asset_class: AssetClass, timeframe: Timeframe) -> tuple[Timeframe, ...]:
    return tuple(base for base in reversed(Timeframe) if makes(asset_class, base, timeframe))


def makes(asset_class: AssetClass, base: Timeframe, timeframe: Timeframe) -> bool:
    """Returns True if bars of `timeframe` can be made of bars of `base`, each of whole bars.

    What is longer than a day is made of days, or of what makes days: nominal lengths say nothing about months. A stock's day
    is its regular session, which hours cut: the first one holds half an hour of the premarket. Bars of 2 hours and more are
    cut by the days of forex.
    """
    if timeframe.intraday:
        return timeframe.seconds % base.seconds == 0
    if base.intraday:
        return _DAY_STEPS[asset_class] % base.seconds == 0
    return base in {timeframe, Timeframe.D1}
