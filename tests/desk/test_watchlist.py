"""The watchlist file: tolerant parsing, and errors that name the bad lines."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.bars.watchlist import DEFAULT, NEW_FILE, WatchlistFile, parse_watchlist
from openbell.feeds.registry import all_feeds, default_watchlist
from openbell.market.errors import StoreError
from openbell.market.instruments import AssetClass, Instrument, parse

CONTRACT = (
    "SPY QQQ IWM AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV ACHR BITQ UEC BTC/USD ETH/USD"
).split()


def contract() -> tuple[Instrument, ...]:
    """The default watchlist of the simulator."""
    return default_watchlist("sim", tuple)


def symbols(text: str) -> list[str]:
    return [instrument.symbol for instrument in parse_watchlist(text).instruments]


class TestText:
    def test_the_default_is_the_contracts_twenty_and_two_in_its_order(self) -> None:
        found = parse_watchlist(NEW_FILE, contract())

        assert [instrument.symbol for instrument in found.instruments] == CONTRACT
        assert [i.asset_class for i in found.instruments] == [AssetClass.STOCK] * 20 + [AssetClass.CRYPTO] * 2
        assert found.faults == ()

    def test_comments_are_no_part_of_a_symbol(self) -> None:
        text = "# my list\nAAPL # tech\nMSFT# no blank\n#NVDA\n   # indented\nBTC/USD\t# coin # twice\n"

        assert symbols(text) == ["AAPL", "MSFT", "BTC/USD"]
        assert parse_watchlist(text).faults == ()

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_blank_lines_and_line_ends_of_every_system(self, end: str) -> None:
        text = end.join(["", "AAPL", "  ", "\t", " MSFT  ", "", "ETH-USD"])

        assert symbols(text) == ["AAPL", "MSFT", "ETH/USD"]
        assert parse_watchlist(text).faults == ()

    def test_a_byte_order_mark_is_no_part_of_the_first_symbol(self) -> None:
        assert symbols("\ufeffAAPL\nMSFT") == ["AAPL", "MSFT"]
        assert symbols("\ufeff# comment\nAAPL") == ["AAPL"]

    def test_doubles_count_once_where_they_stood_first(self) -> None:
        assert symbols("BTC/USD\nAAPL\nbtcusd\nBTC_USD\nCOINBASE:BTCUSD\naapl\nBTC/USDT") == [
            "BTC/USD",
            "AAPL",
            "BTC/USDT",
        ]

    def test_a_bad_line_costs_only_itself_and_is_named_by_number(self) -> None:
        found = parse_watchlist("# list\nAAPL\nnot a symbol\n\nMSFT\nBTC/XYZ # what\n../x\n")

        assert [instrument.symbol for instrument in found.instruments] == ["AAPL", "MSFT"]
        assert [fault.partition(":")[0] for fault in found.faults] == ["line 3", "line 6", "line 7"]
        assert "'not a symbol'" in found.faults[0]
        assert "'BTC/XYZ'" in found.faults[1]

    def test_nothing_is_watched_when_nothing_is_listed(self) -> None:
        assert parse_watchlist("").instruments == parse_watchlist("# all gone\n\n").instruments == ()

    def test_a_list_may_mix_every_kind(self) -> None:
        found = parse_watchlist("EUR/USD\nAAPL\nBTC/USD").instruments

        assert [i.asset_class for i in found] == [AssetClass.FOREX, AssetClass.STOCK, AssetClass.CRYPTO]

    @given(st.text(max_size=200))
    @settings(deadline=None, max_examples=200)
    def test_any_text_is_read(self, text: str) -> None:
        found = parse_watchlist(text)

        lines = text.removeprefix("\ufeff").splitlines()
        full = [line for line in lines if line.partition("#")[0].strip()]
        assert len(found.instruments) + len(found.faults) <= len(full)
        assert bool(found.instruments or found.faults or found.removed) == bool(set(map(str.strip, full)) - {DEFAULT})
        assert len(set(found.instruments)) == len(found.instruments)


def rewrite(path: Path, text: str) -> None:
    """Write the file and set its modification time one second later than before."""
    before = path.stat().st_mtime_ns if path.exists() else 10**18
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


class TestFile:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "home" / "watchlist.txt"

    def test_without_a_file_the_default_is_watched(self, path: Path) -> None:
        file = WatchlistFile(path, contract)

        assert [instrument.symbol for instrument in file.read().instruments] == CONTRACT
        assert not path.exists()

    def test_create_writes_the_default_once(self, path: Path) -> None:
        WatchlistFile(path).create()
        assert path.read_text() == NEW_FILE
        path.write_text("AAPL\n")

        WatchlistFile(path).create()

        assert path.read_text() == "AAPL\n"

    def test_is_read_again_when_it_has_changed(self, path: Path) -> None:
        file = WatchlistFile(path, contract)
        file.create()
        assert len(file.read().instruments) == 22

        rewrite(path, "AAPL\nBTC/USD\n")
        assert [str(i) for i in file.read().instruments] == ["AAPL", "BTC/USD"]
        rewrite(path, "MSFT\nBTC/USD\n")  # as long as before

        assert [str(i) for i in file.read().instruments] == ["MSFT", "BTC/USD"]

    def test_is_not_parsed_again_while_it_stays_the_same(self, path: Path) -> None:
        file = WatchlistFile(path)
        file.create()

        assert file.read() is file.read()

    def test_the_state_differs_after_every_edit(self, path: Path) -> None:
        file = WatchlistFile(path)
        seen = [file.state()]
        file.create()
        seen.append(file.state())
        rewrite(path, "AAPL\n")
        seen.append(file.state())
        rewrite(path, "MSFT\n")
        seen.append(file.state())
        file.read()
        assert file.state() == seen[-1]
        assert len(set(seen)) == 4

        path.unlink()
        assert file.state() == seen[0] is None

    def test_bytes_that_are_no_text_cost_only_their_lines(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_bytes(b"AAPL\n\xff\xfe\x00\nMSFT\r\n")

        found = WatchlistFile(path).read()

        assert [str(i) for i in found.instruments] == ["AAPL", "MSFT"]
        assert len(found.faults) == 1

    def test_a_file_with_a_byte_order_mark_and_windows_line_ends(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_bytes("\ufeffAAPL # häufig\r\n\r\nBTC_USD\r\n".encode())

        found = WatchlistFile(path).read()

        assert [str(i) for i in found.instruments] == ["AAPL", "BTC/USD"]
        assert found.faults == ()

    def test_what_cannot_be_read_is_said_with_its_path(self, path: Path) -> None:
        path.mkdir(parents=True)

        with pytest.raises(StoreError, match=r"cannot read .*watchlist\.txt"):
            WatchlistFile(path).read()

    def test_what_cannot_be_written_is_said_with_its_path(self, tmp_path: Path) -> None:
        (tmp_path / "home").write_text("a file where a folder should be")

        with pytest.raises(StoreError, match=r"cannot write .*watchlist\.txt"):
            WatchlistFile(tmp_path / "home" / "below" / "watchlist.txt").create()

    def test_a_home_that_is_a_file_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "home").write_text("a file where a folder should be")

        with pytest.raises(StoreError, match="cannot write"):
            WatchlistFile(tmp_path / "home" / "watchlist.txt").create()

    def test_the_default_follows_the_feed(self, path: Path) -> None:
        default = [parse("AAPL"), parse("MSFT")]
        file = WatchlistFile(path, lambda: tuple(default))
        assert file.add(["BTC/USD", "aapl"]) == [parse("BTC/USD")]
        assert [str(each) for each in file.read().instruments] == ["AAPL", "MSFT", "BTC/USD"]
        default[:] = [parse("EUR/USD")]
        assert [str(each) for each in file.read().instruments] == ["EUR/USD", "BTC/USD"]

    def test_a_removal_sticks_until_the_symbol_is_added_by_hand(self, path: Path) -> None:
        file = WatchlistFile(path, contract)
        aapl, new = parse("AAPL"), parse("ZZZZ")
        assert file.join([aapl, new]) == [new]
        assert file.remove(["ZZZZ", "AAPL", "NONE"]) == [new, aapl]
        assert file.join([aapl, new]) == []
        assert not {aapl, new} & set(file.read().instruments)
        assert file.add(["ZZZZ", "AAPL"]) == [new, aapl]
        assert {aapl, new} <= set(file.read().instruments)
        assert "-" not in path.read_text().partition("@default\n")[2]

    def test_a_list_without_the_default_holds_what_it_names(self, path: Path) -> None:
        path.parent.mkdir()
        path.write_text("BTC/USD\n-ETH/USD # not this one\nETH/USD\n- not one\n")
        found = WatchlistFile(path, contract).read()
        assert [str(each) for each in found.instruments] == ["BTC/USD"]
        assert len(found.faults) == 1


class TestDefaults:
    def test_every_feed_has_one_of_symbols_that_can_be_parsed(self) -> None:
        stored = (parse("AAPL"), parse("BTC/USD"))
        for kind in all_feeds().values():
            feed = kind.shown.replace("EXCHANGE", "kraken")
            found = default_watchlist(feed, lambda: stored)
            assert found, feed
            if kind.watchlist is None:
                assert found == stored, f"{feed} has nothing but what is stored"

    def test_exchanges_have_the_pairs_that_they_trade(self) -> None:
        first = {
            exchange: str(default_watchlist(f"ccxt:{exchange}", tuple)[0])
            for exchange in ("kraken", "binance", "upbit")
        }
        assert first == {"kraken": "BTC/USD", "binance": "BTC/USDT", "upbit": "BTC/KRW"}

    def test_routes_have_those_of_each_class(self) -> None:
        found = default_watchlist(
            "stocks=alpaca,crypto=ccxt:binance,forex=none", lambda: (parse("EUR/USD"), parse("AAPL"))
        )
        names = [str(each) for each in found]
        assert names[0] == "SPY"
        assert "BTC/USDT" in names
        assert "BTC/USD" not in names
        assert names[-1] == "EUR/USD"


def test_symbols_that_are_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """As by `openbell watch add` during an import."""
    wanted = [f"{first}{second}Q" for first in "ABCDEFGH" for second in "ABCDEFGH"]

    def add(symbol: str) -> None:
        file = WatchlistFile(tmp_path / "watchlist.txt")
        file.add([symbol])
        file.join([parse(f"{symbol}X")])

    (tmp_path / "watchlist.txt").write_text("")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, wanted))
    found = {each.symbol for each in WatchlistFile(tmp_path / "watchlist.txt").read().instruments}
    assert found == {*wanted, *(f"{each}X" for each in wanted)}


def test_first_symbols_that_are_watched_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """As by two `openbell up SYMBOL` in a home without a list."""
    wanted = ["AAPL", "MSFT", "NVDA", "TSLA"]
    for attempt in range(20):
        path, start = tmp_path / f"{attempt}" / "watchlist.txt", Barrier(len(wanted))

        def watch(symbol: str, path: Path = path, start: Barrier = start) -> None:
            file = WatchlistFile(path)
            start.wait(10)
            file.watch([symbol])

        with ThreadPoolExecutor(len(wanted)) as threads:
            list(threads.map(watch, wanted))
        assert {each.symbol for each in WatchlistFile(path).read().instruments} == set(wanted)
