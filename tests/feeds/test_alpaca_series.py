"""Alpaca's days and hours: sessions, half days and holidays, the day that is not published yet, days without a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.bars.service import BarService
from openbell.feeds.alpaca.feed import AlpacaFeed
from openbell.market.bars import Bars, merge, resample
from openbell.market.clock import FixedClock, iso, parse_time
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.desk.facts import made_of
from tests.feeds.alpaca_server import KEY, SECRET, AlpacaServer
from tests.feeds.contract import NOW

AAPL, BTC = parse("AAPL"), parse("BTC/USD")
M1, M30, H1, H4, D1, W1 = (Timeframe[name] for name in ("M1", "M30", "H1", "H4", "D1", "W1"))
DAY, HOUR = 86400, 3600
CLOSE = int(parse_time("2026-01-06T21:00:00Z"))
"""The close of the session before NOW."""


@pytest.fixture
def server() -> Iterator[AlpacaServer]:
    with AlpacaServer(FixedClock(NOW + 30)) as running:
        yield running


def feed_of(server: AlpacaServer) -> AlpacaFeed:
    urls: dict[str, Any] = dict(server.urls)
    return AlpacaFeed(server.clock, KEY, SECRET, **urls)


def history(server: AlpacaServer, series: Series, start: int, end: int) -> Bars:
    return asyncio.run(feed_of(server).history(series, start, end))


@pytest.mark.parametrize("page", [10_000, 7])
def test_a_day_is_at_the_open_of_its_session_on_half_days_and_around_holidays_too(
    server: AlpacaServer, page: int
) -> None:
    server.page = page
    start, end = (int(parse_time(f"2025-{day}T00:00:00Z")) for day in ("10-25", "12-31"))
    days = history(server, Series(AAPL, D1), start, end)
    assert days.same_as(server.longer(Series(AAPL, D1), start, end))
    opens = [iso(at)[:16] for at in days.time.tolist()]
    assert opens[0] == "2025-10-27T13:30", "New York is four hours behind in October"
    assert "2025-11-27" not in {at[:10] for at in opens}, "Thanksgiving"
    assert "2025-12-25" not in {at[:10] for at in opens}
    assert {"2025-11-28T14:30", "2025-12-24T14:30"} <= set(opens), "half days"
    assert len(days) == len(buckets(AAPL, D1, start, end)[0])
    server.page = 10_000
    minutes = history(server, Series(AAPL), start, end)
    made = resample(minutes, D1, NOW)
    assert (made.time == days.time).all()
    assert (made.volume < days.volume).all(), "the vendor's day is not the sum of its minutes"


@pytest.mark.parametrize("instrument", [AAPL, BTC])
def test_hours_and_minutes_are_the_vendors(server: AlpacaServer, instrument: Instrument) -> None:
    for timeframe in (H1, M30, Timeframe.M15, Timeframe.M5, Timeframe.M3):
        series = Series(instrument, timeframe)
        found = history(server, series, NOW - 9 * DAY, NOW)
        closed = NOW // timeframe.seconds * timeframe.seconds
        assert found.same_as(server.longer(series, NOW - 9 * DAY, closed))


def test_days_without_a_session_are_dropped_and_counted(server: AlpacaServer, caplog: pytest.LogCaptureFixture) -> None:
    start, end = CLOSE - 20 * DAY, CLOSE
    stray = ["2025-12-25T05:00:00Z", "2026-01-03T05:00:00Z", "2026-01-04T05:00:00Z"]
    server.spoil = lambda rows: [*rows[:3], *({**rows[0], "t": at} for at in stray), *rows[3:]]
    with caplog.at_level(logging.WARNING):
        days = history(server, Series(AAPL, D1), start, end)
    assert days.same_as(server.longer(Series(AAPL, D1), start, end))
    assert [record.message for record in caplog.records] == [
        "dropped 3 bars of Alpaca's history (AAPL): no session on that day"
    ]
    server.spoil = lambda rows: [{**rows[0], "t": at} for at in stray]
    assert len(history(server, Series(AAPL, D1), start, end)) == 0


def test_a_day_is_made_of_minutes_until_it_is_published(server: AlpacaServer, tmp_path: Path) -> None:
    async def ask(now: int) -> tuple[Bars, str | None]:
        server.clock = FixedClock(now)
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, feed_of(server), server.clock)
            days = (await service.newest(AAPL, D1, 5)).copy()
            return days, await made_of(service, days)

    session = Series(AAPL, D1)
    final = server.longer(session, CLOSE - 12 * DAY, CLOSE)
    minutes = resample(server.truth(AAPL, CLOSE - 8 * HOUR, CLOSE), D1, CLOSE)
    during, base = asyncio.run(ask(CLOSE - HOUR))
    assert during.same_as(final.take(slice(-6, -1)))
    assert base == "1d"
    for after in (5 * 60, HOUR, 4 * HOUR):  # the vendor's own bar still changes
        edge, base = asyncio.run(ask(CLOSE + after))
        assert edge.same_as(merge(final.take(slice(-5, -1)), minutes))
        assert base == "1d+1m"
    published, base = asyncio.run(ask(CLOSE + 4 * HOUR + 1801))
    assert published.same_as(final.tail(5))
    assert base == "1d"


def test_the_half_day_is_published_after_its_own_close(server: AlpacaServer, tmp_path: Path) -> None:
    close = int(parse_time("2025-11-28T18:00:00Z"))

    async def ask(now: int) -> str | None:
        server.clock = FixedClock(now)
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, feed_of(server), server.clock)
            days = await service.newest(AAPL, D1, 1)
            assert days.time[-1] == parse_time("2025-11-28T14:30:00Z")
            return await made_of(service, days)

    assert asyncio.run(ask(close + 60)) == "1m"
    assert asyncio.run(ask(close + 4 * HOUR)) == "1m"
    assert asyncio.run(ask(close + 4 * HOUR + 1801)) == "1d"


def test_weeks_are_made_of_days_and_crypto_days_of_hours(server: AlpacaServer, tmp_path: Path) -> None:
    async def main() -> None:
        with closing(ParquetStore(tmp_path)) as store:
            service = BarService(store, feed_of(server), server.clock)
            weeks = await service.newest(AAPL, W1, 10)
            days = server.longer(Series(AAPL, D1), NOW - 100 * DAY, CLOSE)
            assert weeks.same_as(resample(days, W1, NOW).tail(10))
            assert await made_of(service, weeks) == "1d"
            coins = await service.newest(BTC, D1, 30)
            hours = server.longer(Series(BTC, H1), NOW - NOW % DAY - 30 * DAY, NOW)
            assert coins.same_as(resample(hours, D1, NOW))
            assert await made_of(service, coins) == "1h"

    asyncio.run(main())
