"""Orders, positions and balance of the chartgen contract, on paper."""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.orders.service import MOST_PER_SECOND
from openbell.protocol.session import Principal, Scope
from openbell.servers import load
from tests.client import OPENBELL, Client, run
from tests.servers.desks import OTHER, Bench, awaited, bench, bench_as_found

COMMAND = [*OPENBELL, "mcp", "chartgen"]
T1, T2, T3 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z", "2026-01-07T20:00:00Z"
TRADING: dict[str, dict[str, Any]] = {
    "place_order": {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": 0.01},
    "cancel_order": {"order_id": "local-0"},
    "get_orders": {},
    "get_positions": {},
    "get_balance": {},
    "set_alert": {"symbol": "BTC/USD", "condition": {"price_above": 1}},
    "list_alerts": {},
    "cancel_alert": {"alert_id": "alert_0"},
    "get_notifications": {},
    "subscribe_notifications": {},
    "unsubscribe_notifications": {},
    "list_subscriptions": {},
}
WRITES = {
    "place_order",
    "cancel_order",
    "set_alert",
    "cancel_alert",
    "subscribe_notifications",
    "unsubscribe_notifications",
}
FREE = {f"RISK_{name}": "0" for name in ("ORDER_SHARE", "SYMBOL_SHARE", "POSITIONS", "DAILY_LOSS", "COLLAR")}


async def last_price(desk: Bench, symbol: str) -> float:
    (candle,) = (await desk.ask("market-data", "get_candles", symbol=symbol, timeframe="1m", limit=1))["items"]
    return float(candle["close"])


async def orders(desk: Bench, **given: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await desk.chartgen("get_orders", detail=True, **given))["orders"]
    return found


async def buy(desk: Bench, symbol: str = "BTC/USD", quantity: Any = 0.01, **given: Any) -> dict[str, Any]:
    order = {"symbol": symbol, "side": "buy", "type": "market", "quantity": quantity, **given}
    placed: dict[str, Any] = await desk.chartgen("place_order", **order)
    return placed


# Who may


def test_there_are_twelve_trading_tools_and_fifteen_in_all() -> None:
    tools = load("chartgen").by_name
    assert len(tools) == 15
    assert {name for name, tool in tools.items() if tool.scope is Scope.TRADE} == set(TRADING)


def test_without_trade_each_says_so_and_charts_work(tmp_path: Path) -> None:
    with Client(tmp_path, command=COMMAND, AS_OF=T1, TIMEOUT="60") as client:
        client.initialize()
        assert len(client.request("tools/list")["result"]["tools"]) == 15
        for tool, arguments in TRADING.items():
            result = client.call(tool, arguments)["result"]
            assert result["isError"] is True
            (content,) = result["content"]
            assert content["type"] == "text"
            assert tool in content["text"]
            assert "--trade" in content["text"]
            assert "structuredContent" not in result
        chart = client.call("generate_chart", {"symbol": "BTC/USD", "format": "summary"})["result"]
        assert chart["isError"] is False
        truth = chart["_meta"]["openbell/truth"]
        assert (truth["account"], truth["data"]) == ("none", "simulated")
    assert not (tmp_path / "simulated" / "records.sqlite").exists(), "nothing was even looked up"


@awaited
async def test_a_caller_without_the_scope_is_refused_everything(tmp_path: Path) -> None:
    reader = Principal("local", frozenset({Scope.READ}))
    async with bench(tmp_path, T1) as desk:
        for tool, arguments in TRADING.items():
            assert "scope trade" in await desk.refused("chartgen", tool, reader, **arguments)


def test_read_only_hides_and_refuses_every_write_and_lets_one_look(tmp_path: Path) -> None:
    @awaited
    async def prepare() -> None:
        async with bench(tmp_path, T1) as desk:
            await buy(desk)
            await desk.chartgen("set_alert", symbol="BTC/USD", condition={"price_above": 1})
        async with bench(tmp_path, T2) as desk:
            assert len(await orders(desk)) == 1

    prepare()
    with Client(tmp_path, command=[*COMMAND, "--trade", "--read-only"], AS_OF=T2, READ_ONLY="0", TRADE="1") as client:
        client.initialize()
        listed = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        assert listed == set(load("chartgen").by_name) - WRITES
        for tool in WRITES:
            result = client.call(tool, TRADING[tool])["result"]
            assert result["isError"] is True
            assert "--read-only" in result["content"][0]["text"]
        for _ in range(2):
            seen = client.call("get_notifications")["result"]["structuredContent"]
            assert (len(seen["notifications"]), seen["remaining"]) == (1, 0), "one looks and takes nothing out"
        for tool in set(TRADING) - WRITES:
            assert client.call(tool)["result"]["isError"] is False
        assert client.call("get_positions")["result"]["structuredContent"]["positions"][0]["quantity"] == "0.01"
    verified = run(tmp_path, "verify")
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize(
    ("flags", "variable", "file"),
    [(["--read-only"], "0", "false"), ([], "1", "false"), ([], "0", "true"), (["--read-only"], "1", "true")],
)
def test_nothing_lifts_read_only(tmp_path: Path, flags: list[str], variable: str, file: str) -> None:
    (tmp_path / "openbell.toml").write_text(f"read_only = {file}\ntrade = true\n")
    asked = json.dumps(TRADING["place_order"])
    done = run(tmp_path, "call", "chartgen", "place_order", asked, "--trade", *flags, AS_OF=T1, READ_ONLY=variable)
    assert done.returncode == 1
    assert "--read-only" in done.stdout


@awaited
async def test_every_answer_says_that_the_money_is_paper_and_the_market_simulated(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        placed = await buy(desk)
        alert = await desk.chartgen("set_alert", symbol="ETH/USD", condition={"price_below": 1})
        for tool, given in TRADING.items():
            arguments = dict(given)
            if "order_id" in arguments:
                arguments["order_id"] = placed["order_id"]
            if "alert_id" in arguments:
                arguments["alert_id"] = alert["alert_id"]
            if "quantity" in arguments:
                arguments["quantity"] = 0.02
            reply = await desk.reply("chartgen", tool, arguments)
            assert not reply.is_error, (tool, reply.payload)
            assert (reply.truth["account"], reply.truth["data"]) == ("paper", "simulated"), tool
        for found in (placed, await desk.chartgen("get_balance"), await desk.chartgen("get_positions")):
            assert found["account"] == "paper"


# Placing


@awaited
async def test_orders_of_every_type_rest_while_the_clock_stands_and_meet_the_bars_of_a_later_one(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, T1) as desk:
        price = await last_price(desk, "ETH/USD")
        below, above = round(price * 0.96, 2), round(price * 1.04, 2)
        asked: list[dict[str, Any]] = [
            {"type": "market"},
            {"type": "limit", "price": above},
            {"type": "limit", "price": below},
            {"type": "stop", "stop_price": above},
            {"type": "stop_limit", "stop_price": above, "price": above},
        ]
        for given in asked:
            placed = await buy(desk, "ETHUSD", "0.5", **given)
            assert (placed["symbol"], placed["status"], placed["filled_quantity"]) == ("ETH/USD", "open", "0")
            assert (placed["placed_at"], placed["average_price"], placed["time_in_force"]) == (
                "2026-01-07T15:00:00+00:00",
                None,
                "gtc",
            )
        assert {order["status"] for order in await orders(desk)} == {"open"}
    async with bench(tmp_path, T2) as desk:
        found = await orders(desk)
        bars = (await desk.ask("market-data", "get_candles", symbol="ETH/USD", timeframe="1m", limit=30))["items"]
        assert max(bar["high"] for bar in bars) < above
        assert min(bar["low"] for bar in bars) > below
        by_type = {(order["type"], order["price"]): order for order in found}
        market = by_type["market", None]
        opening = Decimal(repr(bars[0]["open"]))
        assert (market["status"], market["average_price"]) == (
            "filled",
            f"{(opening * Decimal('1.0005')).normalize():f}",
        )
        better = by_type["limit", f"{Decimal(repr(above)).normalize():f}"]
        assert (better["status"], better["average_price"]) == ("filled", f"{opening.normalize():f}")
        assert by_type["limit", f"{Decimal(repr(below)).normalize():f}"]["status"] == "open"
        assert by_type["stop", None]["status"] == "open"
        assert [order["status"] for order in found].count("filled") == 2
        (position,) = (await desk.chartgen("get_positions"))["positions"]
        assert (position["symbol"], position["side"], position["quantity"]) == ("ETH/USD", "long", "1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"symbol": "???"}, "Invalid symbol"),
        ({"symbol": "ZZZZ"}, "Unknown symbol ZZZZ"),
        ({"symbol": "USD/JPY"}, "priced in JPY"),
        ({"symbol": "'; DROP TABLE orders; --"}, "Invalid symbol"),
        ({"side": "buyy"}, "side must be one of buy, sell, not 'buyy'; did you mean 'buy'?"),
        ({"side": "hold"}, "side must be one of buy, sell"),
        ({"type": "trailing"}, "type must be one of market, limit, stop, stop_limit"),
        ({"time_in_force": "ioc"}, "time_in_force must be one of gtc, day"),
        ({"quantity": 0}, "quantity must be more than 0"),
        ({"quantity": -1}, "quantity must be more than 0"),
        ({"quantity": "-0.5"}, "quantity must be more than 0"),
        ({"quantity": "1e-9"}, "quantity may have at most 8 decimal places"),
        ({"quantity": 1e15}, "quantity must be more than 0 and less than"),
        ({"quantity": "1e999999"}, "quantity must be a number"),
        ({"quantity": "many"}, "quantity must be a number"),
        ({"quantity": "1_000"}, "quantity must be a number"),
        ({"quantity": "１"}, "quantity must be a number"),
        ({"quantity": "NaN"}, "quantity must be a number"),
        ({"quantity": float("inf")}, "quantity must be a number"),
        ({"quantity": ""}, "quantity must be a number"),
        ({"quantity": True}, "quantity"),
        ({"quantity": None}, "quantity"),
        ({"price": 5}, "a market order takes no price"),
        ({"stop_price": 5}, "a market order takes no stop_price"),
        ({"type": "limit"}, "price is required for a limit order"),
        ({"type": "stop"}, "stop_price is required for a stop order"),
        ({"type": "stop_limit", "price": 90000}, "stop_price is required for a stop_limit order"),
        ({"type": "limit", "price": 0}, "price must be more than 0"),
        ({"type": "limit", "price": "84000.0000000000001"}, "price may have at most 12 decimal places"),
        ({"type": "limit", "price": 84000, "take_profit": 83000}, "the entry's price must be below take_profit"),
        ({"type": "limit", "price": 84000, "stop_loss": 85000}, "stop_loss must be below the entry's price"),
        ({"take_profit": 1000}, "take_profit must be above the last price"),
        ({"stop_loss": 1e6}, "stop_loss must be below the last price"),
        ({"side": "sell", "stop_loss": 1000}, "stop_loss must be above the last price"),
        ({"client_order_id": ""}, "client_order_id must be 1 to 128 printable characters"),
        ({"client_order_id": "two words"}, "client_order_id must be 1 to 128 printable characters"),
        ({"client_order_id": "x" * 129}, "client_order_id"),
        ({"client_order_id": "naïve"}, "client_order_id must be 1 to 128 printable characters"),
        ({"leverage": 10}, "leverage is not an argument of this tool"),
        ({"type": "limit", "price": 1000}, "OPENBELL_RISK_COLLAR"),
    ],
)
@awaited
async def test_a_wrong_order_says_what_is_wrong_and_is_not_placed(
    wrong_home: Path, changes: dict[str, Any], words: str
) -> None:
    async with bench(wrong_home, T1) as desk:
        said = await desk.no("place_order", **{**TRADING["place_order"], **changes})
        assert words in said
        assert await orders(desk, filter="open") == []


@pytest.fixture(scope="module")
def wrong_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wrong")


@awaited
async def test_a_missing_argument_is_named(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        for name in ("symbol", "side", "type", "quantity"):
            given = {key: value for key, value in TRADING["place_order"].items() if key != name}
            assert f"{name} is required" in await desk.no("place_order", **given)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (0.1, "0.1"),
        (100, "100"),
        (1e-8, "0.00000001"),
        (123456.789, "123456.789"),
        (0.30000000000000004 - 4e-17, "0.3"),
        ("0.12345678", "0.12345678"),
        ("123456789.12345678", "123456789.12345678"),
        ("1.50", "1.5"),
        ("1e3", "1000"),
        (" 7 ", "7"),
        ("999999999999999.99999999", "999999999999999.99999999"),
    ],
)
@awaited
async def test_a_quantity_is_exact_to_the_last_digit(tmp_path: Path, given: Any, kept: str) -> None:
    async with bench(tmp_path, T1, PAPER_CASH="1000000000000000", RISK_LEVERAGE="100", **FREE) as desk:
        price = "0.000000000123"
        await buy(desk, "SOL/USDT", given, type="limit", price=price, client_order_id="exact")
        (order,) = await orders(desk)
        assert (order["quantity"], order["price"]) == (kept, price)


@awaited
async def test_fills_fees_and_balance_are_exact(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        await buy(desk, "BTC/USD", "0.01234567")
    async with bench(tmp_path, T2) as desk:
        (order,) = await orders(desk)
        balance = await desk.chartgen("get_balance")
        paid = Decimal(order["average_price"]) * Decimal(order["filled_quantity"])
        assert Decimal(balance["cash"]) == Decimal(100_000) - paid - Decimal(order["fees"])
        mark = Decimal((await desk.chartgen("get_positions"))["positions"][0]["current_price"])
        worth = mark * Decimal("0.01234567")
        assert Decimal(balance["total_balance"]) == Decimal(balance["cash"]) + worth
        assert Decimal(balance["unrealized_pnl"]) == worth - paid
        assert Decimal(balance["margin_used"]) == worth
        assert Decimal(balance["available_balance"]) == Decimal(balance["total_balance"]) - worth
        assert (balance["fees"], balance["realized_pnl"]) == (order["fees"], "0")


@awaited
async def test_the_balance_is_an_answer(tmp_path: Path) -> None:
    """In the wild it was always an error."""
    async with bench(tmp_path, T1, PAPER_CASH="2500.50") as desk:
        assert (await desk.chartgen("get_balance"))["total_balance"] == "2500.5"


@awaited
async def test_orders_that_were_placed_while_the_clock_stood_still_are_listed_and_fill_in_their_order(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path, T1, **FREE) as desk:
        placed = [(await buy(desk, "BTC/USD", "0.1", client_order_id=f"n{number}"))["order_id"] for number in range(8)]
        assert [order["order_id"] for order in await orders(desk)] == placed[::-1]
        assert [order["order_id"] for order in await orders(desk, limit=3)] == placed[:-4:-1]
    async with bench(tmp_path, T2, PAPER_VOLUME_SHARE="0.05") as desk:
        found = {order["order_id"]: order for order in await orders(desk)}
        filled = [found[each]["updated_at"] for each in placed]
        assert filled == sorted(filled)
        assert filled[0] < filled[-1], "there was not enough for all at once"


# Once


@awaited
async def test_the_same_id_and_order_is_placed_once_however_often_and_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        placed = await asyncio.gather(*(buy(desk, client_order_id="once") for _ in range(10)))
        assert len({order["order_id"] for order in placed}) == 1
        written_otherwise = await buy(desk, "BTC-USD", "0.010", client_order_id="once")
        assert written_otherwise["order_id"] == placed[0]["order_id"]
        assert len(await orders(desk)) == 1
    async with bench(tmp_path, T2) as desk:
        again = await buy(desk, client_order_id="once")
        assert (again["order_id"], again["status"]) == (placed[0]["order_id"], "filled"), "as it stands now"
        (position,) = (await desk.chartgen("get_positions"))["positions"]
        assert position["quantity"] == "0.01"


def test_several_processes_place_it_once(tmp_path: Path) -> None:
    clients = [Client(tmp_path, command=[*COMMAND, "--trade"], AS_OF=T1, TIMEOUT="60") for _ in range(3)]
    try:
        for client in clients:
            client.initialize()
        order = {**TRADING["place_order"], "client_order_id": "shared"}
        for client in clients:
            for number in range(4):
                params = {"name": "place_order", "arguments": order}
                client.send({"jsonrpc": "2.0", "id": f"n{number}", "method": "tools/call", "params": params})
        placed = []
        for client in clients:
            answers: dict[Any, Any] = {}
            while len(answers) < 4:
                message = client.receive()
                answers[message.get("id")] = message
            placed += [answers[f"n{number}"]["result"]["structuredContent"]["order_id"] for number in range(4)]
        assert len(placed) == 12
        assert len(set(placed)) == 1
        found = clients[0].call("get_orders")["result"]["structuredContent"]["orders"]
        assert [each["order_id"] for each in found] == placed[:1]
    finally:
        for client in clients:
            client.__exit__()
    assert run(tmp_path, "verify").returncode == 0


@awaited
async def test_another_order_under_a_used_id_is_refused_naming_the_first(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        first = await buy(desk, client_order_id="mine")
        for changes in ({"quantity": 0.02}, {"side": "sell"}, {"symbol": "BTC/USDT"}, {"time_in_force": "day"}):
            said = await desk.no("place_order", **{**TRADING["place_order"], "client_order_id": "mine", **changes})
            assert first["order_id"] in said
            assert "use a new one" in said
        assert len(await orders(desk)) == 1


@awaited
async def test_an_id_that_was_rejected_is_rejected_again(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        order = {**TRADING["place_order"], "quantity": 50, "client_order_id": "large"}
        assert "refused by the risk gate" in await desk.no("place_order", **order)
        (rejected,) = await orders(desk)
        assert rejected["status"] == "rejected"
        assert rejected["reason"] in await desk.no("place_order", **order)
        assert await orders(desk, filter="open") == []
        assert len(await orders(desk)) == 1


@awaited
async def test_the_same_order_without_an_id_is_refused_for_ten_seconds_naming_the_first(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        now = 1_000_000.0
        desk.desk.trading.orders._received = lambda: now
        replies = await asyncio.gather(
            *(desk.reply("chartgen", "place_order", TRADING["place_order"]) for _ in range(5))
        )
        placed = [reply.payload["order_id"] for reply in replies if not reply.is_error]
        assert len(placed) == 1
        for reply in replies:
            assert not reply.is_error or (placed[0] in reply.payload["error"] and "client_order_id" in str(reply.text))
        now += 9.9
        assert placed[0] in await desk.no("place_order", **TRADING["place_order"])
        await buy(desk, quantity=0.011)
        now += 0.2
        assert (await buy(desk))["order_id"] != placed[0]


@awaited
async def test_no_more_orders_in_a_second_than_the_desk_lets_anybody_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_PER_SECOND == 100
    monkeypatch.setattr("openbell.desk.orders.service.MOST_PER_SECOND", 10)
    async with bench(tmp_path, T1) as desk:
        now = 1_000_000.0
        desk.desk.trading.orders._received = lambda: now
        for number in range(10):
            await buy(desk, quantity="0.00000001", client_order_id=f"n{number}")
        said = await desk.no("place_order", **TRADING["place_order"], client_order_id="n10")
        assert "more than 10 orders in a second" in said
        assert (await buy(desk, quantity="0.00000001", client_order_id="n7"))["client_order_id"] == "n7", "told again"
        assert len(await orders(desk)) == 10
        now += 1.0
        await buy(desk, client_order_id="n10")


@awaited
async def test_limits_hold_for_orders_that_come_at_once_from_two_desks(tmp_path: Path) -> None:
    order = {"symbol": "ETH/USD", "side": "buy", "type": "market", "quantity": 2}
    async with bench(tmp_path, T1) as one, bench(tmp_path, T1) as other:
        worth = 2 * await last_price(one, "ETH/USD")
        replies = await asyncio.gather(
            *(
                desk.reply("chartgen", "place_order", {**order, "client_order_id": f"n{number}-{index}"})
                for number in range(6)
                for index, desk in enumerate((one, other))
            )
        )
        assert sum(not reply.is_error for reply in replies) == int(25_000 / worth), "a quarter of equity a symbol"
        assert {reply.is_error for reply in replies} == {True, False}


# Whose


@awaited
async def test_nobody_sees_touches_or_uses_what_is_anothers(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        mine = await buy(desk, client_order_id="mine")
        length = await desk.entries()
        for tool, key in (("get_orders", "orders"), ("get_positions", "positions")):
            reply = await desk.reply("chartgen", tool, {}, OTHER)
            assert reply.payload[key] == []
        assert "no order" in await desk.refused("chartgen", "cancel_order", OTHER, order_id=mine["order_id"])
        assert await desk.entries() == length
        assert mine["order_id"].startswith("local-")
        # Under the same client_order_id another principal places an order of its own, on an account of its own.
        theirs = (
            await desk.reply("chartgen", "place_order", {**TRADING["place_order"], "client_order_id": "mine"}, OTHER)
        ).payload
        assert theirs["order_id"] != mine["order_id"]
        assert theirs["order_id"].startswith("other-")
        assert [each["order_id"] for each in await orders(desk)] == [mine["order_id"]]
        assert "no order" in await desk.no("cancel_order", order_id=theirs["order_id"])


# Cancelling and listing


@awaited
async def test_an_open_order_can_be_cancelled_once(tmp_path: Path) -> None:
    """In the wild that never succeeded."""
    async with bench(tmp_path, T1) as desk:
        placed = await buy(desk)
        cancelled = await desk.chartgen("cancel_order", order_id=placed["order_id"])
        assert (cancelled["order_id"], cancelled["status"]) == (placed["order_id"], "cancelled")
        assert "is cancelled already" in await desk.no("cancel_order", order_id=placed["order_id"])
    async with bench(tmp_path, T2) as desk:
        assert [order["status"] for order in await orders(desk)] == ["cancelled"]
        assert (await desk.chartgen("get_positions"))["positions"] == []


@awaited
async def test_what_cannot_be_cancelled_is_said_clearly(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        placed = await buy(desk)
    async with bench(tmp_path, T2) as desk:
        assert f"order {placed['order_id']} is filled already" == await desk.no(
            "cancel_order", order_id=placed["order_id"]
        )
        for unknown in ("local-0", "", "\u0000", "' OR 1=1 --", "x" * 200):
            assert "no order" in await desk.no("cancel_order", order_id=unknown)
        assert "order_id" in await desk.no("cancel_order", order_id="x" * 201)
        assert "order_id is required" in await desk.no("cancel_order")


@awaited
async def test_orders_are_listed_all_or_open_newest_first(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        await buy(desk, quantity=0.01)
        price = await last_price(desk, "BTC/USD")
    async with bench(tmp_path, T2) as desk:
        await buy(desk, quantity=0.02, type="limit", price=round(price * 0.96, 2))
        rejected = {**TRADING["place_order"], "quantity": 40}
        await desk.no("place_order", **rejected)
    async with bench(tmp_path, "2026-01-07T15:31:00Z") as desk:
        found = await orders(desk)
        assert found == await orders(desk, filter="all")
        assert {order["status"] for order in found} == {"filled", "open", "rejected"}
        times = [order["placed_at"] for order in found]
        assert times == sorted(times, reverse=True)
        assert [order["quantity"] for order in await orders(desk, filter="open")] == ["0.02"]
        assert await orders(desk, limit=1) == found[:1]
        assert "filter must be one of open, all" in await desk.no("get_orders", filter="closed")
        for bad in (0, 1001):
            assert "limit" in await desk.no("get_orders", limit=bad)
    async with bench_as_found(tmp_path, "2026-01-07T14:59:00Z") as desk:
        assert await orders(desk) == [], "nothing later is seen"


# Brackets and days


@pytest.mark.parametrize("side", ["buy", "sell"])
@awaited
async def test_a_bracket_is_entered_then_left_once(tmp_path: Path, side: str) -> None:
    sign = 1 if side == "buy" else -1
    symbol = "BTC/USD" if side == "buy" else "AAPL"  # spot crypto cannot be sold short
    async with bench(tmp_path, T1, RISK_SHORT="true") as desk:
        price = await last_price(desk, symbol)
        target, stop = round(price * (1 + 0.004 * sign), 2), round(price * (1 - 0.004 * sign), 2)
        entry = {"symbol": symbol, "side": side, "type": "market", "quantity": "0.05"}
        placed = await desk.chartgen("place_order", **entry, take_profit=target, stop_loss=stop)
        assert (placed["role"], placed["take_profit"], placed["stop_loss"]) == (
            "entry",
            f"{target:.10g}",
            f"{stop:.10g}",
        )
        exits = [order for order in await orders(desk, filter="open") if order["parent_id"] == placed["order_id"]]
        assert {(order["role"], order["status"], order["type"]) for order in exits} == {
            ("take_profit", "held", "limit"),
            ("stop_loss", "held", "stop"),
        }
        assert {order["side"] for order in exits} == {"sell" if side == "buy" else "buy"}
    async with bench(tmp_path, "2026-01-07T15:01:00Z") as desk:
        by_role = {order["role"]: order["status"] for order in await orders(desk)}
        assert by_role == {"entry": "filled", "take_profit": "open", "stop_loss": "open"}
        (position,) = (await desk.chartgen("get_positions"))["positions"]
        assert position["side"] == ("long" if side == "buy" else "short")
    async with bench(tmp_path, "2026-01-08T15:00:00Z") as desk:
        by_role = {order["role"]: order for order in await orders(desk)}
        ended = sorted(by_role[role]["status"] for role in ("take_profit", "stop_loss"))
        assert ended == ["cancelled", "filled"]
        assert (await desk.chartgen("get_positions"))["positions"] == []
        balance = await desk.chartgen("get_balance")
        gained = Decimal(balance["realized_pnl"])
        assert (gained > 0) == (by_role["take_profit"]["status"] == "filled")
        assert Decimal(balance["total_balance"]) == Decimal(100_000) + gained - Decimal(balance["fees"])


@awaited
async def test_cancelling_an_entry_ends_its_exits(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        placed = await buy(desk, take_profit=100_000, stop_loss=60_000)
        await desk.chartgen("cancel_order", order_id=placed["order_id"])
        assert await orders(desk, filter="open") == []
        assert {order["status"] for order in await orders(desk)} == {"cancelled"}


@pytest.mark.parametrize(
    ("symbol", "before", "after"),
    [
        ("BTC/USD", "2026-01-07T23:59:00Z", "2026-01-08T00:00:00Z"),
        ("AAPL", "2026-01-07T20:59:00Z", "2026-01-07T21:00:00Z"),
    ],
)
@awaited
async def test_an_order_for_the_day_ends_with_its_market(tmp_path: Path, symbol: str, before: str, after: str) -> None:
    async with bench(tmp_path, T1, RISK_COLLAR="0") as desk:
        price = await last_price(desk, symbol)
        await buy(desk, symbol, "0.01", type="limit", price=round(price / 2, 2), time_in_force="day")
        await buy(desk, symbol, "0.02", type="limit", price=round(price / 2, 2))
    for moment, expected in ((before, ["open", "open"]), (after, ["expired", "open"])):
        async with bench(tmp_path, moment) as desk:
            found = sorted(await orders(desk), key=lambda order: str(order["quantity"]))
            assert [order["status"] for order in found] == expected
            assert (found[0]["reason"] == "its day is over") == (expected[0] == "expired")


# The kill switch


def test_a_halt_stops_opening_for_every_server_until_the_operator_resumes(tmp_path: Path) -> None:
    def said(client: Client, tool: str, **arguments: Any) -> str:
        return str(client.call(tool, arguments)["result"]["content"][0]["text"])

    @awaited
    async def prepare() -> None:
        async with bench(tmp_path, T1) as desk:
            await buy(desk, "ETH/USD", 1)

    prepare()
    sell = {"symbol": "ETH/USD", "side": "sell", "type": "market"}
    with Client(tmp_path, command=[*COMMAND, "--trade"], AS_OF=T2, TIMEOUT="60") as client:
        client.initialize()
        resting = json.loads(said(client, "place_order", **TRADING["place_order"]))
        done = run(tmp_path, "halt", "--reason", "the news", AS_OF=T2)
        assert done.returncode == 0, done.stderr
        assert "until openbell resume" in done.stdout
        refused = said(client, "place_order", **{**TRADING["place_order"], "quantity": 0.02})
        assert "trading is halted: the news" in refused

        orders = json.loads(said(client, "get_orders"))["orders"]
        (first,) = [order for order in orders if order["order_id"] == resting["order_id"]]
        assert first["status"] == "open", "the switch is the present's: what rests in a scenario stays"
        assert json.loads(said(client, "place_order", **sell, quantity=0.4))["status"] == "open", "reducing passes"
        assert "trading is halted" in said(client, "place_order", **sell, quantity=1.1), "more than there is to reduce"
    with Client(tmp_path, command=[*COMMAND, "--trade"], AS_OF=T2, TIMEOUT="60") as client:
        client.initialize()
        assert "trading is halted: the news" in said(
            client, "place_order", **{**TRADING["place_order"], "quantity": 0.03}
        )
        names = {tool["name"] for tool in client.request("tools/list")["result"]["tools"]}
        assert not [name for name in names if re.search("halt|resume|switch", name)], "no caller lifts it"
        assert "resumed" in run(tmp_path, "resume", AS_OF=T2).stdout
        assert (
            json.loads(said(client, "place_order", **{**TRADING["place_order"], "quantity": 0.04}))["status"] == "open"
        )


@awaited
async def test_a_halt_leaves_exits_and_reducing_orders_at_work(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:
        await buy(desk, "BTC/USD", "0.05", take_profit=100_000, stop_loss=60_000)
    async with bench(tmp_path, T2) as desk:
        reducing = await desk.chartgen("place_order", symbol="BTC/USD", side="sell", type="market", quantity="0.02")
        opening = await buy(desk, "ETH/USD", 1)
        trading = desk.desk.trading
        await trading.halts.halt("")
        assert await trading.halts.enforce(trading.venue) == 1
        status = {order["order_id"]: order["status"] for order in await orders(desk)}
        assert status[opening["order_id"]] == "cancelled"
        assert status[reducing["order_id"]] == "open"
        assert sorted(status.values()) == ["cancelled", "filled", "open", "open", "open"]
    async with bench(tmp_path, T3) as desk:
        (position,) = (await desk.chartgen("get_positions"))["positions"]
        assert (position["symbol"], position["quantity"]) == ("BTC/USD", "0.03")


# Real money


SERVE, CALL = ("mcp", "chartgen", "--trade"), ("call", "chartgen", "get_balance", "--trade")


@pytest.mark.parametrize(
    ("command", "settings", "words"),
    [
        (SERVE, {}, "the feed is sim"),
        (CALL, {"FEED": "replay", "AS_OF": T1}, "the feed is replay"),
        (SERVE, {"FEED": "alpaca", "AS_OF": T1}, "--as-of"),
        (CALL, {"FEED": "none", "AS_OF": T1}, "--as-of"),
        (SERVE, {"FEED": "alpaca"}, "ALPACA_API_KEY"),
        (CALL, {"FEED": "none"}, "ALPACA_API_KEY"),
    ],
)
def test_a_broker_without_the_real_market_or_its_keys_is_refused_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], settings: dict[str, str], words: str
) -> None:
    for name in ("ALPACA_API_KEY", "ALPACA_SECRET_KEY"):
        monkeypatch.delenv(name, raising=False)
    done = run(tmp_path, *command, BROKER="alpaca", **settings)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("openbell: ")
    assert words in line


def test_no_secret_is_ever_written_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "ALPACA_API_KEY": "PKsecretkeyid",
        "ALPACA_SECRET_KEY": "verysecretword",
        "CHART_IMG_API_KEY": "imgsecret",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ALPACA_TRADING_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ALPACA_DATA_URL", "http://127.0.0.1:1")
    given = {
        "ACCOUNT_TOKEN": "ob_secrettoken",
        "DATABASE_URL": "postgresql://me:databasesecret@127.0.0.1:1/desk",
        "INFLUX_TOKEN": "influxsecret",
        "LOG_LEVEL": "debug",
        "TIMEOUT": "5",
    }
    hidden = [*secrets.values(), "ob_secrettoken", "databasesecret", "influxsecret"]
    order = json.dumps(TRADING["place_order"])
    place, balance = ("call", "chartgen", "place_order", order, "--trade"), ("call", "portfolio", "get_balance")
    at_broker, unknown = {"BROKER": "alpaca", "FEED": "none"}, {"DATABASE_URL": "", "ACCOUNT": "x"}
    for words, settings in (
        (place, {"AS_OF": T1}),
        (("verify",), {"AS_OF": T1}),
        (place, at_broker),
        (balance, {**at_broker, "DATABASE_URL": ""}),
        (place, unknown),
    ):
        done = run(tmp_path, *words, **{**given, **settings})
        assert done.returncode == 1, done.stderr
        assert "DEBUG" in done.stderr
        for secret in hidden:
            assert secret not in done.stdout + done.stderr, (settings, words)
