"""The source of bars. Simulated and real bars are never in one file, and every file names its source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of

TRUTH = "openbell/truth"
"""The key of the truth header in the `_meta` of results and notifications."""


class Origin(StrEnum):
    """The kind of data that a result is based on; the value in the truth header."""

    SIMULATED = "simulated"
    IMPORTED = "imported"
    REPLAY = "replay"
    LIVE = "live"


class Adjustment(StrEnum):
    """What the prices of a stock are adjusted for."""

    RAW = "raw"
    SPLIT = "split"
    DIVIDEND = "dividend"
    ALL = "all"
    """Splits and dividends."""


_BY_NAME = {each.value: each for each in Adjustment}


def parse_adjustment(name: str) -> Adjustment | None:
    """Returns the adjustment of a name in a store or a file; None if it is not known."""
    return _BY_NAME.get(name)


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a stored month of bars; all bars of one month have the same source."""

    origin: Origin
    feed: str
    adjustment: str = Adjustment.RAW.value
    """One of `Adjustment`."""

    def __str__(self) -> str:
        return f"{self.origin}/{self.feed}/{self.adjustment}"


def adjustment_of(instrument: Instrument, source: Source) -> str:
    """Returns what the prices of an instrument from a source are adjusted for. Only those of stocks ever are."""
    if instrument.asset_class is not AssetClass.STOCK:
        return Adjustment.RAW.value
    return str(parse_adjustment(source.adjustment) or source.adjustment)


@dataclass(frozen=True, slots=True)
class BarFacts:
    """The facts about the bars of a result."""

    made_of: str | None = None
    """The timeframes of the stored bars that they are made of: `1d`, or `1d+1m`."""
    sources: frozenset[Source] = frozenset()
    """The sources of those bars."""
    failure: str | None = None
    """Why the feed did not deliver what is missing; the bars are those that were stored."""

    def are_native(self, timeframe: Timeframe) -> bool:
        """Returns True if bars of a timeframe are as a vendor or a file has them. Simulated bars are sums of minutes."""
        simulated = any(each.origin is Origin.SIMULATED for each in self.sources)
        return self.made_of == name_of(timeframe, ALL_NAMES) and not simulated
