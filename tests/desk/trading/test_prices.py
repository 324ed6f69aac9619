"""Prices that orders may be opened on."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

from openbell.desk.bars import BarService
from openbell.desk.trading.prices import Prices
from openbell.feeds.none.feed import NoFeed
from openbell.market.clock import FixedClock
from openbell.market.provenance import Origin, Source
from openbell.stores.parquet import ParquetStore
from openbell.stores.port import Span
from tests.desk.scripted import BTC, ScriptedFeed, bars
from tests.stores.samples import at

NOW = at("2026-01-07")
IMPORTED, LIVE = Source(Origin.IMPORTED, "import"), Source(Origin.LIVE, "scripted")


def test_nothing_is_opened_on_an_imported_price_of_an_instrument_that_the_feed_delivers(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FixedClock(NOW + 1)
        with closing(ParquetStore(tmp_path)) as store:
            store.write([bars((NOW - 60, 5.0))], IMPORTED, covers=Span(0, NOW))
            service = BarService(store, ScriptedFeed(known=(BTC,)), clock)
            price = await Prices(service, 300, present=True).now(BTC)
            assert price.stale is not None
            assert "was imported" in price.stale
            assert (await Prices(service, 300, present=False).now(BTC)).stale is None, "in a scenario it may be"
            store.write([bars((NOW, 6.0))], LIVE, covers=Span(NOW, NOW + 60))
            later = BarService(store, ScriptedFeed(known=(BTC,)), FixedClock(NOW + 61))
            delivered = await Prices(later, 300, present=True).now(BTC)
            assert (float(delivered.value), delivered.stale) == (6.0, None)

    asyncio.run(main())


def test_without_a_feed_imported_prices_are_the_prices(tmp_path: Path) -> None:
    async def main() -> None:
        clock = FixedClock(NOW + 1)
        with closing(ParquetStore(tmp_path)) as store:
            store.write([bars((NOW - 60, 5.0))], IMPORTED, covers=Span(0, NOW))
            assert (await Prices(BarService(store, NoFeed(), clock), 300, present=True).now(BTC)).stale is None

    asyncio.run(main())
