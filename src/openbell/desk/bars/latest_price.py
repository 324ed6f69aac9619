"""The latest price of an instrument and its age in trading time: one reading for quotes and for orders."""

from __future__ import annotations

from dataclasses import dataclass

from openbell.desk.bars.facts import stored_instead
from openbell.desk.bars.service import BarService
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso
from openbell.market.errors import NoData
from openbell.market.instruments import Instrument
from openbell.market.plural import in_words
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import trading_seconds


@dataclass(frozen=True, slots=True)
class LatestPrice:
    """The newest closed minute bars of an instrument; the last close is its price."""

    minutes: Bars
    end: int
    """When the bar of the price ended."""
    now: float
    """The clock's time when it was read."""
    missed: float
    """Seconds for which the market has been open since."""

    @property
    def age(self) -> str:
        """How old the price is, in words."""
        open_for = f"its market has been open for {in_words(self.missed)} since"
        return f"newest price of {self.minutes.instrument} is of {iso(self.end)}; {open_for}"


async def latest_price(bars: BarService, instrument: Instrument, count: int = 1) -> LatestPrice:
    """Returns the price from the newest `count` minute bars. Raises `NoData`, `UnknownSymbol` or `FeedUnavailable`."""
    minutes = await bars.newest(instrument, Timeframe.M1, count)
    if not len(minutes):
        hint = await stored_instead(bars, instrument)
        raise NoData(f"No price of {instrument} yet: it has no minute bars{hint}", symbol=instrument.symbol)
    return price_of(minutes, bars.clock.epoch())


def price_of(minutes: Bars, now: float) -> LatestPrice:
    """Returns the price of the last of some minute bars, with its age at `now`."""
    end = int(minutes.time[-1]) + MINUTE
    return LatestPrice(minutes, end, now, trading_seconds(minutes.instrument, end, now))
