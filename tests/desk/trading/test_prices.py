"""Prices that orders may be opened on."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from openbell.desk.bars.service import BarService
from openbell.desk.desk import Desk
from openbell.desk.orders.prices import Prices, TradedMinutes
from openbell.desk.settings import load
from openbell.feeds.none.feed import NoFeed
from openbell.market.clock import FixedClock
from openbell.market.errors import NoData
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from openbell.trading.orders import OrderKind, Side
from openbell.trading.request import request
from tests.clocks import HandClock
from tests.desk.scripted import BTC, ScriptedFeed, bars
from tests.stores.samples import at
from tests.trading.samples import D

NOW = at("2026-01-07")
ME = "local"


def prices(service: BarService, *, present: bool) -> Prices:
    return Prices(service, 300, TradedMinutes(service, present=present))


IMPORTED, LIVE = Source(Origin.IMPORTED, "import"), Source(Origin.LIVE, "scripted")


def test_nothing_is_opened_on_an_imported_price_of_an_instrument_that_the_feed_delivers(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FixedClock(NOW + 1)
        with closing(ParquetStore(tmp_path)) as store:
            store.write([bars((NOW - 60, 5.0))], IMPORTED, covers=Span(0, NOW))
            service = BarService(store, ScriptedFeed(known=(BTC,)), clock)
            with pytest.raises(NoData, match="was imported"):
                await prices(service, present=True).now(BTC)
            assert (await prices(service, present=False).now(BTC)).stale is None, "in a scenario it may be"
            store.write([bars((NOW, 6.0))], LIVE, covers=Span(NOW, NOW + 60))
            later = BarService(store, ScriptedFeed(known=(BTC,)), FixedClock(NOW + 61))
            delivered = await prices(later, present=True).now(BTC)
            assert (float(delivered.value), delivered.stale) == (6.0, None)

    asyncio.run(main())


def test_without_a_feed_imported_prices_are_the_prices(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FixedClock(NOW + 1)
        with closing(ParquetStore(tmp_path)) as store:
            store.write([bars((NOW - 60, 5.0))], IMPORTED, covers=Span(0, NOW))
            service = BarService(store, NoFeed(), clock)
            assert (await prices(service, present=True).now(BTC)).stale is None

    asyncio.run(main())


def test_orders_do_not_fill_on_imported_minutes_of_an_instrument_that_the_feed_delivers(tmp_path: Path) -> None:
    with closing(ParquetStore(tmp_path)) as store:
        store.write([bars((NOW - 240, 1.0), (NOW - 180, 2.0))], LIVE)
        store.write([bars((NOW - 120, 9.0), (NOW - 60, 9.5))], IMPORTED)
        store.write([bars((NOW, 3.0))], LIVE)
        service = BarService(store, ScriptedFeed(known=(BTC,)), FixedClock(NOW + 61))
        series = bars((NOW, 1.0)).series
        minutes = TradedMinutes(service, present=True)
        assert minutes.read(series, 0, NOW + 60).close.tolist() == [1.0, 2.0, 3.0]
        assert minutes.read(series, NOW - 120, NOW).close.tolist() == []
        assert minutes.read(series, NOW - 240, NOW - 120).close.tolist() == [1.0, 2.0]
        in_scenario = TradedMinutes(service, present=False)
        assert in_scenario.read(series, 0, NOW + 60).close.tolist() == [1.0, 2.0, 9.0, 9.5, 3.0]
        without_feed = TradedMinutes(BarService(store, NoFeed(), FixedClock(NOW + 61)), present=True)
        assert without_feed.read(series, 0, NOW + 60).close.tolist() == [1.0, 2.0, 9.0, 9.5, 3.0]


def test_new_minutes_are_read_at_once_if_a_read_of_each_symbol_would_find_the_same(tmp_path: Path) -> None:
    with closing(ParquetStore(tmp_path)) as store:
        service = BarService(store, ScriptedFeed(known=(BTC,)), FixedClock(NOW + 3600))
        minutes, series = TradedMinutes(service, present=True), Series(BTC)

        def new(start: int, end: int) -> list[float] | None:
            found = minutes.new([BTC], start, end)
            return found[BTC].close.tolist() if found else None

        store.write([bars((NOW - 60, 1.0))], LIVE, covers=Span(NOW - 60, NOW))
        assert new(NOW, NOW + 60) is None, "nothing was read before"
        minutes.read(series, NOW - 60, NOW)
        assert new(NOW, NOW + 60) is None, "the minute is a gap"
        store.write([bars((NOW, 2.0), (NOW + 60, 3.0))], LIVE, covers=Span(NOW, NOW + 120))
        assert new(NOW, NOW + 120) == [2.0, 3.0]
        assert new(NOW - 60, NOW) is None, "it was stored before"
        store.write([bars((NOW, 2.5))], LIVE)
        assert new(NOW, NOW + 120) == [2.5, 3.0], "corrections count"
        store.compact(NOW + 60)
        assert new(NOW, NOW + 120) is None, "a part is in the files now"
        minutes.read(series, NOW, NOW + 120)
        store.write([bars((NOW + 120, 4.0))], LIVE, covers=Span(NOW + 120, NOW + 180))
        assert new(NOW + 120, NOW + 180) == [4.0]
        store.write([bars((NOW + 240, 9.0))], IMPORTED)
        assert new(NOW + 120, NOW + 180) is None, "imported minutes are looked at one by one"


def test_the_close_before_a_moment_follows_corrections(tmp_path: Path) -> None:
    async def main() -> None:
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, ScriptedFeed(known=(BTC,)), FixedClock(NOW + 3600))
            found = prices(service, present=True)
            store.write([bars((NOW - 60, 1.0))], LIVE, covers=Span(NOW - 3600, NOW))
            for moment in (NOW, NOW + 60):  # read by itself, and with others at once
                assert await found.before(["BTC/USD"], moment) == {"BTC/USD": D(1)}
                store.write([bars((moment - 60, 2.0))], LIVE, covers=Span(NOW, NOW + 1200))
                assert await found.before(["BTC/USD"], moment) == {"BTC/USD": D(2)}
                store.write([bars((moment, 7.0))], LIVE)
                assert await found.before(["BTC/USD"], moment) == {"BTC/USD": D(2)}, "later minutes do not count"
                store.write([bars((NOW, 1.0))], LIVE)
                found.minutes.read(Series(BTC), NOW, NOW + 60)

    asyncio.run(main())


def test_an_imported_file_does_not_move_the_equity_of_an_account_on_a_feed(tmp_path: Path) -> None:
    """A position is valued by the feed's last minute, at present and when the day began; nothing is opened meanwhile."""
    start = NOW - 30 * 60
    asked = request(BTC, Side.BUY, OrderKind.MARKET, "1", client_order_id="held")
    free = {"PAPER_FEE": "0", "PAPER_SLIPPAGE": "0", "PAPER_VOLUME_SHARE": "1"}
    names = {"HOME": str(tmp_path), "FEED": "none", "TRADE": "1", **free}

    async def main() -> None:
        desk = Desk(load({f"OPENBELL_{name}": value for name, value in names.items()}))
        clock = desk.clock = HandClock(start + 1)
        feed = desk.feed = ScriptedFeed(known=(BTC,))
        feed.table[BTC] = {start + 60 * n: 100.0 for n in range(-5, 3)}
        trading = desk.trading
        await trading.orders.place(ME, asked)
        clock.advance(180)
        before = await trading.portfolio.balance(ME)
        assert before.unrealised is not None
        file = bars(*((start + 60 * n, 1000.0) for n in range(3, 40)))
        desk.store.write([file], IMPORTED, covers=Span(start + 180, start + 40 * 60))
        for seconds in (300, 1800):  # before midnight and after it
            clock.advance(seconds)
            (held,) = await trading.portfolio.holdings(ME)
            assert held.price is not None
            assert (held.price.value, held.price.end) == (D(100), start + 180)
            after = await trading.portfolio.balance(ME)
            assert (after.total, after.unrealised) == (before.total, before.unrealised)
            verdict = (await trading.portfolio.validate(ME, BTC, Side.BUY, D(1), None)).verdict
            assert (verdict.valid, "was imported" in verdict.reason) == (False, True)
        assert await trading.prices.before(["BTC/USD"], NOW) == {"BTC/USD": D(100)}
        await trading.close()

    asyncio.run(main())
