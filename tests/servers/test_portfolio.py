"""The portfolio contract: over real pipes on SQLite and on a real PostgreSQL, its numbers against a sum of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from openbell.market.clock import parse_time
from tests.client import OPENBELL, Client, environment, run
from tests.desk.scripted import ScriptedFeed
from tests.servers.desks import (
    OTHER,
    Bench,
    ask,
    awaited,
    bench,
    bench_as_found,
    check_against_contract,
    data,
    error,
    fresh_database,
    metadata,
)

CONTRACT = json.loads((Path(__file__).parent / "contracts" / "portfolio.json").read_text())
COMMAND = [*OPENBELL, "mcp", "portfolio"]
TOOLS: dict[str, dict[str, Any]] = {
    "get_positions": {},
    "get_balance": {},
    "validate_trade": {"symbol": "BTC/USD", "side": "BUY", "size": 0.01},
}
PLACED, SEEN = "2026-01-07T15:00:00Z", "2026-01-07T15:40:00Z"
COSTS = {"PAPER_FEE": "0.002", "PAPER_SLIPPAGE": "0.0015", "PAPER_VOLUME_SHARE": "0.03", "RISK_SHORT": "true"}
STEP, FEE, SLIPPAGE, SHARE = Decimal("1e-8"), Decimal("0.002"), Decimal("0.0015"), Decimal("0.03")
ORDERS = [("BTC/USD", "buy", "0.07654321"), ("ETH/USDT", "buy", "1.5"), ("AAPL", "buy", "30"), ("MSFT", "sell", "7")]
SQL = "'; DROP TABLE orders; --"


@awaited
async def trade(home: Path, settings: dict[str, str], candles: dict[str, list[dict[str, Any]]]) -> None:
    """Orders under a clock that stands, filled by one that stands later."""
    async with bench(home, PLACED, **settings) as desk:
        for symbol, side, quantity in ORDERS:
            placed = await desk.chartgen("place_order", symbol=symbol, side=side, type="market", quantity=quantity)
            assert placed["status"] == "open", "nothing trades while the clock stands"
    async with bench(home, SEEN, **settings) as desk:
        for order in (await desk.chartgen("get_orders"))["orders"]:
            assert order["status"] == "filled"
        for symbol, _, _ in ORDERS:
            page = await desk.ask("market-data", "get_candles", symbol=symbol, timeframe="1m", limit=100)
            candles[symbol] = page["items"]


@dataclass
class Traded:
    """A server that shows what was traded, and the minutes in which it was."""

    client: Client
    store: str
    candles: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def traded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traded]:
    settings = dict(COSTS)
    if request.param == "postgresql":
        settings["DATABASE_URL"] = fresh_database(request.getfixturevalue("postgres"))
    home = tmp_path_factory.mktemp("portfolio")
    candles: dict[str, list[dict[str, Any]]] = {}
    trade(home, settings, candles)
    with Client(home, command=COMMAND, AS_OF=SEEN, SCENARIO="as-of", TIMEOUT="60", **settings) as made:
        made.initialize()
        yield Traded(made, request.param, candles)


@dataclass
class Expected:
    """What one order must have come to."""

    quantity: Decimal
    cost: Decimal
    fees: Decimal
    mark: Decimal
    opened: str


def expected(candles: list[dict[str, Any]], side: str, quantity: str, stock: bool) -> Expected:
    """The fills of a market order, worked out from the minutes alone: at each open, a share of the volume at a time."""
    sign, left = (1 if side == "buy" else -1), Decimal(quantity)
    cost = fees = Decimal(0)
    opened = ""
    for candle in candles:
        if candle["timestamp"] < "2026-01-07T15:00:00" or not left:
            continue
        had = (Decimal(repr(candle["volume"])) * SHARE).quantize(Decimal(1) if stock else STEP, ROUND_FLOOR)
        part = min(left, had)
        price = Decimal(repr(candle["open"])) * (1 + SLIPPAGE * sign)
        price = price.quantize(Decimal("1e-12"), ROUND_CEILING if sign > 0 else ROUND_FLOOR)
        fees += (part * price * FEE).quantize(STEP, ROUND_CEILING)
        cost += part * price
        left -= part
        opened = opened or (candle["timestamp"] if part else "")
    assert not left
    return Expected(Decimal(quantity) * sign, cost * sign, fees, Decimal(repr(candles[-1]["close"])), opened)


def all_expected(candles: dict[str, list[dict[str, Any]]]) -> dict[str, Expected]:
    return {
        symbol: expected(candles[symbol], side, quantity, stock="/" not in symbol) for symbol, side, quantity in ORDERS
    }


# The contract


def test_names_schemas_enums_limits_and_defaults_are_the_contracts(traded: Traded) -> None:
    check_against_contract(traded.client, CONTRACT)


def test_the_server_calls_itself_as_in_the_contract(traded: Traded) -> None:
    assert traded.client.initialize()["serverInfo"]["name"] == "portfolio-mcp"


def test_results_fit_the_contract_and_say_where_they_come_from(traded: Traded) -> None:
    returns = {tool["name"]: tool["returns"] for tool in CONTRACT}
    schemas = {tool["name"]: tool["outputSchema"] for tool in traded.client.request("tools/list")["result"]["tools"]}
    for name, arguments in TOOLS.items():
        answer = ask(traded.client, name, **arguments)
        payload = answer["structuredContent"]
        jsonschema.validate(payload, schemas[name])
        jsonschema.validate(payload["data"], returns[name])
        more = {"session"} if name == "validate_trade" else set()
        assert set(payload["data"]) >= set(returns[name]["properties"]) | {"data_source", "as_of"} | more
        truth = answer["_meta"]["openbell/truth"]
        assert (truth["account"], truth["data"]) == ("paper", "simulated")
    item = data(traded.client, "get_positions")["items"][0]
    contract = set(returns["get_positions"]["properties"]["items"]["items"]["properties"])
    assert set(item) >= contract | {"price_time", "session", "recorded_at"}


def test_nothing_is_ever_cached(traded: Traded) -> None:
    for name, arguments in TOOLS.items():
        for _ in range(2):
            said = metadata(traded.client, name, **arguments)
            assert (said["cached"], said["cache_ttl_remaining"], said["source"]) == (False, None, traded.store)


# The numbers


def test_positions_are_what_the_bars_fees_and_slippage_make_them(traded: Traded) -> None:
    items = {item["symbol"]: item for item in data(traded.client, "get_positions")["items"]}
    wanted = all_expected(traded.candles)
    assert set(items) == set(wanted)
    for symbol, own in wanted.items():
        item = items[symbol]
        assert item["side"] == ("LONG" if own.quantity > 0 else "SHORT")
        assert item["size"] == float(abs(own.quantity))
        assert item["entry_price"] == float(round(own.cost / own.quantity, 10))
        assert item["current_price"] == float(own.mark)
        assert item["unrealized_pnl"] == float(own.quantity * own.mark - own.cost)
        assert parse_time(item["opened_at"]) == parse_time(own.opened)
        assert parse_time(item["recorded_at"]) == parse_time(own.opened) + 60


def test_the_balance_is_their_sum(traded: Traded) -> None:
    wanted = all_expected(traded.candles).values()
    cash = Decimal(100_000) - sum(own.cost + own.fees for own in wanted)
    equity = cash + sum(own.quantity * own.mark for own in wanted)
    exposure = sum(abs(own.quantity) * own.mark for own in wanted)
    balance = data(traded.client, "get_balance")
    assert balance["total_balance"] == float(equity)
    assert balance["margin_used"] == float(exposure)
    assert balance["available_balance"] == float(equity - exposure)
    assert balance["unrealized_pnl"] == float(sum(own.quantity * own.mark - own.cost for own in wanted))


def test_one_symbol_is_found_by_any_spelling(traded: Traded) -> None:
    for spelling in ("ETH/USDT", "ethusdt", "BINANCE:ETHUSDT", "ETH_USDT"):
        found = data(traded.client, "get_positions", symbol=spelling)
        assert [item["symbol"] for item in found["items"]] == ["ETH/USDT"]
        assert found["pagination"] == {"offset": 0, "limit": 50, "total": 1, "has_more": False}
    assert data(traded.client, "get_positions", symbol="ETH/USD")["items"] == [], "another instrument"


def test_pages_put_together_are_the_whole(traded: Traded) -> None:
    whole = data(traded.client, "get_positions", limit=200)["items"]
    opened = [item["opened_at"] for item in whole]
    assert opened == sorted(opened, reverse=True)
    for limit in (1, 3):
        parts: list[Any] = []
        for offset in range(0, 6, limit):
            page = data(traded.client, "get_positions", limit=limit, offset=offset)
            parts += page["items"]
            wanted = {"offset": offset, "limit": limit, "total": 4, "has_more": offset + limit < 4}
            assert page["pagination"] == wanted
        assert parts == whole


@awaited
async def test_what_rests_is_held_back_from_what_is_available_and_the_past_shows_what_was_then(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as desk:
        price = (await desk.ask("market-data", "get_current_price", symbol="BTC/USD"))["price"]
        limit = round(price * 0.97, 2)
        await desk.chartgen(
            "place_order", symbol="BTC/USD", side="buy", type="limit", quantity=0.1, price=limit, client_order_id="a"
        )
        await desk.chartgen("place_order", symbol="ETH/USD", side="buy", type="market", quantity=1)
        eth = (await desk.ask("market-data", "get_current_price", symbol="ETH/USD"))["price"]
        balance = await desk.ask("portfolio", "get_balance")
        assert balance["total_balance"] == 100_000
        # With the fees and the slippage of the orders, which the risk gate reserves too.
        reserved = (0.1 * limit + eth) * 1.001 * 1.0005
        assert balance["available_balance"] == pytest.approx(100_000 - reserved, abs=1e-6)
        assert (balance["margin_used"], balance["unrealized_pnl"]) == (0, 0)
    async with bench(tmp_path, SEEN) as desk:
        assert len((await desk.ask("portfolio", "get_positions"))["items"]) == 1
    async with bench(tmp_path, PLACED) as desk:
        assert (await desk.ask("portfolio", "get_positions"))["items"] == []
        assert (await desk.ask("portfolio", "get_balance"))["total_balance"] == 100_000


@awaited
async def test_what_another_process_does_is_seen_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as one, bench(tmp_path, PLACED) as other:
        before = await one.ask("portfolio", "get_balance")
        await other.chartgen("place_order", symbol="BTC/USD", side="buy", type="market", quantity="0.05")
        after = await one.ask("portfolio", "get_balance")
        assert after["available_balance"] < before["available_balance"]


# Validating


async def judged(desk: Bench, symbol: str, side: str, size: float, **more: Any) -> dict[str, Any]:
    verdict: dict[str, Any] = await desk.ask("portfolio", "validate_trade", symbol=symbol, side=side, size=size, **more)
    return verdict


@awaited
async def test_a_trade_that_passes_says_how_large_it_may_be_and_how_near_the_limit_it_is(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as desk:
        price = (await desk.ask("market-data", "get_current_price", symbol="BTC/USD"))["price"]
        verdict = await judged(desk, "BTC/USD", "BUY", 0.05)
        largest = (Decimal(10_000) / Decimal(repr(price))).quantize(STEP, ROUND_FLOOR)
        assert verdict["valid"] is True
        assert verdict["reason"] == ""
        assert verdict["max_size"] == float(largest)
        assert verdict["risk_score"] == pytest.approx(0.05 * price / 10_000, rel=1e-12)
        assert (await judged(desk, "BTC/USD", "BUY", float(largest)))["risk_score"] == pytest.approx(1, abs=1e-6)
        beyond = await judged(desk, "BTC/USD", "BUY", float(largest + STEP))
        assert (beyond["valid"], beyond["max_size"], beyond["risk_score"]) == (False, float(largest), 1)


@pytest.mark.parametrize(("leverage", "limit"), [("1", None), ("1", 0.98), ("2.5", 1.03)])
@pytest.mark.parametrize("rule", ["order", "symbol", "balance"])
@pytest.mark.parametrize("side", ["BUY", "SELL"])
@awaited
async def test_exactly_the_largest_size_may_be_placed_and_not_a_hundred_millionth_more(
    tmp_path: Path, leverage: str, rule: str, side: str, limit: float | None
) -> None:
    shares = {
        "order": {"RISK_ORDER_SHARE": "0.0712345", "RISK_SYMBOL_SHARE": "0"},
        "symbol": {"RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0.1234567"},
        "balance": {"RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0"},
    }[rule]
    symbol = "MSFT"  # which can be sold short
    async with bench(tmp_path, PLACED, RISK_LEVERAGE=leverage, RISK_SHORT="true", **shares) as desk:
        await desk.chartgen("place_order", symbol=symbol, side="buy", type="market", quantity="0.31415926")
        last = (await desk.ask("market-data", "get_current_price", symbol=symbol))["price"]
        price = {} if limit is None else {"price": round(last * limit, 2)}
        largest = (await judged(desk, symbol, side, 0.00000001, **price))["max_size"]
        if rule == "balance":
            refused = await desk.refused("portfolio", "validate_trade", symbol=symbol, side=side, size=1e9, **price)
            assert (refused["code"], refused["details"]["max_size"]) == ("INSUFFICIENT_BALANCE", largest)
        assert largest > 0
        order = {"symbol": symbol, "side": side.lower(), "type": "limit" if price else "market", **price}
        words = await desk.no("place_order", **order, quantity=str(Decimal(repr(largest)) + STEP))
        assert f"at most {Decimal(repr(largest)):f} would pass" in words
        assert (await judged(desk, symbol, side, largest, **price))["valid"] is True
        placed = await desk.chartgen("place_order", **order, quantity=largest)
        assert placed["status"] == "open"


@pytest.mark.parametrize(
    ("settings", "asked", "words"),
    [
        ({"RISK_ORDER_SHARE": "0.01"}, {}, "OPENBELL_RISK_ORDER_SHARE"),
        ({"RISK_SYMBOL_SHARE": "0.01"}, {}, "OPENBELL_RISK_SYMBOL_SHARE"),
        ({"RISK_ORDER_NOTIONAL": "500"}, {}, "OPENBELL_RISK_ORDER_NOTIONAL"),
        ({"RISK_SYMBOL_NOTIONAL": "500"}, {}, "OPENBELL_RISK_SYMBOL_NOTIONAL"),
        ({"RISK_POSITIONS": "1"}, {}, "OPENBELL_RISK_POSITIONS"),
        ({"RISK_COLLAR": "0.01"}, {"price": 0.98}, "OPENBELL_RISK_COLLAR"),
        ({"RISK_COLLAR": "0.01"}, {"price": 1.02}, "OPENBELL_RISK_COLLAR"),
        ({"RISK_SYMBOLS": "ETH/USD, aapl"}, {}, "OPENBELL_RISK_SYMBOLS"),
        ({"STALE_AFTER": "0"}, {}, "stale"),
        ({"RISK_DAILY_LOSS": "0.0000001"}, {}, "OPENBELL_RISK_DAILY_LOSS"),
    ],
)
@awaited
async def test_every_rule_objects_in_its_own_words_and_lets_reducing_pass(
    tmp_path: Path, settings: dict[str, str], asked: dict[str, float], words: str
) -> None:
    async with bench(tmp_path, PLACED) as desk:
        await desk.chartgen("place_order", symbol="ETH/USD", side="buy", type="market", quantity=1)
    later = "2026-01-07T15:40:30Z"
    async with bench(tmp_path, later, **settings) as desk:
        (candle,) = (await desk.ask("market-data", "get_candles", symbol="BTC/USD", timeframe="1m", limit=1))["items"]
        price = candle["close"]
        more = {"price": round(price * asked["price"], 2)} if asked else {}
        verdict = await judged(desk, "BTC/USD", "BUY", 0.05, **more)
        assert (verdict["valid"], verdict["risk_score"]) == (False, 1)
        assert words in verdict["reason"]
        assert words in await desk.no(
            "place_order", symbol="BTC/USD", side="buy", type="limit" if more else "market", quantity=0.05, **more
        )
        reducing = await judged(desk, "ETH/USD", "SELL", 1)
        assert (reducing["valid"], reducing["risk_score"]) == (True, 0)
    async with bench(tmp_path, later) as desk:
        assert (await judged(desk, "BTC/USD", "BUY", 0.05, **more))["valid"] is True


@awaited
async def test_a_limit_of_nothing_is_no_limit(tmp_path: Path) -> None:
    names = ("ORDER_SHARE", "SYMBOL_SHARE", "ORDER_NOTIONAL", "SYMBOL_NOTIONAL", "POSITIONS", "DAILY_LOSS", "COLLAR")
    async with bench(tmp_path, PLACED, **{f"RISK_{name}": "0" for name in names}) as desk:
        assert (await judged(desk, "BTC/USD", "BUY", 1, price=99_000))["valid"] is True


@awaited
async def test_what_the_account_cannot_pay_says_how_much_it_can(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED, RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0") as desk:
        price = Decimal(repr((await desk.ask("market-data", "get_current_price", symbol="BTC/USD"))["price"]))
        refused = await desk.refused("portfolio", "validate_trade", symbol="BTC/USD", side="BUY", size=50)
        assert refused["code"] == "INSUFFICIENT_BALANCE"
        most = (Decimal(100_000) / (price * Decimal("1.001") * Decimal("1.0005"))).quantize(STEP, ROUND_FLOOR)
        details = refused["details"]
        assert (details["rule"], details["max_size"]) == ("balance", float(most))
        assert (details["limit"], details["setting"]) == ("100,000.00 USD", "OPENBELL_RISK_LEVERAGE")
        need = price * 50 * Decimal("1.001") * Decimal("1.0005")
        assert details["value"] == f"{need:,.2f} USD"
        assert f"it needs {need:,.2f} USD, and 100,000.00 USD is available" in refused["message"]
        assert (await judged(desk, "BTC/USD", "BUY", float(most)))["valid"] is True


@awaited
async def test_the_largest_size_may_turn_a_position_around(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as desk:
        await desk.chartgen("place_order", symbol="MSFT", side="buy", type="market", quantity=3)
    async with bench(tmp_path, SEEN) as desk:
        assert (await judged(desk, "MSFT", "SELL", 3.1))["max_size"] == 3, "unless that opens a short"
    async with bench(tmp_path, SEEN, RISK_SHORT="true") as desk:
        assert (await judged(desk, "MSFT", "SELL", 3))["risk_score"] == 0, "it only reduces"
        largest = (await judged(desk, "MSFT", "SELL", 3.1))["max_size"]
        assert largest > 3
        order = {"symbol": "MSFT", "side": "sell", "type": "market"}
        assert "at most" in await desk.no("place_order", **order, quantity=str(Decimal(repr(largest)) + STEP))
        await desk.chartgen("place_order", **order, quantity=largest)
    async with bench(tmp_path, "2026-01-07T16:40:00Z") as desk:
        (position,) = (await desk.ask("portfolio", "get_positions"))["items"]
        assert (position["side"], position["size"]) == ("SHORT", pytest.approx(largest - 3, abs=1e-9))
        assert position["opened_at"] > "2026-01-07T15:40:00", "it is a new one"


@awaited
async def test_trading_that_is_halted_validates_reducing_only(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as desk:
        await desk.chartgen("place_order", symbol="ETH/USD", side="buy", type="market", quantity=1)
    async with bench(tmp_path, SEEN) as desk:
        await desk.desk.trading.halts.halt("the news")
        verdict = await judged(desk, "ETH/USD", "BUY", 1)
        assert verdict["valid"] is False
        assert "halted: the news" in verdict["reason"]
        assert (await judged(desk, "ETH/USD", "SELL", 1))["valid"] is True
        assert (await judged(desk, "ETH/USD", "SELL", 1.5))["max_size"] == 1


@awaited
async def test_validating_changes_nothing(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as desk:
        await judged(desk, "BTC/USD", "BUY", 0.01)
        await desk.refused("portfolio", "validate_trade", symbol="BTC/USD", side="BUY", size=-1)
        assert await desk.entries() == 0
        await desk.chartgen("place_order", symbol="ETH/USD", side="buy", type="market", quantity=1)
        length, balance = await desk.entries(), await desk.ask("portfolio", "get_balance")
        for side in ("BUY", "SELL"):
            for size in (0.01, 1):
                await judged(desk, "BTC/USD", side, size)
        assert (await desk.entries(), await desk.ask("portfolio", "get_balance")) == (length, balance)


# Errors


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("get_positions", {"symbol": "???"}, "INVALID_SYMBOL"),
        ("get_positions", {"symbol": ""}, "INVALID_SYMBOL"),
        ("get_positions", {"symbol": SQL}, "INVALID_SYMBOL"),
        ("get_positions", {"symbol": "A\u0000"}, "INVALID_SYMBOL"),
        ("get_positions", {"limit": 201}, "INVALID_PARAMETER"),
        ("get_positions", {"limit": 0}, "INVALID_PARAMETER"),
        ("get_positions", {"offset": -1}, "INVALID_PARAMETER"),
        ("get_positions", {"limit": 2.5}, "INVALID_PARAMETER"),
        ("get_positions", {"force_refresh": True}, "INVALID_PARAMETER"),
        ("get_balance", {"account": "other"}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "???", "side": "BUY", "size": 1}, "INVALID_SYMBOL"),
        ("validate_trade", {"symbol": "ZZZZ", "side": "BUY", "size": 1}, "INVALID_SYMBOL"),
        ("validate_trade", {"symbol": "USD/JPY", "side": "BUY", "size": 1}, "INVALID_SYMBOL"),
        ("validate_trade", {"symbol": SQL, "side": "BUY", "size": 1}, "INVALID_SYMBOL"),
        ("validate_trade", {"symbol": "AAPL", "side": "HOLD", "size": 1}, "INVALID_SIDE"),
        ("validate_trade", {"symbol": "AAPL", "side": SQL, "size": 1}, "INVALID_SIDE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 0}, "INVALID_SIZE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": -1}, "INVALID_SIZE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1e-9}, "INVALID_SIZE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1e300}, "INVALID_SIZE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": float("nan")}, "INVALID_SIZE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": float("inf")}, "INVALID_SIZE"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": "1"}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": True}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1, "price": 0}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1, "price": -5}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1, "price": float("inf")}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY"}, "INVALID_PARAMETER"),
        ("validate_trade", {"symbol": "AAPL", "side": "BUY", "size": 1, "nonsense": 1}, "INVALID_PARAMETER"),
    ],
)
def test_every_mistake_has_its_code(traded: Traded, tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert error(traded.client, tool, **arguments)["code"] == expected


@awaited
async def test_an_account_that_is_not_there_is_named_with_what_makes_it(tmp_path: Path) -> None:
    async with bench(tmp_path, ACCOUNT="savings") as desk:
        for tool, arguments in TOOLS.items():
            refused = await desk.refused("portfolio", tool, **arguments)
            assert (refused["code"], refused["details"]) == ("ACCOUNT_NOT_FOUND", {"account": "savings"})
            assert "openbell account add savings" in refused["message"]


@awaited
async def test_anothers_account_is_nobodys_business(tmp_path: Path) -> None:
    async with bench(tmp_path, PLACED) as desk:
        await desk.chartgen("place_order", symbol="BTC/USD", side="buy", type="market", quantity="0.01")
        mine = await desk.ask("portfolio", "get_balance")
        theirs = (await desk.reply("portfolio", "get_balance", {}, OTHER)).payload["data"]
        assert theirs["total_balance"] == theirs["available_balance"] == 100_000
        assert mine["available_balance"] != theirs["available_balance"], "what rests ties up money of one account only"
        assert (await desk.reply("portfolio", "get_positions", {}, OTHER)).payload["data"]["items"] == []


@awaited
async def test_a_guarded_account_wants_its_token(tmp_path: Path) -> None:
    async with bench(tmp_path) as desk:
        token = await desk.desk.trading.accounts.add("guarded", "paper", Decimal(5000), with_token=True)
        assert token
    for given, code in (("", "UNAUTHORIZED"), ("ob_guess", "UNAUTHORIZED"), (token, None)):
        async with bench(tmp_path, ACCOUNT="guarded", ACCOUNT_TOKEN=given) as desk:
            for tool, arguments in TOOLS.items():
                reply = await desk.reply("portfolio", tool, arguments)
                assert (reply.payload["error"]["code"] if reply.is_error else None) == code
                assert token not in str(reply.payload)
            if code is None:
                assert (await desk.ask("portfolio", "get_balance"))["total_balance"] == 5000


@awaited
async def test_a_database_that_fails_is_a_database_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    (broken / "simulated").mkdir(parents=True)
    (broken / "simulated" / "records.sqlite").write_bytes(b"no database at all, but long enough to be one" * 100)
    for home, settings in (
        (broken, {}),
        (tmp_path / "gone", {"DATABASE_URL": "postgresql://me:hidden-word@127.0.0.1:1/desk"}),
    ):
        async with bench_as_found(home, **settings) as desk:
            for tool, arguments in TOOLS.items():
                refused = await desk.refused("portfolio", tool, **arguments)
                assert refused["code"] == "DATABASE_ERROR"
                assert "hidden-word" not in json.dumps(refused)


@awaited
async def test_an_answer_that_takes_too_long_is_a_time_out(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, PLACED, TIMEOUT="0.00001") as desk:
        for tool, arguments in TOOLS.items():
            assert (await desk.refused("portfolio", tool, **arguments))["code"] == "TIMEOUT"


@awaited
async def test_without_a_price_nothing_is_valid(tmp_path: Path) -> None:
    async with bench_as_found(tmp_path, PLACED, FEED="none") as desk:
        feed = ScriptedFeed()
        feed.down = True
        desk.desk.__dict__["feed"] = feed
        verdict = await judged(desk, "BTC/USD", "BUY", 1)
        assert verdict.pop("data_source") == "Imported bars"
        assert (verdict.pop("session"), verdict.pop("as_of")) == ("regular", PLACED.replace("Z", "+00:00"))
        unknown = dict.fromkeys(("price", "trade_value", "costs", "equity_pct", "position_after"))
        refused = {"valid": False, "reason": "the vendor does not answer", "max_size": 0, "risk_score": 1}
        assert verdict == refused | unknown | {"rule": "no_price"}
        assert (await desk.ask("portfolio", "get_balance"))["total_balance"] == 100_000


def test_the_command_line_prints_the_same_object(tmp_path: Path) -> None:
    done = run(tmp_path, "call", "portfolio", "get_balance", AS_OF=PLACED)
    assert done.returncode == 0
    assert done.stderr.startswith("truth: data=simulated account=paper ")
    assert len(done.stderr.splitlines()) == 1
    assert json.loads(done.stdout)["data"]["total_balance"] == 100_000
    bad = run(tmp_path, "call", "portfolio", "get_positions", '{"symbol": "???"}', AS_OF=PLACED)
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["error"]["code"] == "INVALID_SYMBOL"
    assert "OPENBELL_TRADE" not in environment(tmp_path), "looking needs no --trade"
