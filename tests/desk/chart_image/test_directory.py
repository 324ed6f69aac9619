"""Exchanges and symbols: of the vendor with a key, of this desk without one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from openbell.desk.desk import Desk
from openbell.desk.pictures.chart_image.directory import FRESH_SECONDS, Directory
from openbell.desk.pictures.chart_image.errors import KeyRefused, VendorFailed
from openbell.desk.pictures.chart_image.exchanges import EXCHANGES, TYPES
from openbell.desk.settings import load
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.stores.parquet.store import ParquetStore
from tests.desk.chart_image.clients import HandClock, client
from tests.servers.chart_img_server import KEY, ChartImgServer, message
from tests.servers.quotes_server import reply
from tests.stores.samples import FILE, SEPTEMBER, run

T = TypeVar("T")
BINANCE = {
    "updatedAt": "2026-03-18T00:00:00Z",
    "payload": [
        {"symbol": "ETHBTC", "description": "Ethereum / Bitcoin", "type": "spot", "typespecs": ["crypto"]},
        {"symbol": "BTCUSDT", "description": "Bitcoin / TetherUS", "type": "crypto", "exchange": "BINANCE"},
        {"symbol": "BTCUSDT.P", "description": "Bitcoin perpetual", "type": "swap", "typespecs": ["crypto"]},
        {"symbol": "BTC", "description": "Bitcoin index", "type": "index"},
        {"symbol": "WBTCUSDT", "description": "Wrapped / TetherUS", "type": "crypto"},
        {"symbol": "BTC1!", "description": "Future", "type": "futures"},
        {"symbol": "DOGEUSDT", "description": f"Like BTC {KEY}", "type": "crypto"},
    ],
}


def with_vendor(server: ChartImgServer, home: Path, clock: HandClock, work: Callable[[Directory], Awaitable[T]]) -> T:
    async def run() -> T:
        made = client(server.url, home, clock)
        try:
            async with Desk(load({"OPENBELL_HOME": str(home)})) as desk:
                return await work(Directory(desk.chart_images.known_instruments, made, clock.timing))
        finally:
            await made.close()

    return asyncio.run(run())


def alone(home: Path, work: Callable[[Directory], Awaitable[T]], **settings: str) -> T:
    async def run() -> T:
        env = {"OPENBELL_HOME": str(home)} | {f"OPENBELL_{name.upper()}": text for name, text in settings.items()}
        async with Desk(load(env)) as desk:
            return await work(Directory(desk.chart_images.known_instruments, None))

    return asyncio.run(run())


class TestVendor:
    def test_ids_become_exchanges_sorted_by_type_then_name(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.exchanges = {"payload": ["NYSE", "BINANCE", "FX", "NASDAQ", "COINBASE", "CME_MINI", "NEWONE", "BINANCE"]}
        found = with_vendor(server, tmp_path, clock, lambda it: it.exchanges())

        assert found.source == "vendor"
        assert [(each.type, each.id) for each in found.items] == [
            ("crypto", "BINANCE"),
            ("crypto", "COINBASE"),
            ("forex", "FX"),
            ("futures", "CME_MINI"),
            ("other", "NEWONE"),
            ("stock", "NASDAQ"),
            ("stock", "NYSE"),
        ]
        assert (found.items[0].name, found.items[0].description) == ("Binance", "Global cryptocurrency exchange")
        assert all(each.description for each in found.items)

    def test_objects_say_more_and_what_is_none_is_left_out(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.exchanges = [
            {"id": "abc", "name": f"A {KEY} C\x00", "type": "Bitcoin", "description": "x" * 500},
            {"exchange": "NASDAQ", "type": 5, "description": None},
            *(None, 5, "", "a b", "../x", {"id": 5}, {}, [], "x" * 41, KEY),
        ]
        found = with_vendor(server, tmp_path, clock, lambda it: it.exchanges()).items

        assert [(each.id, each.name, each.type) for each in found] == [
            ("ABC", "A [key] C", "crypto"),
            ("NASDAQ", "NASDAQ", "stock"),
        ]
        assert len(found[0].description) == 120

    def test_symbols_are_searched_by_name_first_and_then_by_description(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.symbols["BINANCE"] = BINANCE

        async def several(it: Directory) -> list[Any]:
            return [await it.symbols("binance", text) for text in ("btc", "", "BTC/USDT", "tether", "nothing")]

        btc, every, pair, words, nothing = with_vendor(server, tmp_path, clock, several)
        assert btc.exchange == "BINANCE"
        assert [each.symbol for each in btc.listing.items] == [
            *("BTC", "BTCUSDT", "BTCUSDT.P", "BTC1!", "ETHBTC", "WBTCUSDT", "DOGEUSDT")
        ]
        assert [each.type for each in every.listing.items] == ["crypto"] * 5 + ["futures", "index"]
        assert [each.symbol for each in pair.listing.items] == ["BTCUSDT", "BTCUSDT.P", "WBTCUSDT"]
        assert {each.symbol for each in words.listing.items} == {"BTCUSDT", "WBTCUSDT"}
        assert (nothing.total, nothing.listing.items) == (0, ())
        assert KEY not in repr(every)
        assert len(server.asked) == 1, "one list for all of them"

    def test_a_limit_cuts_and_the_total_is_said(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        server.symbols["NASDAQ"] = [f"NASDAQ:S{number}" for number in range(120)]
        found = with_vendor(server, tmp_path, clock, lambda it: it.symbols("NASDAQ"))
        assert (len(found.listing.items), found.total) == (50, 120)
        first = found.listing.items[0]
        assert (first.symbol, first.full_symbol, first.description, first.type) == ("S0", "NASDAQ:S0", "S0", "stock")
        assert len(with_vendor(server, tmp_path, clock, lambda it: it.symbols("NASDAQ", "s1", 7)).listing.items) == 7

    @pytest.mark.parametrize(
        "arguments", [("",), ("a b",), ("../x",), ("..",), ("x" * 41,), ("A", "x" * 101), ("A", "", 0), ("A", "", 5001)]
    )
    def test_bad_arguments_never_reach_the_vendor(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock, arguments: tuple[Any, ...]
    ) -> None:
        with pytest.raises(InvalidParameter):
            with_vendor(server, tmp_path, clock, lambda it: it.symbols(*arguments))
        assert server.asked == []

    def test_an_unknown_exchange_suggests_the_nearest(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        with pytest.raises(InvalidParameter, match="no exchange 'BINANCEE'; did you mean 'BINANCE'"):
            with_vendor(server, tmp_path, clock, lambda it: it.symbols("BINANCEE"))

    def test_a_list_is_kept_for_an_hour(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        async def later(it: Directory) -> list[float]:
            ages = []
            for passed in (0.0, FRESH_SECONDS - 1, FRESH_SECONDS):
                clock.passed = passed
                ages.append((await it.exchanges()).age)
            return ages

        assert with_vendor(server, tmp_path, clock, later) == [0.0, FRESH_SECONDS - 1, 0.0]
        assert len(server.asked) == 2

    def test_concurrent_calls_share_a_request(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        server.symbols |= {"BINANCE": BINANCE, "NASDAQ": ["AAPL"]}

        async def at_once(it: Directory) -> None:
            await asyncio.gather(*(it.symbols(each) for each in ("BINANCE", "NASDAQ") * 5))

        with_vendor(server, tmp_path, clock, at_once)
        assert len(server.asked) == 2

    def test_a_failing_vendor_leaves_the_copy_with_its_age(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        async def later(it: Directory) -> Any:
            await it.exchanges()
            server.always = reply(503, b"", "text/html")
            clock.passed = 5000.0
            return await it.exchanges()

        found = with_vendor(server, tmp_path, clock, later)
        assert found.age >= 5000 and len(found.items) == 3
        assert found.error == "the vendor failed with HTTP 503"

    def test_without_a_copy_it_is_the_typed_error(
        self, server: ChartImgServer, tmp_path: Path, clock: HandClock
    ) -> None:
        server.always = reply(503, b"", "text/html")
        with pytest.raises(VendorFailed):
            with_vendor(server, tmp_path, clock, lambda it: it.exchanges())
        server.always = message(401, "Missing API Key")
        with pytest.raises(KeyRefused):
            with_vendor(server, tmp_path, clock, lambda it: it.symbols("BINANCE"))

    def test_the_lists_that_are_used_are_kept(self, server: ChartImgServer, tmp_path: Path, clock: HandClock) -> None:
        names = [f"X{number}" for number in range(17)]
        server.symbols |= {name: ["A"] for name in names}

        async def many(it: Directory) -> None:
            for name in [*names[:16], names[0], names[16], names[0], names[1]]:
                await it.symbols(name)

        with_vendor(server, tmp_path, clock, many)
        asked = [each.path.rpartition("/")[2] for each in server.asked]
        assert asked == [*names, names[1]], "the one that was not used for the longest time is fetched again"


class TestDesk:
    def test_it_lists_what_it_knows_and_says_so(self, tmp_path: Path) -> None:
        found = alone(tmp_path, lambda it: it.exchanges())

        assert found.source == "desk"
        ids = [each.id for each in found.items]
        assert {"NASDAQ", "NYSE", "AMEX", "BINANCE", "FX"} <= set(ids)
        assert [each.type for each in found.items] == sorted(each.type for each in found.items)
        symbols = alone(tmp_path, lambda it: it.symbols("BINANCE", "btc"))
        assert (symbols.listing.source, symbols.total) == ("desk", 2)
        assert {each.full_symbol: each.description for each in symbols.listing.items} == {
            "BINANCE:BTCUSD": "Bitcoin / US Dollar",
            "BINANCE:BTCUSDT": "Bitcoin / TetherUS",
        }

    def test_every_symbol_of_every_exchange_is_one_that_the_desk_reads(self, tmp_path: Path) -> None:
        async def every(it: Directory) -> list[Any]:
            return [each for one in (await it.exchanges()).items for each in (await it.symbols(one.id)).listing.items]

        found = alone(tmp_path, every)
        assert len(found) > 40
        for each in found:
            assert parse(each.full_symbol).symbol.replace("/", "") == each.symbol
            assert each.type in TYPES

    def test_a_stock_is_on_its_own_exchange(self, tmp_path: Path) -> None:
        (tmp_path / "watchlist.txt").write_text("AAPL\nSPY\nZZZZ\n")

        async def several(it: Directory) -> list[set[str]]:
            return [{each.symbol for each in (await it.symbols(one)).listing.items} for one in ("NASDAQ", "AMEX")]

        assert alone(tmp_path, several, feed="none") == [{"AAPL", "ZZZZ"}, {"SPY", "ZZZZ"}]
        (unknown,) = alone(tmp_path, lambda it: it.symbols("NYSE"), feed="none").listing.items
        assert "does not know" in unknown.description

    def test_a_stored_instrument_is_listed_from_its_first_bar_on(self, tmp_path: Path) -> None:
        (tmp_path / "watchlist.txt").write_text("BTC/USD\n")
        with closing(ParquetStore(tmp_path / "data")) as store:
            store.write([run("ETH/USDT", SEPTEMBER, 5)], FILE)
        for as_of, names in (("2025-08-01", {"BTCUSD"}), ("2025-10-01", {"BTCUSD", "ETHUSDT"})):
            found = alone(tmp_path, lambda it: it.symbols("BINANCE"), feed="none", as_of=as_of)
            assert {each.symbol for each in found.listing.items} == names

    def test_an_exchange_without_instruments_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "watchlist.txt").write_text("BTC/USD\n")
        for name in ("LSE", "NASDAQ", "NOWHERE"):
            with pytest.raises(InvalidParameter, match=f"no exchange '{name}'"):
                alone(tmp_path, lambda it, name=name: it.symbols(name), feed="none")  # type: ignore[misc]

    def test_well_known_exchanges_have_a_type_and_a_description(self) -> None:
        for each in EXCHANGES.values():
            assert each.type in TYPES and each.name and len(each.description) > 8, each.id
