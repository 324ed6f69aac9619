"""One thing has one shape, whichever tool shows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openbell.servers import NAMES, load
from tests.client import OPENBELL, Client, run
from tests.servers.desks import awaited, bench

T1, T2 = "2026-01-07T15:00:00Z", "2026-01-07T15:30:00Z"
ABOVE: dict[str, Any] = {"type": "price_above", "threshold": 1.0}
GOLD: dict[str, Any] = {"type": "indicator_signal", "indicator": "cipher_b", "signal": "gold_buy"}


@awaited
async def test_a_condition_has_one_form_in_every_result_and_set_alert_reads_it(tmp_path: Path) -> None:
    """Set, listed, fired, notified and cancelled."""
    async with bench(tmp_path, T1) as desk:

        async def made(condition: dict[str, Any]) -> Any:
            return await desk.chartgen("set_alert", symbol="BTC/USD", condition=condition)

        first, second = await made({"price_above": 1}), await made(ABOVE)
        assert first["condition"] == second["condition"] == ABOVE
        gold = await made({"indicator_signal": {"indicator": "cipher_b", "signal": "gold_buy"}})
        assert gold["condition"] == GOLD
        assert (await made(gold["condition"]))["condition"] == GOLD, "what was read can be sent back"
        listed = (await desk.chartgen("list_alerts"))["alerts"]
        assert sorted((each["condition"] for each in listed), key=str) == [GOLD, GOLD, ABOVE, ABOVE]
        assert (await desk.chartgen("cancel_alert", alert_id=gold["alert_id"]))["condition"] == GOLD
    async with bench(tmp_path, T2) as desk:
        assert [each["condition"] for each in (await desk.chartgen("get_notifications"))["notifications"]] == [
            ABOVE
        ] * 2
        fired = (await desk.chartgen("list_alerts", status="fired"))["alerts"]
        assert [each["condition"] for each in fired] == [ABOVE] * 2


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"type": "price_above"}, "a condition of type price_above has threshold beside it"),
        ({"type": "price_above", "threshold": 1, "signal": "buy"}, "a condition of type price_above has threshold"),
        ({"type": "price_above", "price_above": 1}, "a condition of type price_above has threshold"),
        ({"type": "price_above", "threshold": 0}, "price_above must be more than 0"),
        ({"type": "indicator_signal", "indicator": "rsi"}, "indicator_signal has indicator and signal beside it"),
        ({"type": "volume_above", "threshold": 1}, "condition.type must be one of price_above"),
        ({"threshold": 1}, "condition must have exactly one of"),
        ({"price_above": 1, "threshold": 1}, "condition must have exactly one of"),
    ],
)
@awaited
async def test_half_a_condition_is_refused(tmp_path: Path, condition: dict[str, Any], words: str) -> None:
    async with bench(tmp_path, T1, FEED="none") as desk:
        assert words in await desk.no("set_alert", symbol="BTC/USD", condition=condition)


def test_orders_have_the_symbol_of_positions_and_the_callers_in_a_field_of_its_own(tmp_path: Path) -> None:
    order = {"symbol": "btc-usdt", "side": "buy", "type": "market", "quantity": 0.01}
    chartgen = [*OPENBELL, "mcp", "chartgen", "--trade"]
    with Client(tmp_path, command=chartgen, AS_OF=T1, SCENARIO="a") as client:
        client.initialize()
        placed = client.call("place_order", order)["result"]["structuredContent"]
        assert (placed["symbol"], placed["requested_symbol"]) == ("BTC/USDT", "btc-usdt")
        client.call("place_order", {**order, "symbol": "ETH/USDT"})
        newest, oldest = client.call("get_orders", {})["result"]["structuredContent"]["orders"]
        assert (oldest["symbol"], oldest["requested_symbol"]) == ("BTC/USDT", "btc-usdt")
        assert (newest["symbol"], "requested_symbol" in newest) == ("ETH/USDT", False)
    with Client(tmp_path, command=chartgen, AS_OF=T2, SCENARIO="a") as client:
        client.initialize()
        positions = client.call("get_positions", {})["result"]["structuredContent"]["positions"]
        assert {each["symbol"] for each in positions} == {"BTC/USDT", "ETH/USDT"}


@awaited
async def test_the_tail_of_a_float_is_cut_off_a_quantity_and_the_answer_says_so(tmp_path: Path) -> None:
    async with bench(tmp_path, T1) as desk:

        async def placed(quantity: Any) -> Any:
            order = {"symbol": "ETH/USD", "side": "buy", "type": "market"}
            return await desk.chartgen("place_order", **order, quantity=quantity)

        for given, cut in (
            (0.4485060000000001, "0.448506"),
            ("0.30000000000000004", "0.3"),
            (0.1 + 0.7 / 5, "0.24"),
            (0.1 + 0.7, "0.8"),
        ):
            found = await placed(given)
            assert found["quantity"] == cut
            written = found.get("note", "")
            assert (f"was rounded to {cut}" in written) is (str(given) != cut), given
        assert "note" not in await placed("0.2")
        for fine in ("0.448506001", 0.4485060001, "0.123456789", "1e-9", "0.448505999"):
            order = {"symbol": "ETH/USD", "side": "buy", "type": "market", "quantity": fine}
            assert "at most 8 decimal places" in await desk.no("place_order", **order)
        checked = await desk.reply(
            "portfolio", "validate_trade", {"symbol": "ETH/USD", "side": "BUY", "size": 0.4485060000000001}
        )
        assert not checked.is_error
        assert "size 0.4485060000000001 was rounded to 0.448506" in checked.truth["note"]


def test_the_name_of_a_refused_spec_is_quoted_once(tmp_path: Path) -> None:
    spec = {
        "name": "1 bad name",
        "indicators": [],
        "entry_conditions": [],
        "exit_conditions": [],
        "parameters": [],
        "description": "",
        "reasoning": "",
    }
    found = json.loads(run(tmp_path, "call", "strategy-db", "submit_new_spec", json.dumps(spec)).stdout)["error"]
    assert found["message"].startswith("spec '1 bad name' is refused: name")
    assert found["details"]["name"] == "1 bad name"


@awaited
async def test_the_details_of_an_error_are_never_empty(tmp_path: Path) -> None:
    servers = [name for name in NAMES if "_metadata" in str(load(name).dialect.schema({}))]
    assert len(servers) == 6
    async with bench(tmp_path, T1, FEED="none") as desk:
        for server in servers:
            for tool in load(server).tools:
                error = await desk.refused(server, tool.name, surprise=1)
                assert "surprise" in error["details"]["parameters"], error
        error = await desk.refused("portfolio", "validate_trade", symbol="BTC/USD", side="HOLD", size=1)
        assert error["details"]
        error = await desk.refused("strategy-db", "get_top_specs", source="NOWHERE")
        assert error["details"]
