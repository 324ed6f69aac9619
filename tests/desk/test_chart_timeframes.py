"""The bar service at the timeframes of charts that no vendor has: made of the simulator's bars or of imported days."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.service import BarService
from openbell.desk.importing import ImportOptions, read
from openbell.desk.importing.storing import store as store_files
from openbell.feeds.none.feed import NoFeed
from openbell.feeds.sim.feed import SimFeed
from openbell.market.bars import Bars, closed_at
from openbell.market.clock import FixedClock, iso, parse_time
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series
from openbell.market.series_plan import Native, buckets
from openbell.market.timeframes import CHART, Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.clocks import HandClock
from tests.desk.facts import made_of
from tests.desk.test_series import Vendor, vendor_bars
from tests.market.calendar_groups import Row, grouped

AAPL, BTC, EUR = parse("AAPL"), parse("BTC/USD"), parse("EUR/USD")
DAY = 86400
M1, H1, D1 = Timeframe.M1, Timeframe.H1, Timeframe.D1
NOW = int(parse_time("2026-01-07T15:20:00Z"))
YEARS = 3653 * DAY
"""How far back the simulator has hours and days."""


def rows(bars: Bars) -> list[Row]:
    return list(zip(*(column.tolist() for column in bars.columns()), strict=True))


def expected(store: ParquetStore, instrument: Instrument, timeframe: Timeframe, now: int) -> list[Row]:
    """The bars that have closed, made in plain Python of the bars that were fetched; the first may lack some."""
    base = D1 if timeframe.of_days else H1 if timeframe is Timeframe.H8 else M1
    bars = store.read(Series(instrument, base), 0, 2**40)
    if timeframe.of_days:
        return grouped(bars, timeframe, now)
    found: dict[int, Row] = {}
    for time, o, h, low, c, v in rows(bars):
        start = time - time % timeframe.seconds
        if start + timeframe.seconds > now:
            break
        before = found.get(start, (start, o, h, low, c, 0.0))
        found[start] = (*before[:2], max(before[2], h), min(before[3], low), c, before[5] + v)
    return list(found.values())


def assert_same(found: Bars, rows_expected: Sequence[Row]) -> None:
    assert [row[:5] for row in rows(found)] == [row[:5] for row in rows_expected]
    assert np.allclose(found.volume, [row[5] for row in rows_expected], rtol=1e-9)


@pytest.mark.parametrize("instrument", [AAPL, BTC, EUR], ids=str)
def test_the_newest_bars_a_span_and_pages(tmp_path: Path, instrument: Instrument) -> None:
    async def work(store: ParquetStore) -> None:
        for name, base in {"45m": "1m", "8h": "1h", "3D": "1d", "1M": "1d", "1Y": "1d"}.items():
            await ask(store, CHART[name], base)

    async def ask(store: ParquetStore, timeframe: Timeframe, base: str) -> None:
        clock = FixedClock(NOW)
        service = BarService(store, SimFeed(clock), clock)
        newest = await service.newest(instrument, timeframe, 5)
        assert len(newest) == 5
        assert_same(newest, expected(store, instrument, timeframe, NOW)[-5:])
        assert closed_at(newest) <= NOW
        assert await made_of(service, newest) == base

        span = await service.span(newest.series, int(newest.time[0]), int(newest.time[-1]))
        assert span.same_as(newest.take(slice(0, -1)))
        fresh = BarService(store, SimFeed(clock), clock)
        assert (await fresh.span(newest.series, int(newest.time[0]) + 60, None)).same_as(newest.take(slice(1, None)))

        page, total = await fresh.page(instrument, timeframe, 3, 2)
        assert page.same_as(newest.take(slice(0, 3)))
        if timeframe.of_days:
            everything, again = await fresh.page(instrument, timeframe, 3000, 0)
            assert total == again == len(everything)
            assert_same(everything, expected(store, instrument, timeframe, NOW)[-total:])
            whole, _ = buckets(instrument, timeframe, NOW // DAY * DAY + DAY - YEARS, NOW)
            assert total == len(whole), "all periods of the feed's ten years that have all their days"

    with closing(ParquetStore(tmp_path)) as store:
        asyncio.run(work(store))


@pytest.mark.parametrize(
    ("instrument", "timeframe", "closes"),
    [
        (BTC, Timeframe.MONTH, "2025-12-01T00:00Z"),
        (AAPL, Timeframe.MONTH, "2025-11-28T18:00Z"),
        (BTC, Timeframe.YEAR, "2026-01-01T00:00Z"),
        (AAPL, Timeframe.YEAR, "2025-12-31T21:00Z"),
        (BTC, Timeframe.D3, "2025-12-02T00:00Z"),
    ],
)
def test_a_bar_is_shown_when_it_has_closed(
    tmp_path: Path, instrument: Instrument, timeframe: Timeframe, closes: str
) -> None:
    close = int(parse_time(closes))

    async def work(store: ParquetStore) -> None:
        clock = HandClock(close - 60)
        service = BarService(store, SimFeed(clock), clock)
        before = await service.newest(instrument, timeframe, 2)
        clock.advance(60)
        after = await service.newest(instrument, timeframe, 2)
        fresh = await BarService(store, SimFeed(clock), clock).newest(instrument, timeframe, 2)
        assert closed_at(before) < close == closed_at(after)
        assert after.time[0] == before.time[-1]
        assert after.same_as(fresh)
        assert_same(after, expected(store, instrument, timeframe, close)[-2:])

    with closing(ParquetStore(tmp_path)) as store:
        asyncio.run(work(store))


def test_a_month_waits_for_the_vendors_last_day_and_asks_for_no_minutes(tmp_path: Path) -> None:
    """Minutes that are stored for other questions do not change that."""
    close = int(parse_time("2025-03-31T20:00:00Z"))

    async def work(store: ParquetStore) -> None:
        clock = HandClock(close + 3600)
        vendor = Vendor(clock, {M1: Native(), D1: Native(delay=7200.0)})
        service = BarService(store, vendor, clock)
        waiting = await service.newest(AAPL, Timeframe.MONTH, 3)
        assert [iso(time)[:7] for time in waiting.time.tolist()] == ["2024-12", "2025-01", "2025-02"]
        assert {series.timeframe for series, _, _ in vendor.requests} == {D1}
        await service.span(Series(AAPL), close - 40 * DAY, close)
        assert (await service.newest(AAPL, Timeframe.MONTH, 3)).same_as(waiting)
        assert (await BarService(store, vendor, clock).newest(AAPL, Timeframe.MONTH, 3)).same_as(waiting)
        clock.advance(3600)
        published = await service.newest(AAPL, Timeframe.MONTH, 3)
        days = vendor_bars(Series(AAPL, D1), close - 150 * DAY, close + DAY)
        assert_same(published, grouped(days, Timeframe.MONTH, close)[-3:])
        assert await made_of(service, published) == "1d"

    with closing(ParquetStore(tmp_path)) as store:
        asyncio.run(work(store))


@pytest.mark.parametrize("symbol", ["AAPL", "BTC/USD", "EUR/USD"])
def test_imported_days_make_months_quarters_and_years(tmp_path: Path, symbol: str) -> None:
    """A period of which days are missing at either end of the file is not shown."""
    instrument = parse(symbol)
    opens = buckets(instrument, D1, int(parse_time("2023-12-15")), int(parse_time("2025-05-20")))[0]
    evening = 3 * 3600 if instrument is EUR else 0  # its days begin at 21:00 or 22:00 UTC on the date before
    text = "date,open,high,low,close,volume\n" + "".join(
        f"{iso(time + evening)[:10]},{10 + n % 7},{18 + n % 3},{9 - n % 5},{10 + n % 6},{n}\n"
        for n, time in enumerate(opens.tolist())
    )
    shown = {
        Timeframe.MONTH: [f"2024-{month:02}" for month in range(1, 13)] + [f"2025-{month:02}" for month in range(1, 5)],
        Timeframe.QUARTER: ["2024-01", "2024-04", "2024-07", "2024-10", "2025-01"],
        Timeframe.HALF: ["2024-01", "2024-07"],
        Timeframe.YEAR: ["2024-01"],
    }
    with closing(ParquetStore(tmp_path / "data")) as store:
        (tmp_path / "days.csv").write_text(text)
        store_files(store, read(tmp_path / "days.csv", ImportOptions(instrument), NOW), False, lambda _: None)
        service = BarService(store, NoFeed(), FixedClock(NOW))

        async def ask(timeframe: Timeframe) -> tuple[Bars, Bars, Bars, int]:
            newest = await service.newest(instrument, timeframe, 100)
            page, total = await service.page(instrument, timeframe, 100, 0)
            return newest, page, await service.span(newest.series, None, None), total

        days = store.read(Series(instrument, D1), 0, 2**40)
        assert len(days) == len(opens)
        for timeframe, names in shown.items():
            newest, page, span, total = asyncio.run(ask(timeframe))
            assert [iso(time + evening)[:7] for time in newest.time.tolist()] == names, timeframe
            assert newest.same_as(page)
            assert newest.same_as(span)
            assert total == len(names)
            made = {row[0]: row for row in grouped(days, timeframe, 2**40)}
            assert_same(newest, [made[time] for time in newest.time.tolist()])
