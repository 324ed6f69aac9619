"""What things cost now, as orders must know it: the feed's own digits, the bar they stand on, and whether it is too old."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.desk.bars import BarService
from openbell.market.bars import MINUTE
from openbell.market.clock import iso
from openbell.market.errors import DataError, NoData, StoreError, UnknownSymbol
from openbell.market.freshness import trading_seconds
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import lookback_start
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Mark, Span
from openbell.trading import amounts
from openbell.trading.evidence import bar_hash

_OLD = 10
"""Times the age at which a price is stale: a held symbol without a newer one counts as having no price."""


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
    in_doubt: str | None = None
    """Why nothing is opened while it is held: the bars could not be read now, or there were none for long."""


class Prices:
    """What the gate and the portfolio ask."""

    def __init__(self, bars: BarService, stale_after: float) -> None:
        self._bars = bars
        self._stale_after = stale_after
        self._last: dict[str, Price] = {}
        """The newest price of each symbol that this process has seen."""
        self._before: dict[str, tuple[int, Mark, Decimal]] = {}
        """Of each symbol the last close before a moment, while its bars are those of a mark."""

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
        old = f"the newest price of {instrument} is of {iso(end)}" if missed > _OLD * self._stale_after else None
        price = Price(amounts.of_bar(minutes.close[last]), end, bar_hash(minutes, last), stale, old)
        self._last[instrument.symbol] = price
        return price

    async def of(self, symbols: Iterable[str]) -> tuple[dict[str, Price], dict[str, str]]:
        """The newest price of each symbol, or the last that was known; and why others have none."""
        wanted = sorted(set(symbols))
        found = await asyncio.gather(*(self._maybe(symbol) for symbol in wanted))
        pairs = list(zip(wanted, found, strict=True))
        return (
            {symbol: each for symbol, each in pairs if isinstance(each, Price)},
            {symbol: each for symbol, each in pairs if isinstance(each, str)},
        )

    async def before(self, symbols: Iterable[str], moment: int) -> dict[str, Decimal]:
        """The last close of each symbol before a moment, as far as it can be had."""
        found: dict[str, Decimal] = {}
        store = self._bars.store
        for symbol in sorted(set(symbols)):
            instrument = parse(symbol)
            mark, known = store.mark(instrument), self._before.get(symbol)
            if known is not None and known[:2] == (moment, mark):
                found[symbol] = known[2]
                continue
            await self._bars.fill(instrument, Span(lookback_start(instrument, Timeframe.M1, 2, moment), moment))
            bars = await self._bars.threads.run(self._bars.store.tail, instrument, 1, moment)
            if len(bars):
                found[symbol] = amounts.of_bar(bars.close[-1])
                self._before[symbol] = (moment, mark, found[symbol])
        return found

    async def _maybe(self, symbol: str) -> Price | str:
        try:
            return await self.now(parse(symbol))
        except (DataError, UnknownSymbol, StoreError) as error:
            last = self._last.get(symbol)
            if last is None:
                return f"there is no price of {symbol}: {error.message}"
            doubt = f"the price of {symbol} is the last that was known, of {iso(last.end)}: {error.message}"
            return replace(last, stale=doubt, in_doubt=doubt)
