"""Current prices for orders: the exact close, the hash of its bar, and whether the price is too old."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.desk.bars.call_deadlines import BarDeadline, during
from openbell.desk.bars.latest_price import LatestPrice, latest_price, price_of
from openbell.desk.bars.service import BarService
from openbell.desk.orders.execution_bars import TradedMinutes
from openbell.market.clock import iso
from openbell.market.errors import DataError, NoData, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span, Version
from openbell.trading import amounts
from openbell.trading.evidence import bar_hash

_OLD = 10
"""A price is in doubt after this many times the age at which it is stale; see `Price.in_doubt`."""

_RECENT = 600
"""Seconds before a moment in which most symbols have traded: their last close before it is read for all at once."""


@dataclass(frozen=True, slots=True)
class Price:
    """The latest close of an instrument."""

    value: Decimal
    end: int
    """The end of its bar."""
    bar: str
    """The hash of its bar."""
    stale: str | None
    """Why the price is too old, or of the wrong source, to open a position in this instrument; None if it is current."""
    in_doubt: str | None = None
    """Why no position at all is opened while this instrument is held: its bars could not be read, or are very old."""


class Prices:
    """Reads prices for the gate, the portfolio and paper fills."""

    def __init__(self, bars: BarService, stale_after: float, minutes: TradedMinutes) -> None:
        self._bars = bars
        self._stale_after = stale_after
        self.minutes = minutes
        """The minutes by which orders fill and positions are valued."""
        self._last: dict[str, Price] = {}
        """By symbol, the latest price that this process has read."""
        self._before: dict[str, tuple[int, Version, Decimal]] = {}
        """By symbol, the result of the last `before`: the moment, the version of the stored bars, and the close."""

    async def now(self, instrument: Instrument) -> Price:
        """Returns the latest price. Raises `NoData`, `UnknownSymbol` or `FeedUnavailable`."""
        latest, foreign = await latest_price(self._bars, instrument), None
        excludes = self.minutes.excludes_imports(instrument)
        if excludes and not len(await self._bars.threads.run(self.minutes.of, latest.minutes)):
            latest, foreign = await self._delivered(latest)
        minutes, last = latest.minutes, len(latest.minutes) - 1
        is_stale, is_old = latest.missed > self._stale_after, latest.missed > _OLD * self._stale_after
        stale = f"the {latest.age}: nothing is opened on a stale price" if is_stale else None
        old = f"the newest price of {instrument} is of {iso(latest.end)}" if is_old else None
        price = Price(amounts.of_bar(minutes.close[last]), latest.end, bar_hash(minutes, last), foreign or stale, old)
        self._last[instrument.symbol] = price
        return price

    async def in_time(self, instrument: Instrument) -> Price:
        """`now` for calls. Raises `StoreTimeout` too: it waits no longer than a call may wait for prices."""
        async with during(BarDeadline.PRICES):
            return await self.now(instrument)

    async def _delivered(self, imported: LatestPrice) -> tuple[LatestPrice, str]:
        """Returns the last price that the feed has delivered, and why no position is opened on it: a file has a newer one.

        Raises `NoData` if the feed has delivered none.
        """
        instrument = imported.minutes.instrument
        name = self._bars.feed.route(instrument).name
        minutes = await self._bars.threads.run(self.minutes.newest, imported.minutes.series, imported.end)
        reason = f"the newest price of {instrument} was imported: nothing is opened until {name} delivers a newer one"
        if not len(minutes):
            raise NoData(reason, symbol=instrument.symbol)
        return price_of(minutes, imported.now), reason

    async def of(self, symbols: Iterable[str]) -> tuple[dict[str, Price], dict[str, str]]:
        """Returns the latest price of each symbol, or the last one read; and for the others why they have none.

        Waits no longer than a call may wait for prices.
        """
        wanted = sorted(set(symbols))
        found = await asyncio.gather(*(self._maybe(symbol) for symbol in wanted))
        pairs = list(zip(wanted, found, strict=True))
        return (
            {symbol: each for symbol, each in pairs if isinstance(each, Price)},
            {symbol: each for symbol, each in pairs if isinstance(each, str)},
        )

    async def before(self, symbols: Iterable[str], moment: int) -> dict[str, Decimal]:
        """Returns the last close of each symbol before a moment; symbols without one are left out."""
        found: dict[str, Decimal] = {}
        instruments = {parse(symbol): symbol for symbol in sorted(set(symbols))}
        recent = await self._bars.threads.run(self.minutes.new, instruments, moment - _RECENT, moment)
        for instrument, bars in recent.items():
            if len(bars):
                found[instruments[instrument]] = amounts.of_bar(bars.close[-1])
        rest = [each for each, symbol in instruments.items() if symbol not in found]
        if rest:
            found |= await self._bars.threads.run(self._remembered, rest, moment)
        for instrument in rest:
            if instrument.symbol not in found and (value := await self._close_before(instrument, moment)) is not None:
                found[instrument.symbol] = value
        return found

    async def before_in_time(self, symbols: Iterable[str], moment: int) -> dict[str, Decimal]:
        """`before` for calls. Raises `StoreTimeout` too: it waits no longer than a call may wait for prices."""
        async with during(BarDeadline.PRICES):
            return await self.before(symbols, moment)

    def _remembered(self, instruments: Iterable[Instrument], moment: int) -> dict[str, Decimal]:
        """Returns the results of `_close_before` that still hold. It may block."""
        found, store = {}, self._bars.store
        for instrument in instruments:
            at, version, value = self._before.get(instrument.symbol, (None, None, None))
            if at != moment or version is None or value is None:
                continue
            changed = store.versions.changed_since(Series(instrument), version)
            if changed is None or changed >= moment:
                found[instrument.symbol] = value
        return found

    async def _close_before(self, instrument: Instrument, moment: int) -> Decimal | None:
        series = Series(instrument)
        version = await self._bars.threads.run(self._bars.store.versions.of, series)
        await self._bars.fill(instrument, Span(lookback_start(instrument, Timeframe.M1, 2, moment), moment))
        bars = await self._bars.threads.run(self.minutes.newest, series, moment)
        if not len(bars):
            return None
        value = amounts.of_bar(bars.close[-1])
        self._before[instrument.symbol] = (moment, version, value)
        return value

    async def _maybe(self, symbol: str) -> Price | str:
        try:
            return await self.in_time(parse(symbol))
        except (DataError, UnknownSymbol, StoreError) as error:
            last = self._last.get(symbol)
            if last is None:
                return f"there is no price of {symbol}: {error.message}"
            doubt = f"the price of {symbol} is the last that was known, of {iso(last.end)}: {error.message}"
            return replace(last, stale=doubt, in_doubt=doubt)
