"""Current prices for orders: the exact close, the hash of its bar, and whether the price is too old.

It is a minute of the feed, if the feed has the instrument. A file can hold any price for a minute that the feed has not
delivered yet: imported minutes are shown in charts and count in calculations, but they decide about money only where
there is no other source, and in scenarios.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from openbell.desk.bars.call_deadlines import BarDeadline, during
from openbell.desk.bars.latest_price import LatestPrice, latest_price, price_of
from openbell.desk.bars.service import BarService
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso
from openbell.market.errors import DataError, NoData, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.lookback import lookback_start
from openbell.market.provenance import Origin
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span, Version
from openbell.trading import amounts
from openbell.trading.evidence import bar_hash

_PIECE = 3000
"""Minutes that are looked at together."""
_EVER = 2**40


@dataclass(frozen=True, slots=True)
class _Known:
    """A version of a series at which it had no bars from the time `since` on."""

    version: Version
    since: int


class TradedMinutes:
    """Reads stored minutes without imported ones. Its methods may block, except `filled`."""

    def __init__(self, bars: BarService, *, present: bool) -> None:
        """`present`: False for a scenario, whose time may be one that was imported."""
        self._bars = bars
        self._present = present
        self._known: dict[Instrument, _Known] = {}

    def read(self, series: Series, start: int, end: int) -> Bars:
        """The minutes of an instrument that opened in [start, end). `new` has those that are stored later."""
        found = self.of(self._bars.store.read(series, start, end))
        if self._bars.feed.source is not None:
            self._remember(series)
        return found

    async def filled(self, instrument: Instrument, start: int, end: int) -> Bars:
        """The minutes of [start, end), of which missing ones are fetched first. Raises why they cannot be."""
        if end > start and (failure := await self._bars.fill(instrument, Span(start, end))):
            raise failure
        return await self._bars.threads.run(self.read, Series(instrument), start, end)

    def new(self, instruments: Iterable[Instrument], start: int, end: int) -> dict[Instrument, Bars]:
        """The minutes of many instruments that opened in [start, end), in one read.

        Leaves out those that must be read one by one: they were not read before, or they have gaps or imported minutes.
        """
        known = {each: self._known[each] for each in instruments if each in self._known}
        versions = {Series(each): found.version for each, found in known.items() if found.since <= start}
        if not versions:
            return {}
        found = self._bars.store.versions.new_bars(versions, Span(start, end))
        return {series.instrument: bars for series, bars in found.items()}

    def _remember(self, series: Series) -> None:
        """Keep the version of a series, after which `new` reads its new minutes."""
        version = self._bars.store.versions.of(series)
        last = self._bars.store.tail(series, 1, _EVER)
        if len(last) and version.epoch % 2 == 0:  # otherwise it is being changed
            self._known[series.instrument] = _Known(version, int(last.time[-1]) + MINUTE)

    def of(self, bars: Bars) -> Bars:
        """Minutes without those that were imported although the feed delivers the instrument."""
        if not len(bars) or not self.excludes_imports(bars.instrument):
            return bars
        origins = self._origins(bars.series, int(bars.time[0]), int(bars.time[-1]) + 1)
        if Origin.IMPORTED not in origins:
            return bars
        if origins == {Origin.IMPORTED}:
            return bars.take(slice(0, 0))
        return bars.take(
            np.array([self._origins(bars.series, t, t + 1) != {Origin.IMPORTED} for t in bars.time.tolist()])
        )

    def newest(self, series: Series, end: int) -> Bars:
        """The newest minute of an instrument that opened before `end`; empty if there is none."""
        count = 1
        while len(stored := self._bars.store.tail(series, count, end)):
            if len(found := self._newest_of(stored)):
                return found
            end, count = int(stored.time[0]), max(_PIECE, 2 * count)
        return stored

    def _newest_of(self, bars: Bars) -> Bars:
        """The last of some minutes that counts; found by halves, because `of` looks at each minute."""
        if len(bars) == 1 or not self.excludes_imports(bars.instrument):
            return self.of(bars.tail(1))
        origins = self._origins(bars.series, int(bars.time[0]), int(bars.time[-1]) + 1)
        if origins == {Origin.IMPORTED}:
            return bars.take(slice(0, 0))
        middle = len(bars) // 2
        later = self._newest_of(bars.take(slice(middle, None)))
        return later if len(later) else self._newest_of(bars.take(slice(0, middle)))

    def excludes_imports(self, instrument: Instrument) -> bool:
        """Returns True if imported minutes of an instrument decide nothing."""
        feed = self._bars.feed
        return self._present and feed.supports(instrument) and feed.route(instrument).source is not None

    def _origins(self, series: Series, start: int, end: int) -> set[Origin]:
        return {source.origin for source in self._bars.store.sources.of(series, Span(start, end))}


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
