"""Every list that a tool may cut says so, and its pages give each item once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from openbell.market.clock import iso
from openbell.servers import NAMES, load
from tests.servers.desks import Bench, bench_as_found
from tests.servers.histories import START, SYMBOLS, History

COUNT = 102
MARKET_ORDER = {"side": "buy", "type": "market", "quantity": "1"}
LIMIT_ORDER = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "1", "price": "97"}


def test_every_tool_with_a_limit_says_what_it_left_out() -> None:
    """In its schema: a page of a whole, or how many remain."""
    for name in NAMES:
        for tool in load(name).tools:
            if "limit" not in tool.input_schema["properties"]:
                continue
            declared = load(name).dialect.schema(tool.output_schema or {})
            found = str(declared)
            assert ("'has_more'" in found and "'total'" in found) or "'remaining'" in found, tool.name


async def pages(bench: Bench, size: int) -> list[str]:
    """The ids of all open orders, page by page; each page says truly how many there are and whether more follow."""
    found: list[str] = []
    while True:
        answer = await bench.chartgen("get_orders", filter="open", limit=size, offset=len(found))
        more = len(found) + size < COUNT
        assert answer["pagination"] == {"offset": len(found), "limit": size, "total": COUNT, "has_more": more}
        assert len(answer["orders"]) == min(size, COUNT - len(found))
        found += [each["order_id"] for each in answer["orders"]]
        if not more:
            return found


async def by_cursor(bench: Bench, size: int, **given: Any) -> list[str]:
    """The ids of all orders, page by page, each from the cursor of the one before."""
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        answer = await bench.chartgen("get_orders", limit=size, **given, **cursor)
        assert answer["pagination"]["offset"] == len(found)
        found += [each["order_id"] for each in answer["orders"]]
        if answer["cursor"] is None:
            return found
        cursor = {"cursor": answer["cursor"]}


async def _place(bench: Bench, number: int) -> str:
    """Place one order; again if a quick machine has placed too many in a second."""
    deadline = time.monotonic() + 30
    while True:
        reply = await bench.reply("chartgen", "place_order", {**LIMIT_ORDER, "client_order_id": str(number)})
        if not reply.is_error:
            return str(reply.payload["order_id"])
        assert "orders in a second" in str(reply.payload), reply.payload
        assert time.monotonic() < deadline


async def _with_many_orders(home: Path) -> tuple[History, list[str]]:
    history = History(home, 0, RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0", RISK_COLLAR="0")
    async with history.present() as bench:
        placed = [await _place(bench, number) for number in range(COUNT)]
    return history, placed[::-1]


@pytest.mark.parametrize("earlier", [False, True])
def test_each_of_102_open_orders_is_on_one_page(tmp_path: Path, earlier: bool) -> None:
    """Of the present, and of a scenario's earlier time, which is read from its ledger."""

    async def play() -> tuple[list[str], list[list[str]], Any]:
        history, placed = await _with_many_orders(tmp_path)
        async with history.present() as bench:
            default = await bench.chartgen("get_orders", filter="open")
            assert await by_cursor(bench, 40) == placed
            assert await by_cursor(bench, 40, filter="open") == placed
            return placed, [await pages(bench, size) for size in (40, 1000)], default

    async def play_earlier() -> tuple[list[str], list[list[str]], Any]:
        settings = {"FEED": "none", "SCENARIO": "many", "RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0"}
        async with History(tmp_path, 0).present():
            pass  # writes the bars
        async with bench_as_found(tmp_path, iso(START), **settings, RISK_COLLAR="0") as bench:
            placed = [await _place(bench, number) for number in range(COUNT)]
        async with bench_as_found(tmp_path, iso(START + 30), **settings) as bench:
            for order_id in placed[::7]:
                await bench.chartgen("cancel_order", order_id=order_id)
        async with bench_as_found(tmp_path, iso(START), **settings) as bench:
            default = await bench.chartgen("get_orders", filter="open")
            assert await by_cursor(bench, 40) == placed[::-1]
            assert await by_cursor(bench, 40, filter="open") == placed[::-1]
            return placed[::-1], [await pages(bench, size) for size in (40, 1000)], default

    placed, found, default = asyncio.run(play_earlier() if earlier else play())
    assert found[0] == found[1]
    assert sorted(found[0]) == sorted(placed)
    assert len(default["orders"]) == 20
    assert default["pagination"] == {"offset": 0, "limit": 20, "total": COUNT, "has_more": True}
    assert default["cursor"] == default["orders"][-1]["order_id"]


def test_a_cursor_gives_each_order_once_although_orders_are_placed_between(tmp_path: Path) -> None:
    async def play() -> None:
        history = History(tmp_path, 0, RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0", RISK_COLLAR="0")
        async with history.present() as bench:
            placed = [await _place(bench, number) for number in range(7)][::-1]
            found: list[str] = []
            page = await bench.chartgen("get_orders", limit=3)
            while True:
                found += [each["order_id"] for each in page["orders"]]
                if page["cursor"] is None:
                    break
                assert page["pagination"]["has_more"] is True
                await _place(bench, 10 + len(found))
                page = await bench.chartgen("get_orders", limit=3, cursor=page["cursor"])
            assert found == placed
            assert page["pagination"] == {"offset": 8, "limit": 3, "total": 9, "has_more": False}
            text = await bench.no("get_orders", cursor=found[0], offset=1)
            assert text == "give cursor or offset, not both"

    asyncio.run(play())


def test_a_cursor_gives_each_open_order_once_although_orders_close_between(tmp_path: Path) -> None:
    async def play() -> None:
        history = History(tmp_path, 0, RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0", RISK_COLLAR="0")
        async with history.present() as bench:
            placed = [await _place(bench, number) for number in range(9)][::-1]
            found: list[str] = []
            page = await bench.chartgen("get_orders", filter="open", limit=3)
            # The first and the last of a page that was listed, and one that was not listed yet.
            for gone in ((0, 2, 4), (3, 6, 7), ()):
                found += [each["order_id"] for each in page["orders"]]
                for number in gone:
                    await bench.chartgen("cancel_order", order_id=placed[number])
                if page["cursor"] is not None:
                    page = await bench.chartgen("get_orders", filter="open", limit=3, cursor=page["cursor"])
            assert found == [placed[number] for number in (0, 1, 2, 3, 5, 6, 8)]
            assert page["cursor"] is None

    asyncio.run(play())


@pytest.mark.parametrize("cursor", [3, 0, "3", "local-0", "", "\0", "x" * 200])
def test_a_cursor_that_is_no_orders_is_refused_with_what_to_do(tmp_path: Path, cursor: int | str) -> None:
    async def play() -> None:
        history = History(tmp_path, 0, RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0", RISK_COLLAR="0")
        async with history.present() as bench:
            await _place(bench, 1)
            text = await bench.no("get_orders", cursor=cursor)
            assert "is not one that get_orders has returned" in text
            assert "call it without a cursor" in text

    asyncio.run(play())


def test_a_listed_order_has_the_fields_that_say_something(tmp_path: Path) -> None:
    async def play() -> None:
        history = History(tmp_path, 0, RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0", RISK_COLLAR="0")
        async with history.present() as bench:
            placed = await bench.chartgen("place_order", **LIMIT_ORDER)
            (whole,) = (await bench.chartgen("get_orders", detail=True))["orders"]
            page = await bench.chartgen("get_orders")
            assert whole == placed
            (row,) = page["orders"]
            assert row == {name: whole[name] for name in row}
            assert page["account"] == "paper"
            empty = {name: value for name, value in whole.items() if name not in row}
            assert set(empty) == set(
                "client_order_id stop_price take_profit stop_loss time_in_force filled_quantity average_price fees role "
                "parent_id filled_at updated_at account requested_symbol".split()
            )

    asyncio.run(play())


@pytest.mark.parametrize("as_of", ["", iso(START + 300)])
def test_every_other_list_is_whole_or_says_what_it_left_out(tmp_path: Path, as_of: str) -> None:
    async def play() -> None:
        history = History(tmp_path, 0)
        async with history.present() as bench:
            for number in range(12):
                given: dict[str, Any] = {
                    "symbol": "BTC/USD",
                    "action": "HOLD",
                    "confidence": 0.5,
                    "reasoning": str(number),
                }
                await bench.ask("decisions", "save_decision", **given)
            for symbol in SYMBOLS:
                await bench.reply("chartgen", "place_order", {**MARKET_ORDER, "symbol": symbol})
            history.clock.advance(300.0)
            history.arrive(bench.desk)
            await bench.desk.trading.engine.step(None)
            if not as_of:
                await _check(bench)
        if as_of:
            async with bench_as_found(tmp_path, as_of, FEED="none", TRADE="0") as bench:
                await _check(bench)

    asyncio.run(play())


async def _check(bench: Bench) -> None:
    recent = await bench.ask("decisions", "get_recent_decisions")
    assert [each["reasoning"] for each in recent["items"]] == [str(number) for number in range(11, 1, -1)]
    assert recent["pagination"] == {"offset": 0, "limit": 10, "total": 12, "has_more": True}
    rest = await bench.ask("decisions", "get_recent_decisions", offset=10)
    assert [each["reasoning"] for each in rest["items"]] == ["1", "0"]
    assert rest["pagination"]["has_more"] is False
    every = await bench.ask("portfolio", "get_positions")
    assert every["pagination"] == {"offset": 0, "limit": 50, "total": 2, "has_more": False}
    one = await bench.ask("portfolio", "get_positions", limit=1)
    two = await bench.ask("portfolio", "get_positions", limit=1, offset=1)
    assert [one["pagination"]["has_more"], two["pagination"]["has_more"]] == [True, False]
    assert [*one["items"], *two["items"]] == every["items"]
    candles = await bench.ask("market-data", "get_candles", symbol="BTC/USD", timeframe="1m", limit=5)
    assert candles["pagination"] == {"offset": 0, "limit": 5, "total": 305, "has_more": True}
    last = await bench.ask("market-data", "get_candles", symbol="BTC/USD", timeframe="1m", limit=5, offset=300)
    assert (len(last["items"]), last["pagination"]["has_more"]) == (5, False)


def test_alerts_are_listed_whole_and_notifications_tell_how_many_remain(tmp_path: Path) -> None:
    async def play() -> None:
        history = History(tmp_path, 0)
        async with history.present() as bench:
            for _ in range(COUNT):
                await bench.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1.0})
            assert len((await bench.chartgen("list_alerts"))["alerts"]) == COUNT
            history.clock.advance(120.0)
            history.arrive(bench.desk)
            await bench.desk.trading.engine.step(None)
            first = await bench.chartgen("get_notifications", cursor=0)
            assert (len(first["notifications"]), first["remaining"]) == (100, COUNT - 100)
            rest = await bench.chartgen("get_notifications", cursor=first["cursor"])
            assert (len(rest["notifications"]), rest["remaining"]) == (COUNT - 100, 0)
            told = [each["alert_id"] for each in first["notifications"] + rest["notifications"]]
            assert len(set(told)) == COUNT

    asyncio.run(play())
