"""What things cost now, as orders must know it: the feed's own digits, the bar they stand on, and whether it is too old."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from openbell.desk.bars import BarService
from openbell.market.bars import MINUTE
from openbell.market.clock import iso
from openbell.market.errors import DataError, NoData, StoreError, UnknownSymbol
from openbell.market.freshness import trading_seconds
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import horizon
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span
from openbell.trading import amounts
from openbell.trading.evidence import bar_hash


@dataclass(frozen=True, slots=True)
class Price:
    """The newest close of an instrument."""

    value: Decimal
    end: int
    """When its bar ended."""
    bar: str
    """The bar's hash."""
    stale: str | None
    """Why it is too old to open a position on."""


class Prices:
    """What the gate and the portfolio ask."""

    def __init__(self, bars: BarService, stale_after: float) -> None:
        self._bars = bars
        self._stale_after = stale_after

    async def now(self, instrument: Instrument) -> Price:
        """The newest price. Raises `NoData`, `UnknownSymbol` or `FeedUnavailable`."""
        minutes = await self._bars.newest(instrument, Timeframe.M1, 1)
        if not len(minutes):
            raise NoData(f"No price of {instrument} yet", symbol=instrument.symbol)
        last, now = len(minutes) - 1, self._bars.clock.epoch()
        end = int(minutes.time[last]) + MINUTE
        missed = trading_seconds(instrument, end, now)
        stale = None
        if missed > self._stale_after:
            stale = (
                f"the newest price of {instrument} is of {iso(end)}, and its market has been open for {missed / 60:.0f} "
                "minutes since: nothing is opened on a stale price"
            )
        return Price(amounts.of_bar(minutes.close[last]), end, bar_hash(minutes, last), stale)

    async def of(self, symbols: Iterable[str]) -> dict[str, Decimal]:
        """The newest price of each symbol that has one; what cannot be asked is left out."""
        wanted = sorted(set(symbols))
        found = await asyncio.gather(*(self._maybe(symbol) for symbol in wanted))
        return {symbol: price for symbol, price in zip(wanted, found, strict=True) if price is not None}

    async def before(self, symbols: Iterable[str], moment: int) -> dict[str, Decimal]:
        """The last close of each symbol before a moment, as far as it can be had."""
        found: dict[str, Decimal] = {}
        for symbol in sorted(set(symbols)):
            instrument = parse(symbol)
            await self._bars.fill(instrument, Span(horizon(instrument, Timeframe.M1, 2, moment), moment))
            bars = await asyncio.to_thread(self._bars.store.tail, instrument, 1, moment)
            if len(bars):
                found[symbol] = amounts.of_bar(bars.close[-1])
        return found

    async def _maybe(self, symbol: str) -> Decimal | None:
        try:
            return (await self.now(parse(symbol))).value
        except (DataError, UnknownSymbol, StoreError):
            return None
