"""What an instrument costs now, how that has changed, and how much it moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

import numpy as np

from openbell.desk.bar_facts import stored_instead
from openbell.desk.bars import RING, BarService
from openbell.desk.day_volume import day_volume
from openbell.desk.latest_price import latest_price
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso
from openbell.market.errors import InsufficientData, StaleData
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

_HOUR, _DAY = 3600, 86400
WINDOW = 100
"""Bars that a volatility is measured over, if there are so many."""
_ATR = 14
_LEAST = _ATR + 2


@dataclass(frozen=True, slots=True)
class Quote:
    """The newest close, and what it is compared with. A change is None where there was no price that long ago."""

    price: float
    change_1h: float | None
    change_24h: float | None
    volume_24h: float
    end: int
    """When the bar of the price ended."""
    bar: Bars
    """That bar."""
    note: str | None
    """What the volume lacks; None if it lacks nothing."""


@dataclass(frozen=True, slots=True)
class Volatility:
    """How much an instrument moved over the newest closed bars."""

    deviation: float
    """Of the logarithms of close over close, as of a population."""
    atr: float
    reach: float
    """Highest high less lowest low."""
    bars: Bars


class QuoteService:
    """What get_current_price and get_volatility ask."""

    def __init__(self, bars: BarService, stale_after: float) -> None:
        self._bars = bars
        self._stale_after = stale_after

    async def quote(self, instrument: Instrument) -> Quote:
        """The current price. Raises `StaleData` if the market has traded on without a new bar for too long."""
        latest = await latest_price(self._bars, instrument, RING)
        minutes, now = latest.minutes, latest.now
        price = float(minutes.close[-1])
        if latest.missed > self._stale_after:
            raise StaleData(
                f"The {latest.age}",
                symbol=instrument.symbol,
                last_price=price,
                timestamp=iso(latest.end),
                age_s=int(now - latest.end),
                trading_age_s=int(latest.missed),
                threshold_s=self._stale_after,
            )
        before = [await self._close_at(minutes, now - ago) for ago in (_HOUR, _DAY)]
        hour, day = (_change(then, price) for then in before)
        volume = await day_volume(self._bars, minutes, now)
        return Quote(price, hour, day, volume.volume, latest.end, minutes.tail(1), volume.note)

    async def _close_at(self, minutes: Bars, moment: float) -> float | None:
        """The last close at or before a moment."""
        end = int((moment - MINUTE) // MINUTE + 1) * MINUTE
        known = minutes.between(0, end)
        if not len(known):
            known = await self._bars.threads.run(self._bars.store.tail, minutes.series, 1, end)
        return float(known.close[-1]) if len(known) else None

    async def volatility(self, instrument: Instrument, timeframe: Timeframe) -> Volatility:
        """Measured over the newest `WINDOW` closed bars. Raises `InsufficientData`."""
        bars, _ = await self._bars.page(instrument, timeframe, WINDOW, 0)
        if len(bars) < _LEAST:
            hint = await stored_instead(self._bars, instrument)
            raise InsufficientData(instrument.symbol, len(bars), _LEAST, hint)
        return await self._bars.threads.run(_measure, bars)


def _change(before: float | None, now: float) -> float | None:
    """In per cent; None if there was no price, or if the change is too large for a number."""
    change = (now / before - 1) * 100 if before else inf
    return change if isfinite(change) else None


def _measure(bars: Bars) -> Volatility:
    from openbell.indicators.catalogue.atr import atr

    returns = np.diff(np.log(bars.close))
    with np.errstate(over="ignore", invalid="ignore"):  # a number that is not finite is refused where answers are made
        return Volatility(
            deviation=float(np.sqrt(np.square(returns - returns.mean()).mean())),
            atr=float(atr(bars, _ATR)[-1]),
            reach=float(bars.high.max() - bars.low.min()),
            bars=bars,
        )
