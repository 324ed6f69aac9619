"""From a submitted spec to a filled paper order, through MCP calls alone, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tests.client import OPENBELL, Client, run
from tests.servers.desks import data, fresh_database
from tests.servers.reverting_market import BUYS_LOW, DAY, FIRST, FOUND, LATER, closes, days_file, minutes_file
from tests.stores.records.postgres_server import PostgresServer

SUBMITTED = "2021-01-01T00:05:00Z"
"""1,461 days after the first: of them its author may have seen all, of the later ones none."""
HOUR_LATER = LATER.replace("T00:05", "T01:05")


class Market:
    """A home with imported bars, and servers on it at several times, all in one scenario."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.settings = {"FEED": "none", "DATABASE_URL": url, "TIMEOUT": "60"}

    def load(self) -> None:
        folder = self.home.parent
        price = float(closes()[_day_of(LATER) - 1])
        for path in (days_file(folder), minutes_file(folder, LATER[:10], price)):
            done = run(self.home, "import", str(path), "--symbol", "BTC/USD", **self.settings)
            assert done.returncode == 0, done.stderr

    def server(self, name: str, as_of: str) -> Client:
        flags = ["--trade", "--as-of", as_of, "--scenario", "edge"]
        return Client(self.home, command=[*OPENBELL, "mcp", name, *flags], **self.settings)


def _day_of(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() - FIRST) // DAY


def test_a_spec_becomes_an_order_with_its_ledger_chain(tmp_path: Path, postgres: PostgresServer) -> None:
    url = fresh_database(postgres)
    market = Market(tmp_path / "home", url)
    market.load()

    with market.server("strategy-db", SUBMITTED) as specs:
        specs.initialize()
        spec_id = data(specs, "submit_new_spec", **BUYS_LOW)["spec_id"]
    with market.server("strategy", SUBMITTED) as strategies:
        strategies.initialize()
        data(strategies, "get_top_strategies", symbol="BTC/USD")
    with market.server("strategy-db", SUBMITTED) as specs:
        specs.initialize()
        (early,) = data(specs, "get_implementations", spec_id=spec_id, status="CANDIDATE")["items"]
        assert early["reason"] == "its author may have seen these bars: 0 of 20 trades since its submission"
        assert (early["edge_vs_holding"], early["edge_vs_random_timing"]) == (None, None)
    with market.server("backtest", FOUND) as backtests:
        backtests.initialize()
        tested = data(
            backtests,
            "run_backtest",
            strategy_id=spec_id,
            symbol="BTCUSD",
            start_date="2019-01-01",
            end_date="2023-12-31",
        )
        assert tested["sharpe_ratio"] > 1.0
        assert tested["trades"] > 50
        assert (tested["trusted"], tested["from"]) == (False, "local"), "the names of its parameters are a submitter's"
    with market.server("strategy", FOUND) as strategies:
        strategies.initialize()
        ranked = data(strategies, "get_top_strategies", symbol="BTC/USD", limit=100)["items"]
        (best,) = [each for each in ranked if each["name"] == "BUYS_LOW"]
        assert best["status"] == "VALIDATED"
        assert best["strategy_id"] != early["impl_id"], "it was searched again when bars had closed"

    with market.server("strategy-db", LATER) as specs:
        specs.initialize()
        (made,) = data(specs, "get_implementations", spec_id=spec_id, status="DEPLOYED")["items"]
        assert made["impl_id"] == best["strategy_id"]
        assert made["trusted"] is False, "the names of its parameters are a submitter's"
        assert made["forward_signals"] >= 10
        assert made["forward_sharpe"] > 0
        assert 0 <= made["forward_accuracy"] <= 1
    with market.server("strategy", LATER) as strategies:
        strategies.initialize()
        signal = data(strategies, "get_strategy_signal", strategy_id=best["strategy_id"], symbol="BTC/USD")
        assert signal["signal"] in {"BUY", "SELL", "HOLD"}
        assert 0 < signal["confidence"] < 1
        votes = data(strategies, "get_strategy_consensus", symbol="BTC/USD")
        assert votes["bullish_count"] + votes["bearish_count"] + votes["neutral_count"] >= 1
    with market.server("chartgen", LATER) as trading:
        trading.initialize()
        order = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "1", "client_order_id": "edge-1"}
        placed = trading.call("place_order", order)["result"]
        assert placed["isError"] is False, placed
        order_id = json.loads(placed["content"][0]["text"])["order_id"]
    with market.server("chartgen", HOUR_LATER) as trading:
        trading.initialize()
        orders = json.loads(trading.call("get_orders", {"filter": "all"})["result"]["content"][0]["text"])
        assert any(each["order_id"] == order_id and each["status"] == "filled" for each in orders["orders"]), orders
    _check_chain(asyncio.run(_ledger(url)), order_id, best["strategy_id"], signal, votes)
    done = run(market.home, "verify", "--scenario", "edge", **market.settings)
    assert done.returncode == 0, done.stdout + done.stderr


async def _ledger(url: str) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch('SELECT seq, kind, key, body FROM "openbell_scenario_edge".ledger ORDER BY seq')
        return [{**row, "body": json.loads(row["body"])} for row in map(dict, rows)]
    finally:
        await connection.close()


def _check_chain(
    ledger: list[dict[str, Any]], order_id: str, strategy_id: str, signal: dict[str, Any], votes: dict[str, Any]
) -> None:
    """From the fill back to the bar that decided the signal, each entry names the one before it."""
    fills = [each for each in ledger if each["kind"] == "fill" and each["body"]["order_id"] == order_id]
    assert fills
    (verdict,) = [each for each in ledger if each["kind"] == "verdict" and each["key"] == order_id]
    by_seq = {each["seq"]: each for each in ledger}
    consensus = by_seq[verdict["body"]["consensus"]]
    assert consensus["kind"] == "consensus"
    assert consensus["body"]["consensus"] == votes["consensus"]
    named = [by_seq[seq] for seq in consensus["body"]["signals"]]
    (own,) = [each for each in named if each["key"] == strategy_id]
    assert own["body"]["signal"] == signal["signal"]
    assert len(own["body"]["bar_hash"]) == 64
    statuses = [
        each["body"]["status"] for each in ledger if each["kind"] == "implementation" and each["key"] == strategy_id
    ]
    assert statuses == ["VALIDATED", "DEPLOYED"]
    assert verdict["seq"] > consensus["seq"] > own["seq"]
