"""What an exchange does not have: candles before its newest page (Kraken), days that begin at midnight UTC (OKX)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.service import BarService
from openbell.feeds.ccxt_exchange import connection
from openbell.feeds.ccxt_exchange.feed import CcxtFeed
from openbell.market.bars import merge, resample
from openbell.market.clock import Clock, FixedClock
from openbell.market.errors import FeedUnavailable
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.desk.facts import made_of
from tests.feeds.contract import NOW
from tests.feeds.dialects import Kraken, Okx
from tests.feeds.exchange_server import ExchangeServer, Rate
from tests.feeds.prices import prices

pytestmark = [
    pytest.mark.skipif(find_spec("ccxt") is None, reason="pip install 'openbell[ccxt]'"),
    pytest.mark.filterwarnings("ignore:enable_cleanup_closed:DeprecationWarning"),
]
BTC, USDT = parse("BTC/USD"), parse("BTC/USDT")
M1, M3, M5, H1, H4, D1, W1 = (Timeframe[name] for name in ("M1", "M3", "M5", "H1", "H4", "D1", "W1"))
DAY = 86400
MIDNIGHT = NOW - NOW % DAY


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.01)


@pytest.fixture
def kraken() -> Iterator[Kraken]:
    with Kraken(FixedClock(NOW + 30), latency=0.0) as server:
        server.rate = Rate(1e9, 1, {})
        yield server


@pytest.fixture
def okx() -> Iterator[Okx]:
    with Okx(FixedClock(NOW + 30), latency=0.0) as server:
        server.rate = Rate(1e9, 1, {})
        yield server


def run(folder: Path, work: Callable[[ParquetStore], Awaitable[None]]) -> None:
    async def main() -> None:
        with closing(ParquetStore(folder)) as store:
            await work(store)

    asyncio.run(main())


def desk(store: ParquetStore, server: ExchangeServer, clock: Clock | None = None) -> BarService:
    """Returns a bar service; without a clock of its own, at the time of the exchange."""
    clock = clock or server.clock
    return BarService(store, CcxtFeed(clock, server.exchange, options=server.options(), proxy=server.proxy), clock)


def uncovered(store: ParquetStore, series: Series) -> list[Span]:
    return store.gaps(series, Span(0, NOW))


def test_a_question_beyond_the_newest_candles_is_answered_with_what_there_is(kraken: Kraken, tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        service = desk(store, kraken)
        for timeframe, count in ((D1, 719), (H4, 719), (H1, 719), (M1, 709), (W1, 102)):
            base = Series(BTC, {W1: D1}.get(timeframe, timeframe))
            step = base.timeframe.seconds
            oldest = (NOW // step - (709 if base.timeframe is M1 else 719)) * step
            expected = resample(prices(base, oldest, NOW), timeframe, NOW)
            page, total = await service.page(BTC, timeframe, 1000, 0)
            assert len(page) == total == count, timeframe
            assert page.time[0] >= oldest
            assert page.same_as(expected.tail(count))
            first = uncovered(store, base)[0]
            assert first == Span(0, oldest), "nothing older counts as known"
            older, again = await service.page(BTC, timeframe, 50, count - 20)
            assert (len(older), again) == (20, count)
        asked = kraken.counts["candles"]
        await service.newest(BTC, D1, 3000)
        await service.page(BTC, D1, 1000, 600)
        assert kraken.counts["candles"] == asked, "what it does not have is not asked for again"

    run(tmp_path, work)


def test_candles_that_slid_out_unseen_stay_unknown(kraken: Kraken, tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        minutes = Series(BTC)
        before = (await desk(store, kraken).newest(BTC, M1, 3000)).copy()
        began, later = int(before.time[0]), NOW + DAY + 30
        kraken.clock = FixedClock(later)
        service = desk(store, kraken)
        after = await service.newest(BTC, M1, 700)
        newest, total = await service.page(BTC, M1, 5000, 0)
        reached = int(newest.time[len(before)])
        assert later - 720 * 60 <= reached < later - 700 * 60
        assert newest.same_as(merge(before, prices(minutes, reached, int(after.time[-1]) + 60)))
        assert total == len(newest)
        lost = Span(NOW - 60, reached)  # the last minute before NOW was not final yet
        assert [span for span in store.gaps(minutes, Span(began, later - 3600)) if span.end - span.start > 60] == [lost]
        whole = prices(Series(BTC, M3), began, later)
        final = newest.time[newest.time != lost.start]
        known = [np.isin(range(at, at + 180, 60), final).all() for at in whole.time.tolist()]
        threes = await service.newest(BTC, M3, 3000)
        assert threes.same_as(whole.take(np.array(known))), "no bar is made of a part of its minutes"

    run(tmp_path, work)


def test_a_candle_that_slides_out_while_it_is_asked_for_is_not_taken_for_a_quiet_minute(
    kraken: Kraken, tmp_path: Path
) -> None:
    async def work(store: ParquetStore) -> None:
        clock = FixedClock(NOW + 30)
        service = desk(store, kraken, clock)
        await service.history.natives(BTC)
        kraken.clock = FixedClock(NOW + 30 + 5400)  # it answers an hour and a half later
        with pytest.raises(FeedUnavailable, match="kraken has only its newest 720 candles, from 2026-01-07T04:"):
            await service.newest(BTC, M1, 3000)
        assert uncovered(store, Series(BTC)) == [Span(0, NOW)]
        assert len(await service.newest(BTC, M1, 300)) == 300, "the newer ones are there"
        assert len(await service.newest(BTC, D1, 3000)) == 719

    run(tmp_path, work)


def test_at_an_earlier_clock_the_newest_candles_begin_where_they_do_now(kraken: Kraken, tmp_path: Path) -> None:
    async def work(store: ParquetStore) -> None:
        service = desk(store, kraken, FixedClock(NOW - 100 * DAY))
        days, total = await service.page(BTC, D1, 1000, 0)
        assert days.same_as(prices(Series(BTC, D1), MIDNIGHT - 719 * DAY, MIDNIGHT - 100 * DAY))
        assert total == 619
        assert len(await service.newest(BTC, M1, 100)) == 0, "no minute of that time is left"
        assert not store.read(Series(BTC), 0, NOW).time.size
        assert uncovered(store, Series(BTC)) == [Span(0, NOW)]

    run(tmp_path, work)


def test_long_candles_that_begin_at_another_hour_are_not_used(
    okx: Okx, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(store: ParquetStore) -> None:
        okx.has_utc = False
        service = desk(store, okx)
        with caplog.at_level(logging.WARNING):
            days = await service.newest(USDT, D1, 100)
            weeks = await service.newest(USDT, W1, 20)
        hours = prices(Series(USDT, H4), MIDNIGHT - 200 * DAY, MIDNIGHT)
        assert days.same_as(resample(hours, D1, NOW).tail(100))
        assert weeks.same_as(resample(hours, W1, NOW).tail(20))
        assert await made_of(service, days) == await made_of(service, weeks) == "4h"
        assert list(store.timeframes(USDT)) == [H4]
        assert len(store.read(Series(USDT, D1), 0, NOW)) == 0
        assert [record.message for record in caplog.records] == [
            "BTC/USDT 1d: the bars of ccxt:okx are cut at other times; smaller ones are used"
        ]
        misfit = [url for url in okx.urls if "bar=1D" in url or "bar=12H" in url or "bar=6H" in url]
        assert len(misfit) == 1, "one page tells"

    run(tmp_path, work)


def test_ccxt_asks_for_the_utc_form(okx: Okx, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(store: ParquetStore) -> None:
        days = await desk(store, okx).newest(USDT, D1, 100)
        assert days.same_as(prices(Series(USDT, D1), MIDNIGHT - 100 * DAY, MIDNIGHT))
        assert all("bar=1Dutc" in url for url in okx.urls if "candles" in url)
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

    run(tmp_path, work)
