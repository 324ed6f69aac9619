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
from openbell.market.previous_close import compared_from
from openbell.market.timeframes import Timeframe

_HOUR = 3600
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
    """Of a stock on a day without trades: since the close of the session before the price's (see `compared_from`)."""
    day_since: int | None
    """When the bar of the price ended that `change_24h` compares with."""
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
        hour = await self._bar_at(minutes, now - _HOUR)
        day = await self._bar_at(minutes, compared_from(instrument, latest.end, now))
        volume = await day_volume(self._bars, minutes, now)
        return Quote(
            price,
            _change(hour, price),
            _change(day, price),
            int(day.time[-1]) + MINUTE if len(day) else None,
            volume.volume,
            latest.end,
            minutes.tail(1),
            volume.note,
        )

    async def _bar_at(self, minutes: Bars, moment: float) -> Bars:
        """The bars that had closed at a moment, or the last of them; empty if there are none."""
        end = int((moment - MINUTE) // MINUTE + 1) * MINUTE
        known = minutes.between(0, end)
        if not len(known):
            known = await self._bars.threads.run(self._bars.store.tail, minutes.series, 1, end)
        return known

    async def volatility(self, instrument: Instrument, timeframe: Timeframe) -> Volatility:
        """Measured over the newest `WINDOW` closed bars. Raises `InsufficientData`."""
        bars, _ = await self._bars.page(instrument, timeframe, WINDOW, 0)
        if len(bars) < _LEAST:
            hint = await stored_instead(self._bars, instrument)
            raise InsufficientData(instrument.symbol, len(bars), _LEAST, hint)
        return await self._bars.threads.run(_measure, bars)


def _change(before: Bars, now: float) -> float | None:
    """In per cent since the last of these bars; None if there is none, or if the change is too large for a number."""
    change = (now / float(before.close[-1]) - 1) * 100 if len(before) else inf
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
