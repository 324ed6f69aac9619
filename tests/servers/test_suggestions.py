"""Unknown names of every kind: the error names the nearest that exist, and keeps the contract's code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openbell.servers import NAMES, load
from tests.client import run
from tests.servers.desks import awaited, bench_as_found
from tests.servers.test_arguments import AS_OF, required

UNKNOWN = {"BTC": "'BTC/USD' or 'BTC/USDT'", "APPL": "'AAPL'", "bitcoin": "'BTC/USD' or 'BTC/USDT'"}
COINS_CHARTED, STOCK_CHARTED = "'BINANCE:BTCUSD' or 'BINANCE:BTCUSDT'", "'NASDAQ:AAPL'"
CHARTED = {"BTC": COINS_CHARTED, "APPL": STOCK_CHARTED, "bitcoin": COINS_CHARTED}
"""How chart-image spells them: it refuses symbols without an exchange."""
LETS_PASS = {
    ("decisions", "get_recent_decisions"),
    ("decisions", "save_decision"),
    ("portfolio", "get_positions"),
    ("chartgen", "subscribe_notifications"),
    ("chart-image", "construct_chart_config"),
}
"""Tools that take any symbol, or that know the names of more symbols than the desk has."""


def asked(server: str, tool: Any, symbol: str) -> dict[str, Any] | None:
    """Arguments with a symbol; None for a tool without one."""
    names, least = tool.input_schema["properties"], required(tool)
    if "tickers" in names:
        return least | {"tickers": [symbol]}
    if server == "chart-image":
        return least | {"config": {"symbol": f"NASDAQ:{symbol}", "interval": "1D"}} if "config" in names else None
    return least | {"symbol": symbol} if "symbol" in names else None


@pytest.mark.parametrize("server", NAMES)
@awaited
async def test_an_unknown_symbol_names_the_nearest_on_every_tool(tmp_path: Path, server: str) -> None:
    async with bench_as_found(tmp_path, AS_OF) as desk:
        for tool in load(server).tools:
            for symbol, near in (CHARTED if server == "chart-image" else UNKNOWN).items():
                arguments = asked(server, tool, symbol)
                if arguments is None or (server, tool.name) in LETS_PASS:
                    continue
                reply = await desk.reply(server, tool.name, arguments)
                text = json.dumps(reply.payload)
                assert reply.is_error or tool.name == "validate_chart_config", (tool.name, text)
                assert f"did you mean {near}?" in text, (tool.name, symbol, text)
                assert text.count("did you mean") <= 2  # the arche API repeats it in details
                if server == "chart-signals":
                    assert reply.payload["code"] == -32002


@awaited
async def test_suggestions_come_from_the_watchlist_and_the_store_too(tmp_path: Path) -> None:
    """Without a feed: a watched symbol without bars is not suggested."""
    (tmp_path / "watchlist.txt").write_text("AAPX\n")
    (tmp_path / "bars.csv").write_text("timestamp,open,high,low,close,volume\n2026-01-05T15:00:00Z,1,1,1,1,1\n")
    done = run(tmp_path, "import", str(tmp_path / "bars.csv"), "--symbol", "AAPL", "--timeframe", "60min", FEED="none")
    assert done.returncode == 0, done.stderr
    for as_of, near in ((AS_OF, "; did you mean 'AAPL'?"), ("2026-01-05T12:00:00Z", "")):
        async with bench_as_found(tmp_path, as_of, FEED="none") as desk:
            found = await desk.refused("chartgen", "get_indicators", symbol="APPL", indicators=["rsi"])
            assert found == f"Unknown symbol APPL: neither stored nor known to the feed{near}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ema50", "ema_line with length 50"),
        ("EMA(50)", "ema_line with length 50"),
        ("sma 200", "sma with length 200"),
        ("rsi_21", "rsi with length 21"),
        ("bb20", "bbands with period 20"),
        ("macd12", "'macd'"),
        ("rsii", "'rsi'"),
        ({"name": "rsi", "lenght": 5}, "'length'"),
    ],
)
@awaited
async def test_an_unknown_indicator_or_parameter_names_the_nearest(tmp_path: Path, name: Any, meant: str) -> None:
    spec = {**required(load("strategy-db").by_name["submit_new_spec"])}
    used = {"type": name, "params": {}} if isinstance(name, str) else {"type": "rsi", "params": {"lenght": 5}}
    async with bench_as_found(tmp_path, AS_OF, FEED="none") as desk:
        for tool in ("get_indicators", "generate_chart"):
            text = await desk.refused("chartgen", tool, symbol="AAPL", indicators=[name])
            assert text.endswith(f"did you mean {meant}?")
        refused = await desk.refused("strategy-db", "submit_new_spec", **spec | {"indicators": [{"id": "x", **used}]})
        assert f"did you mean {meant}?" in refused["message"]


def test_a_mistyped_variable_is_warned_of_without_its_value(tmp_path: Path) -> None:
    done = run(tmp_path, "watch", "list", FEEED="secret-value", ARCHE_KEYS="secret-value", NONSENSE="secret-value")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert "OPENBELL_FEEED is not a setting and is ignored; did you mean 'OPENBELL_FEED'?" in lines[0]
    assert "did you mean 'OPENBELL_ARCHE_KEY'?" in lines[0]
    assert "OPENBELL_NONSENSE is not a setting and is ignored" in lines[0]
    assert "secret-value" not in done.stderr + done.stdout
    assert run(tmp_path, "watch", "list", TRADE="0").stderr == ""


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("mcp", "chartgn"), "'chartgen'"),
        (("chart", "APPL", "-o", "x.png"), "'AAPL'"),
        (("chart", "AAPL", "-i", "ema50", "-o", "x.png"), "ema_line with length 50"),
        (("backfill", "BTC", "-t", "60min", "--from", "2026-01-01"), "'BTC/USD' or 'BTC/USDT'"),
        (("call", "chart-signals", "get_signal"), "'get_signals'"),
    ],
)
def test_commands_name_the_nearest_too(tmp_path: Path, words: tuple[str, ...], near: str) -> None:
    done = run(tmp_path, *words)
    assert done.returncode != 0
    assert f"did you mean {near}?" in done.stderr + done.stdout
