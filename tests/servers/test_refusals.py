"""A refused order names the rule, its limit, the value that it would reach and the setting, in every tool alike."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.client import run
from tests.servers.desks import Bench, awaited, bench

AT = "2026-01-07T15:00:00Z"


async def both(desk: Bench, symbol: str, side: str, size: float, price: float | None = None) -> tuple[str, Any]:
    """The error of place_order and the verdict of validate_trade, about the same trade."""
    more = {} if price is None else {"price": price}
    kind = "market" if price is None else "limit"
    said = await desk.no("place_order", symbol=symbol, side=side, type=kind, quantity=size, **more)
    reply = await desk.reply("portfolio", "validate_trade", {"symbol": symbol, "side": side, "size": size, **more})
    if reply.is_error:
        return said, {"reason": reply.payload["error"]["message"], **reply.payload["error"]["details"]}
    return said, reply.payload["data"]


@pytest.mark.parametrize(
    ("settings", "trade", "rule", "setting", "limit"),
    [
        ({}, ("BTC/USD", "buy", 1), "order", "ORDER_SHARE", "10,000.00 USD"),
        ({"RISK_ORDER_NOTIONAL": "500"}, ("BTC/USD", "buy", 0.1), "order", "ORDER_NOTIONAL", "500.00 USD"),
        ({"RISK_SYMBOL_SHARE": "0.02"}, ("BTC/USD", "buy", 0.1), "symbol", "SYMBOL_SHARE", "2,000.00 USD"),
        ({"RISK_SYMBOL_NOTIONAL": "500"}, ("BTC/USD", "buy", 0.1), "symbol", "SYMBOL_NOTIONAL", "500.00 USD"),
        ({"RISK_COLLAR": "0.01"}, ("BTC/USD", "buy", 0.01, 70000), "collar", "COLLAR", "1 %"),
        ({"RISK_POSITIONS": "1"}, ("BTC/USD", "buy", 0.01), "positions", "POSITIONS", "1"),
        ({"RISK_SYMBOLS": "ETH/USD,AAPL"}, ("BTC/USD", "buy", 0.01), "symbols", "SYMBOLS", "AAPL, ETH/USD"),
        ({}, ("AAPL", "sell", 3), "short", "SHORT", "0"),
        ({}, ("BTC/USD", "buy", 50), "balance", "LEVERAGE", "98,"),
    ],
)
@awaited
async def test_each_rule_names_its_own_limit_value_and_setting(
    tmp_path: Path, settings: dict[str, str], trade: tuple[Any, ...], rule: str, setting: str, limit: str
) -> None:
    async with bench(tmp_path, AT) as desk:
        await desk.chartgen("place_order", symbol="ETH/USD", side="buy", type="market", quantity=0.5)
    async with bench(tmp_path, AT, **settings) as desk:
        said, verdict = await both(desk, *trade)
    name = f"OPENBELL_RISK_{setting}"
    assert (verdict["rule"], verdict["setting"]) == (rule, name)
    assert verdict["limit"].startswith(limit)
    assert f"(rule {rule}, {name})" in verdict["reason"]
    assert verdict["limit"] in verdict["reason"]
    assert verdict["value"] in verdict["reason"]
    assert said.removeprefix("refused by the risk gate: ") == verdict["reason"].removeprefix(
        "refused by the risk gate: "
    )


@awaited
async def test_the_largest_size_names_the_rule_that_limits_it(tmp_path: Path) -> None:
    """What cannot be paid is refused by the balance, but the share of an order allows less than the balance does."""
    async with bench(tmp_path, AT) as desk:
        price = Decimal(repr((await desk.ask("market-data", "get_current_price", symbol="BTC/USD"))["price"]))
        said, verdict = await both(desk, "BTC/USD", "buy", 50)
        assert verdict["rule"] == "balance"
        largest = (10_000 / price).quantize(Decimal("1e-8"), "ROUND_FLOOR")
        assert said.endswith(f"at most {largest} would pass (rule order, OPENBELL_RISK_ORDER_SHARE)")
        said, _ = await both(desk, "BTC/USD", "buy", 1)
        assert said.endswith(f"(rule order, OPENBELL_RISK_ORDER_SHARE); at most {largest} would pass")


def test_the_command_line_says_the_same(tmp_path: Path) -> None:
    order = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": 1}
    refused = run(tmp_path, "call", "chartgen", "place_order", json.dumps(order), "--trade", AS_OF=AT)
    assert refused.returncode == 1
    said = json.loads(refused.stdout)["error"]
    assert "an order may be worth 10,000.00 USD, 10 % of the equity (rule order, OPENBELL_RISK_ORDER_SHARE)" in said
    trade = {"symbol": "BTC/USD", "side": "BUY", "size": 1}
    judged = run(tmp_path, "call", "portfolio", "validate_trade", json.dumps(trade), "--trade", AS_OF=AT)
    assert judged.returncode == 0
    assert json.loads(judged.stdout)["data"]["reason"] == said.removeprefix("refused by the risk gate: ")
