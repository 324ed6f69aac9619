"""What imported bars cover, and which larger bars are made of them: none of a part of its minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.service import BarService
from openbell.desk.importing import ImportOptions, read
from openbell.desk.importing.storing import store
from openbell.feeds.none.feed import NoFeed
from openbell.feeds.port import Feed
from openbell.market.bars import Bars, empty_of, resample
from openbell.market.clock import FixedClock, iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import SHORT, Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.desk.importing.files import NOW, Files, at
from tests.desk.scripted import ScriptedFeed
from tests.stores.samples import bars as bars_of

AAPL, BTC, EUR = parse("AAPL"), parse("BTC/USD"), parse("EUR/USD")
HEADER = "timestamp,open,high,low,close,volume"
EVER = 2**40
IMPORTED = Source(Origin.IMPORTED, "import")


class Home:
    """A store into which files are imported, and the bars that a desk then shows."""

    def __init__(self, files: Files, bars: ParquetStore, feed: Feed | None = None) -> None:
        self.files, self.bars = files, bars
        self.service = BarService(bars, feed or NoFeed(), FixedClock(NOW))

    def load(self, times: Sequence[int], symbol: str = "AAPL", header: str = HEADER) -> None:
        """Import minutes at these times."""
        rows = "".join(f"{time},10,12,9,{10 + time // 60 % 3},1\n" for time in times)
        self.add(f"{header}\n{rows}", ImportOptions(parse(symbol), Timeframe.M1))

    def add(self, text: str, options: ImportOptions, name: str = "bars.csv") -> None:
        store(self.bars, read(self.files.write(text, name), options, NOW), False, lambda _: None)

    def shown(self, symbol: str, timeframe: str) -> list[str]:
        """The times of the bars of a timeframe; the same from memory, in a span, in a page and by their number."""
        instrument, length = parse(symbol), SHORT[timeframe]

        async def read_all() -> tuple[Bars, Bars, Bars, int]:
            newest = await self.service.latest(instrument, length)
            page, total = await self.service.page(instrument, length, 1000, 0)
            return newest, await self.service.span(newest.series, None, None), page, total

        newest, span, page, total = asyncio.run(read_all())
        assert newest.same_as(span)
        assert newest.same_as(page)
        assert total == len(newest)
        minutes = self.bars.read(newest.series.at(Timeframe.M1), 0, EVER)
        made = resample(minutes, length, EVER)
        assert newest.same_as(made.take(np.isin(made.time, newest.time)))
        return [iso(time)[:16].replace("T", " ") for time in newest.time.tolist()]


@pytest.fixture
def home(files: Files, tmp_path: Path) -> Home:
    return Home(files, ParquetStore(tmp_path / "data"))


def minutes(start: str, end: str) -> list[int]:
    return list(range(at(start), at(end), 60))


def test_days_of_several_files_make_a_week(files: Files, tmp_path: Path) -> None:
    with closing(ParquetStore(tmp_path / "data")) as bars:
        for day in range(22, 27):  # Monday to Friday
            text = f"Date,Open,High,Low,Close,Volume\n2025-09-{day},10,{day},9,11,100\n"
            store(bars, read(files.write(text), ImportOptions(AAPL, Timeframe.D1), NOW), False, lambda _: None)

        async def weeks() -> list[tuple[float, float]]:
            service = BarService(bars, NoFeed(), FixedClock(at("2025-09-27T12:00:00Z")))
            found = await service.latest(AAPL, Timeframe.W1)
            await service.threads.close()
            return list(zip(found.high.tolist(), found.volume.tolist(), strict=True))

        assert asyncio.run(weeks()) == [(26.0, 500.0)]


def test_bars_in_which_a_file_begins_or_ends_are_not_shown_until_the_rest_is_imported(home: Home) -> None:
    home.load(minutes("2025-09-01T22:17", "2025-09-03T10:39"), "BTC/USD")
    assert home.shown("BTC/USD", "1d") == ["2025-09-02 00:00"]
    assert (home.shown("BTC/USD", "1h")[0], home.shown("BTC/USD", "1h")[-1]) == ("2025-09-01 23:00", "2025-09-03 09:00")
    assert (home.shown("BTC/USD", "5m")[0], home.shown("BTC/USD", "5m")[-1]) == ("2025-09-01 22:20", "2025-09-03 10:30")
    assert home.shown("BTC/USD", "1w") == []

    home.load(minutes("2025-09-03T10:39", "2025-09-08T00:00"), "BTC/USD")
    home.load(minutes("2025-09-01T00:00", "2025-09-01T22:17"), "BTC/USD")

    assert home.shown("BTC/USD", "1d") == [f"2025-09-0{day} 00:00" for day in range(1, 8)]
    assert home.shown("BTC/USD", "1w") == ["2025-09-01 00:00"]
    assert len(home.shown("BTC/USD", "1h")) == 7 * 24


def test_coverage_that_is_recorded_after_its_bars_is_seen_by_a_desk_that_has_read_them(home: Home) -> None:
    """Of a file with a long hole, the parts are covered one after the other."""
    times = minutes("2025-09-02T00:00", "2025-09-03T10:39")
    file = bars_of("BTC/USD", times)
    home.bars.write([file], IMPORTED)
    assert home.shown("BTC/USD", "1d")[-1] == "2025-09-03 00:00", "nothing is known about the rest of the day"
    home.bars.write([empty_of(file.series)], IMPORTED, covers=Span(times[0], times[-1] + 60))
    assert home.shown("BTC/USD", "1d")[-1] == "2025-09-02 00:00"


def test_a_stock_s_day_is_whole_when_its_session_is_and_cut_when_the_file_ends_inside(home: Home) -> None:
    home.load(minutes("2025-09-17T13:30", "2025-09-17T20:00") + minutes("2025-09-18T13:30", "2025-09-18T14:39"))
    assert home.shown("AAPL", "1d") == ["2025-09-17 13:30"]
    assert home.shown("AAPL", "1h")[-2:] == ["2025-09-17 19:00", "2025-09-18 13:00"]
    assert home.shown("AAPL", "4h") == ["2025-09-17 12:00", "2025-09-17 16:00"]


def test_files_of_one_session_each_make_hours_days_and_weeks(home: Home) -> None:
    for day in range(15, 20):  # Monday to Friday
        home.load(minutes(f"2025-09-{day}T13:30", f"2025-09-{day}T20:00"))
    assert home.shown("AAPL", "1d") == [f"2025-09-{day} 13:30" for day in range(15, 20)]
    assert home.shown("AAPL", "1w") == ["2025-09-15 13:30"]
    assert home.shown("AAPL", "1h")[::7] == [f"2025-09-{day} 13:00" for day in range(15, 20)]
    home.load(minutes("2025-09-22T13:30", "2025-09-22T20:00"))
    assert home.shown("AAPL", "1w") == ["2025-09-15 13:30"], "four days of the week are missing"


def test_extended_hours_in_which_a_file_ends_are_cut_too(home: Home) -> None:
    home.load(minutes("2025-09-17T08:00", "2025-09-17T21:20"))
    assert home.shown("AAPL", "1d") == ["2025-09-17 13:30"]
    assert home.shown("AAPL", "1h")[-1] == "2025-09-17 20:00"
    assert home.shown("AAPL", "6h") == ["2025-09-17 06:00", "2025-09-17 12:00"], "nothing trades before 08:00"


def test_a_weekend_of_currencies_needs_no_minutes(home: Home) -> None:
    home.load(minutes("2025-09-07T21:00", "2025-09-12T21:00"), "EUR/USD")
    home.load(minutes("2025-09-14T21:00", "2025-09-19T21:00"), "EUR/USD")
    assert home.shown("EUR/USD", "1d") == [f"2025-09-{day:02} 21:00" for day in (*range(7, 12), *range(14, 19))]
    assert home.shown("EUR/USD", "1w") == ["2025-09-07 21:00", "2025-09-14 21:00"]


def test_a_stock_with_few_trades_ends_with_its_session_if_it_has_made_longer_pauses(home: Home) -> None:
    day = minutes("2025-09-17T13:30", "2025-09-17T20:00")
    home.load([time for time in day if time // 60 % 7 == 3])
    assert home.shown("AAPL", "1d") == ["2025-09-17 13:30"]
    home.load([time for time in day if time // 60 % 7 == 3 and time < at("2025-09-17T19:30")], "MSFT")
    assert home.shown("MSFT", "1d") == [], "nothing in the last half hour, and no such pause before"


def test_all_symbols_of_a_file_cover_its_day(home: Home) -> None:
    day = minutes("2025-09-17T13:30", "2025-09-17T20:00")
    rows = [f"AAPL,{time},1,1,1,1,9" for time in day] + [f"MSFT,{time},1,1,1,1,9" for time in day[100:110]]
    home.add("\n".join(["Ticker,timestamp,open,high,low,close,volume", *rows, ""]), ImportOptions())
    assert home.shown("MSFT", "1d") == ["2025-09-17 13:30"]


def test_a_cut_bar_is_not_shown_either_while_a_feed_fails_or_is_refused(files: Files, tmp_path: Path) -> None:
    feed = ScriptedFeed(known=(BTC,))
    feed.down = True
    home = Home(files, ParquetStore(tmp_path / "data"), feed)
    home.load(minutes("2025-10-01T00:00", "2025-10-03T10:39"), "BTC/USD")

    found = asyncio.run(home.service.latest(BTC, Timeframe.D1))

    assert [iso(time)[:10] for time in found.time.tolist()] == ["2025-10-01", "2025-10-02"]
