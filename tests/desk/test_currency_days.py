"""Days, weeks and months of currencies through the bar service: simulated and imported."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.service import BarService
from openbell.desk.importing import ImportOptions, read
from openbell.desk.importing.storing import store as store_files
from openbell.feeds.none.feed import NoFeed
from openbell.feeds.sim.bars import minute_bars
from openbell.feeds.sim.feed import SimFeed
from openbell.market.bars import Bars, closed_at, resample
from openbell.market.clock import FixedClock
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.desk.facts import made_of
from tests.market.calendar_groups import grouped, groups
from tests.market.walks import DAY, FOREX, at

D1, W1, MONTH = Timeframe.D1, Timeframe.W1, Timeframe.MONTH
SIMULATED = Source(Origin.SIMULATED, "sim")
EVER = 2**40


def rows(bars: Bars) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in bars.columns()[:5]), strict=True))


def ask(store: ParquetStore, now: int, timeframe: Timeframe, count: int) -> tuple[Bars, str | None]:
    """Returns the newest bars of a new service, and what they were made of."""

    async def work() -> tuple[Bars, str | None]:
        clock = FixedClock(now)
        service = BarService(store, SimFeed(clock), clock)
        bars = await service.newest(FOREX, timeframe, count)
        return bars, await made_of(service, bars)

    return asyncio.run(work())


def test_the_simulator_has_days_of_currencies(tmp_path: Path) -> None:
    """On a Friday before and at its close, at a weekend, on Sunday evening and on Monday, where clocks change."""
    hours = resample(minute_bars(FOREX, 7, at("2025-08-30T00:00Z"), at("2025-11-05T00:00Z")), Timeframe.H1, EVER)
    with closing(ParquetStore(tmp_path)) as store:
        for text in (
            "10-31T20:59",
            "10-31T21:00",
            "11-01T12:00",
            "11-02T22:30",
            "11-03T21:59",
            "11-03T22:00",
            "11-04T09:00",
        ):
            now = at(f"2025-{text}Z")
            for timeframe, count in ((D1, 12), (W1, 5), (MONTH, 1)):
                found, base = ask(store, now, timeframe, count)

                assert rows(found) == [row[:5] for row in grouped(hours, timeframe, now)[-count:]], (text, timeframe)
                assert closed_at(found) <= now
                assert base == "1d"


def test_counts_of_the_simulator_are_those_of_its_bars(tmp_path: Path) -> None:
    now = at("2025-11-03T21:59Z")
    feed = SimFeed(FixedClock(now))
    with closing(ParquetStore(tmp_path)) as store:
        for timeframe, count in ((D1, 20), (Timeframe.D2, 9), (W1, 4)):
            found, _ = ask(store, now, timeframe, count)
            assert asyncio.run(feed.count(FOREX, timeframe, int(found.time[0]), now)) == len(found) == count


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%Y.%m.%d 00:00"])
def test_an_imported_file_of_days_makes_weeks_and_months(tmp_path: Path, written: str) -> None:
    spans = [
        each
        for each in groups(FOREX.asset_class, D1)
        if at("2025-01-31T22:00Z") <= each.start < at("2025-05-07T12:00Z")
    ]
    dates = [np.datetime64(each.end // DAY, "D").item() for each in spans]
    text = "date,open,high,low,close,volume\n" + "".join(
        f"{day:{written}},{1.1 + n % 7 / 100},{1.2 + n % 3 / 100},{1.0 - n % 5 / 100},{1.1 + n % 6 / 100},0\n"
        for n, day in enumerate(dates)
    )
    (tmp_path / "EURUSD.csv").write_text(text)
    now = at("2025-05-20T00:00Z")
    with closing(ParquetStore(tmp_path / "data")) as store:
        store_files(store, read(tmp_path / "EURUSD.csv", ImportOptions(parse("EURUSD")), now), False, lambda _: None)
        service = BarService(store, NoFeed(), FixedClock(now))

        async def newest(timeframe: Timeframe) -> Bars:
            return await service.newest(FOREX, timeframe, 100)

        days, weeks, months = (asyncio.run(newest(timeframe)) for timeframe in (D1, W1, MONTH))

    assert days.time.tolist() == [each.start for each in spans]
    assert rows(weeks) == rows(resample(days, W1, EVER).take(slice(0, -1))), "the last week has not all its days"
    assert [row[:5] for row in grouped(days, W1, EVER)][:-1] == rows(weeks)
    assert months.time.tolist() == [at("2025-02-02T22:00Z"), at("2025-02-28T22:00Z") + 2 * DAY, at("2025-03-31T21:00Z")]
    assert rows(months) == [row[:5] for row in grouped(days, MONTH, EVER)][:3]


@pytest.mark.parametrize("lacking", ["first hour", "last hour", "Sundays of London", "first minutes"])
def test_bars_that_lack_beside_weekends_leave_all_days_and_weeks(tmp_path: Path, lacking: str) -> None:
    """In the weeks in which America and Europe change their clocks, apart from the first and the last week of the file."""
    start, end = at("2025-10-12T21:00Z"), at("2025-11-14T22:00Z")
    minutes = minute_bars(FOREX, 7, start, end)
    bars = minutes if lacking == "first minutes" else resample(minutes, Timeframe.H1, EVER)
    spans = [each for each in groups(FOREX.asset_class, W1) if start < each.start and each.end < end]
    left_out = {
        "first hour": lambda each: (each.start, each.start + 3600),
        "last hour": lambda each: (each.end - 3600, each.end),
        "Sundays of London": lambda each: (each.start, each.start // DAY * DAY + DAY),
        "first minutes": lambda each: (each.start, each.start + 300),
    }[lacking]
    kept = np.ones(len(bars), dtype=bool)
    for low, high in map(left_out, spans):
        kept &= (bars.time < low) | (bars.time >= high)
    bars = bars.take(kept)
    lines = (",".join(map(str, row)) for row in zip(*(each.tolist() for each in bars.columns()), strict=True))
    (tmp_path / "EURUSD.csv").write_text("\n".join(["timestamp,open,high,low,close,volume", *lines]))
    with closing(ParquetStore(tmp_path / "data")) as store:
        found = read(tmp_path / "EURUSD.csv", ImportOptions(parse("EURUSD")), end)
        store_files(store, found, False, lambda _: None)
        service = BarService(store, NoFeed(), FixedClock(end))

        async def newest(timeframe: Timeframe) -> Bars:
            return await service.newest(FOREX, timeframe, 100)

        days, weeks = (asyncio.run(newest(timeframe)) for timeframe in (D1, W1))

    assert len(spans) == 3
    assert (len(days), len(weeks)) == (25, 5)
    assert rows(days) == [row[:5] for row in grouped(bars, D1, EVER)]
    assert rows(weeks) == [row[:5] for row in grouped(bars, W1, EVER)]
