"""Pages of bars: complete, disjoint, in order, with an exact total, and without reading what is not on the page."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.desk import Desk
from openbell.desk.quotes.arche.historical import DayCounts, decimal_text
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span
from tests.counts import runs
from tests.desk.arche.homes import DAY, IMPORTED, MONDAY, bars_at, desk_with, historical
from tests.servers.desks import awaited

PAGES = runs(50, soak=2000)
CHANGES = runs(30, soak=300)
DAYS = 6
NOW = MONDAY + (DAYS - 1) * DAY + 11 * 3600
"""In the middle of the last day."""
SYMBOLS = ("BTC/USD", "ETH/USD", "EUR/USD", "AAPL")
MOST_PAGES = 40
CHANCE = random.Random(5)
MINUTES: dict[str, Bars] = {
    symbol: bars_at(symbol, sorted(CHANCE.sample(range(MONDAY, MONDAY + DAYS * DAY, 60), CHANCE.randint(100, 300))))
    for symbol in SYMBOLS
}
SESSIONS = [MONDAY + day * DAY + 13 * 3600 + 1800 for day in range(5)]
"""The opens of the stock's week."""
MIDNIGHTS = [MONDAY + day * DAY for day in range(DAYS)]
OPENS = {"AAPL": SESSIONS, "EUR/USD": [midnight - 3 * 3600 for midnight in MIDNIGHTS[:5]]}
"""When the days of a stock and of a currency open. A currency's open at 17:00 New York on the evening before their date."""
DAILY: dict[str, Bars] = {symbol: bars_at(symbol, OPENS.get(symbol, MIDNIGHTS), Timeframe.D1) for symbol in SYMBOLS}


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def desk(loop: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk with all bars, those after its clock included."""
    context = desk_with(tmp_path_factory.mktemp("pages"), NOW, *MINUTES.values(), *DAILY.values())
    yield loop.run(context.__aenter__())
    loop.run(context.__aexit__(None, None, None))


def date(day: int) -> str:
    return iso(MONDAY + day * DAY)[:10]


def expected(symbols: Sequence[str], interval: str, first: int, last: int) -> list[tuple[Any, ...]]:
    """The bars of a range that had closed by the clock, put in order by plain Python."""
    found = []
    for rank, symbol in enumerate(symbols):
        bars = (DAILY if interval == "1d" else MINUTES)[symbol]
        length = 60 if interval == "1m" else 6.5 * 3600 if symbol == "AAPL" else DAY
        late = 3 * 3600 if (symbol, interval) == ("EUR/USD", "1d") else 0
        for at, close in zip(bars.time.tolist(), bars.close.tolist(), strict=True):
            if MONDAY + first * DAY <= at + late < MONDAY + (last + 1) * DAY and at + length <= NOW:
                found.append((at, rank, symbol, decimal_text(close)))
    return sorted(found)


def shown(items: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(each["timestamp"], each["ticker"], each["close"]) for each in items]


@settings(max_examples=PAGES, deadline=None)
@given(
    symbols=st.permutations(SYMBOLS).flatmap(lambda order: st.integers(1, 4).map(lambda count: order[:count])),
    interval=st.sampled_from(("1m", "1m", "1d")),
    first=st.integers(-2, DAYS + 1),
    length=st.integers(0, 8),
    size=st.integers(1, 200),
)
def test_pages_are_complete_disjoint_and_ordered_and_their_total_is_exact(
    loop: asyncio.Runner, desk: Desk, symbols: list[str], interval: str, first: int, length: int, size: int
) -> None:
    wanted = expected(symbols, interval, first, first + length)
    size = max(size, min(200, len(wanted) // MOST_PAGES + 1))

    async def walk() -> None:
        items: list[dict[str, Any]] = []
        for page in range(1, len(wanted) // size + 3):
            found = await historical(
                desk, ",".join(symbols), date(first), date(first + length), interval, page=page, page_size=size
            )
            assert found.status == 200, found.body
            assert (found.body["total"], found.body["page"], found.body["page_size"]) == (len(wanted), page, size)
            assert len(found.body["items"]) == max(0, min(size, len(wanted) - (page - 1) * size))
            items += found.body["items"]
        assert shown(items) == [(iso(at), symbol, close) for at, _, symbol, close in wanted]

    loop.run(walk())


def test_an_item_is_the_whole_bar(loop: asyncio.Runner, desk: Desk) -> None:
    found = loop.run(historical(desk, "eurusd,btcusd", date(0), date(0), "1d"))
    bar = DAILY["BTC/USD"]
    columns = zip(("open", "high", "low", "close", "volume"), bar.columns()[1:], strict=True)
    values = {name: decimal_text(float(column[0])) for name, column in columns}
    whole = {"ticker": "BTC/USD", "timestamp": "2025-06-09T00:00:00+00:00", "interval": "1d", **values}
    euro = {"ticker": "EUR/USD", "timestamp": "2025-06-08T21:00:00+00:00", "volume": None}  # Monday's day
    assert found.body["items"] == [{**whole, **euro}, whole]


def test_daily_bars_are_of_the_instruments_days(loop: asyncio.Runner, desk: Desk) -> None:
    found = loop.run(historical(desk, "AAPL", date(0), date(DAYS), "1d"))
    assert [each["timestamp"] for each in found.body["items"]] == [iso(each) for each in SESSIONS]


def test_unknown_tickers_are_left_out_with_status_206(loop: asyncio.Runner, desk: Desk) -> None:
    for interval in ("1m", "1d"):
        found = loop.run(historical(desk, "NOPE,AAPL,ZZZZZZ", date(0), date(0), interval))
        alone = loop.run(historical(desk, "AAPL", date(0), date(0), interval))
        assert (found.status, sorted(found.missing)) == (206, ["NOPE", "ZZZZZZ"])
        assert found.body["items"] == alone.body["items"]
        for tickers in ("NOPE,ZZZZZZ", "ZZZZZZ"):
            none = loop.run(historical(desk, tickers, date(0), date(0), interval))
            assert (none.status, none.error["code"]) == (404, "SYMBOL_NOT_FOUND")


def test_a_range_without_bars_is_empty_and_no_error(loop: asyncio.Runner, desk: Desk) -> None:
    for first, to in (("2030-01-01", "2030-06-01"), ("0001-01-01", "0001-12-31"), ("9999-12-31", "9999-12-31")):
        for interval in ("1m", "1d"):
            found = loop.run(historical(desk, "BTC/USD", first, to, interval))
            assert (found.status, found.body["total"], found.body["items"]) == (200, 0, [])
    far = loop.run(historical(desk, "BTC/USD", date(0), date(1), page=10**18 - 1))
    assert (far.status, far.body["items"], far.body["page"]) == (200, [], 10**18 - 1)
    assert far.body["total"] > 0


def test_a_range_that_is_over_may_be_kept_and_a_growing_one_not(loop: asyncio.Runner, desk: Desk) -> None:
    over = loop.run(historical(desk, "BTC/USD", date(0), date(1)))
    assert over.response.headers["cache-control"] == "private, max-age=60"
    growing = loop.run(historical(desk, "BTC/USD", date(0), date(DAYS)))
    assert growing.response.headers["cache-control"] == "private, no-cache"


class Reads:
    """Counts what is read of a store."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.days = 0.0
        read = desk.store.read

        def counted(series: Series, start: int, end: int) -> Bars:
            self.days += (end - start) / DAY
            return read(series, start, end)

        monkeypatch.setattr(desk.store, "read", counted)


@awaited
async def test_a_page_reads_its_days_and_not_the_range(tmp_path: Path) -> None:
    times = range(MONDAY, MONDAY + 60 * DAY + 7200, 600)
    async with desk_with(tmp_path, MONDAY + 60 * DAY + 7200, bars_at("BTC/USD", times)) as desk:
        with pytest.MonkeyPatch.context() as patch:
            reads = Reads(desk, patch)
            for page, most in ((1, 64.0), (2, 3.0), (40, 3.0), (43, 3.0)):
                reads.days = 0.0
                found = await historical(desk, "BTC/USD", date(0), date(60), page=page, page_size=200)
                assert found.body["total"] == len(times)
                assert reads.days <= most, page


def test_a_new_or_changed_bar_is_counted_at_once(tmp_path: Path) -> None:
    """Days that were counted before are counted again if any process writes to them."""
    chance = random.Random(1)

    async def main() -> None:
        async with desk_with(tmp_path, MONDAY + 30 * DAY) as desk:
            present: set[int] = set()
            counts = DayCounts(desk.store)
            for _ in range(CHANGES):
                more = sorted(chance.sample(range(MONDAY, MONDAY + 20 * DAY, 60), chance.randint(1, 40)))
                desk.store.write([bars_at("BTC/USD", more)], IMPORTED)
                present |= set(more)
                first = MONDAY // DAY + chance.randint(-3, 10)
                last = first + chance.randint(1, 15)
                end = chance.choice([last * DAY, MONDAY + 30 * DAY, first * DAY + 40_000, MONDAY + 5 * DAY + 40_000])
                for _ in range(2):
                    found = counts.of(Series(parse("BTC/USD")), first, last, end).tolist()
                    assert found == [
                        sum(day * DAY <= at < min(end, (day + 1) * DAY) for at in present) for day in range(first, last)
                    ]

    asyncio.run(main())


@awaited
async def test_a_day_that_is_not_over_is_counted_again_when_it_has_grown(tmp_path: Path) -> None:
    series, first = Series(parse("BTC/USD")), MONDAY // DAY
    async with desk_with(tmp_path, MONDAY + 30 * DAY, bars_at("BTC/USD", range(MONDAY, MONDAY + DAY, 3600))) as desk:
        counts = DayCounts(desk.store)
        for end, count in ((6 * 3600, 6), (6 * 3600, 6), (9 * 3600, 9), (6 * 3600, 6)):
            assert counts.of(series, first, first + 2, MONDAY + end).tolist() == [count, 0]
        desk.store.write([bars_at("BTC/USD", [MONDAY + 600])], IMPORTED)
        assert counts.of(series, first, first + 2, MONDAY + 6 * 3600).tolist() == [7, 0]
        assert counts.of(series, first, first + 2, MONDAY + DAY).tolist() == [25, 0]


@awaited
async def test_a_simulated_year_has_the_bars_that_the_feed_counts(tmp_path: Path) -> None:
    """Bars that the store lacks are fetched, so that the total is that of the feed."""
    moment = 1_767_801_600
    async with desk_with(tmp_path, moment, FEED="sim") as desk:
        btc = parse("BTC/USD")
        first, to = iso(moment - 40 * DAY)[:10], iso(moment - 30 * DAY)[:10]
        span = Span((moment - 40 * DAY) // DAY * DAY, ((moment - 30 * DAY) // DAY + 1) * DAY)
        for interval, timeframe in (("1m", Timeframe.M1), ("1d", Timeframe.D1)):
            found = await historical(desk, "BTC/USD", first, to, interval)
            assert found.body["total"] == await desk.feed.count(btc, timeframe, span.start, span.end)
        assert found.response.facts is not None
        assert found.response.facts.bars.sources == {Source(Origin.SIMULATED, "sim")}
