"""The chart-signals contract, as a user meets it: imported bars, real processes, real pipes."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from openbell.desk.desk import Desk
from openbell.desk.settings import load as load_settings
from openbell.protocol.service import Runner
from openbell.servers.chart_signals import SERVICE
from tests.client import Client, call, run
from tests.servers import reference
from tests.sessions import answered

SECONDS = {"1min": 60, "5min": 300, "15min": 900, "1hour": 3600}
START = int(datetime(2025, 9, 1, tzinfo=UTC).timestamp())

Row = tuple[int, float, float, float, float, float]


def walk(count: int, seed: int = 1, start: int = START, price: float = 100.0, gaps: float = 0.1) -> list[Row]:
    """Minute bars of a random walk, some minutes without a trade."""
    chance = random.Random(seed)
    rows: list[Row] = []
    for minute in range(count):
        if minute and chance.random() < gaps:
            continue
        opened = price
        price = round(max(0.01, price * (1 + chance.gauss(0, 0.002))), 4)
        high = round(max(opened, price) * (1 + abs(chance.gauss(0, 0.0005))), 4)
        low = round(min(opened, price) * (1 - abs(chance.gauss(0, 0.0005))), 4)
        rows.append(
            (
                start + 60 * minute,
                opened,
                max(high, opened, price),
                min(low, opened, price),
                price,
                float(chance.randint(1, 900)),
            )
        )
    return rows


def load(home: Path, symbol: str, rows: list[Row]) -> None:
    """Import bars through the command line."""
    home.mkdir(exist_ok=True)
    file = home / "bars.csv"
    file.write_text("timestamp,open,high,low,close,volume\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows))
    done = run(home, "import", str(file), "--symbol", symbol)
    assert done.returncode == 0, done.stderr


def at(epoch: float) -> str:
    return datetime.fromtimestamp(epoch, UTC).isoformat()


def buckets(rows: list[Row], seconds: int, now: float) -> list[tuple[int, float]]:
    """Closed larger bars as (open time, close)."""
    closes: dict[int, float] = {}
    for time, *_, close, _volume in rows:
        closes[time - time % seconds] = close
    return [(time, close) for time, close in closes.items() if time + seconds <= now][-3000:]


def ask(home: Path, tool: str, arguments: dict[str, Any] | None = None, **settings: str) -> dict[str, Any]:
    """The same as `call`, in this process: for tables of many questions."""

    async def main() -> dict[str, Any]:
        desk = Desk(load_settings({"OPENBELL_HOME": str(home)}, **settings))
        try:
            return (await answered(Runner(SERVICE, desk), tool, arguments or {})).payload or {}
        finally:
            await desk.close()

    return asyncio.run(main())


@pytest.mark.parametrize("seed", range(4))
def test_signals_equal_an_independent_calculation_at_every_timeframe(tmp_path: Path, seed: int) -> None:
    rows = walk(4000, seed, price=10.0 ** (seed - 1))
    load(tmp_path, "AAPL", rows)
    chance = random.Random(seed)
    for timeframe, seconds in SECONDS.items():
        for now in [
            rows[-1][0] + 60,
            *(START + 60 * chance.randint(2500, 4000) + chance.random() * 59 for _ in range(2)),
        ]:
            closed = buckets(rows, seconds, now)
            prev, last = reference.snapshot([close for _, close in closed])
            question = {"symbol": "AAPL", "timeframe": timeframe}
            answer = ask(tmp_path, "get_signals", question, as_of=at(now), feed="none")
            if not seed and now == rows[-1][0] + 60:
                assert answer == call(tmp_path, "get_signals", question, AS_OF=at(now), FEED="none")
            assert answer["ready"] is True, (timeframe, now)
            got = answer["snapshot"]
            for name, value in last.items():
                assert got[name] == pytest.approx(value, rel=1e-9, abs=1e-9 * last["price"]), (timeframe, name)
            for name, value in prev.items():
                assert got["prev_snapshot"][name] == pytest.approx(value, rel=1e-9, abs=1e-9 * last["price"])
            assert got["time"] == at(closed[-1][0])
            assert got["bb_upper"] >= got["bb_middle"] >= got["bb_lower"]
            assert answer["crossings"] == reference.crossings(got["prev_snapshot"], got)
            assert answer["crossings"] == reference.crossings(prev, last)


def test_more_than_3000_bars_are_not_used(tmp_path: Path) -> None:
    """A jump just before the newest 3,000 bars changes nothing."""
    rows = walk(3500, 5, gaps=0)
    jump = [(t, *(v * 50 for v in prices), volume) for t, *prices, volume in rows[:500]]
    plain, jumped = tmp_path / "plain", tmp_path / "jumped"
    load(plain, "AAPL", rows)
    load(jumped, "AAPL", [*jump, *rows[500:]])  # type: ignore[list-item]
    now = at(rows[-1][0] + 60)
    answers = [
        call(home, "get_signals", {"symbol": "AAPL", "timeframe": "1min"}, AS_OF=now, FEED="none")
        for home in (plain, jumped)
    ]
    assert answers[0] == answers[1]


def test_the_same_question_has_the_same_bytes(tmp_path: Path) -> None:
    load(tmp_path, "AAPL", walk(500))
    request = json.dumps({"symbol": "AAPL", "timeframe": "5min"})
    outputs = {
        run(tmp_path, "call", "chart-signals", "get_signals", request, AS_OF=at(START + 28000), FEED="none").stdout
        for _ in range(3)
    }
    assert len(outputs) == 1
    lines = []
    for _ in range(2):
        with Client(tmp_path, AS_OF=at(START + 28000), FEED="none") as client:
            client.initialize()
            client.call("get_signals", {"symbol": "AAPL", "timeframe": "5min"})
            lines.append(json.dumps(client.call("get_signals", {"symbol": "AAPL", "timeframe": "5min"})))
    assert lines[0] == lines[1]


@pytest.mark.parametrize(("timeframe", "seconds"), SECONDS.items())
def test_34_closed_bars_are_not_ready_and_35_are(tmp_path: Path, timeframe: str, seconds: int) -> None:
    load(tmp_path, "AAPL", walk(36 * seconds // 60, 3, gaps=0))
    arguments = {"symbol": "AAPL", "timeframe": timeframe}
    ready = START + 35 * seconds
    early = ask(tmp_path, "get_signals", arguments, as_of=at(ready - 1), feed="none")
    assert early == {"ready": False, "reason": "insufficient bars (need 35+)"}
    on_time = call(tmp_path, "get_signals", arguments, AS_OF=at(ready), FEED="none")
    assert on_time["ready"] is True
    assert on_time["snapshot"]["time"] == at(ready - seconds)
    late = ask(tmp_path, "get_signals", arguments, as_of=at(ready + seconds - 1), feed="none")
    assert late["snapshot"] == on_time["snapshot"], "an unfinished bucket is never used"


def test_each_timeframe_counts_for_itself(tmp_path: Path) -> None:
    load(tmp_path, "AAPL", walk(35 * 5, 3, gaps=0))
    ready = {
        timeframe: call(
            tmp_path, "get_signals", {"symbol": "AAPL", "timeframe": timeframe}, AS_OF=at(START + 35 * 300), FEED="none"
        )["ready"]
        for timeframe in SECONDS
    }
    assert ready == {"1min": True, "5min": True, "15min": False, "1hour": False}


def test_flat_prices(tmp_path: Path) -> None:
    load(tmp_path, "BTC/USD", [(START + 60 * n, 0.1, 0.1, 0.1, 0.1, 1.0) for n in range(60)])
    answer = call(
        tmp_path, "get_signals", {"symbol": "btc-usd", "timeframe": "1min"}, AS_OF=at(START + 3600), FEED="none"
    )
    snapshot = answer["snapshot"]
    assert snapshot["rsi"] == 50
    assert snapshot["bb_upper"] == snapshot["bb_middle"] == snapshot["bb_lower"] == snapshot["ma10"] == 0.1
    assert [name for name, held in answer["crossings"].items() if held] == ["bb_squeeze"]


def test_every_error_code_arrives_as_a_json_rpc_error(tmp_path: Path) -> None:
    load(tmp_path, "ZZZ", walk(10, gaps=0))
    (tmp_path / "watchlist.txt").write_text("AAPL\n")
    with Client(tmp_path, AS_OF=at(START + 86400), FEED="none") as client:
        client.initialize()

        def error(name: str, **arguments: Any) -> dict[str, Any]:
            failure: dict[str, Any] = client.call(name, arguments)["error"]
            return failure

        few = error("get_signals", symbol="ZZZ", timeframe="1min")
        assert few["code"] == -32001
        assert few["message"] == "Insufficient data"
        assert few["data"] == {"symbol": "ZZZ", "bars_available": 10, "bars_needed": 35}
        assert error("get_signals", symbol="ZZZ", timeframe="1hour")["data"]["bars_available"] == 1
        for symbol in ("", "???", "../../etc/passwd", "YYY", "TOOLONGTICKER", "EUR/USD", "AAPL;DROP TABLE bars"):
            assert error("get_signals", symbol=symbol, timeframe="1min")["code"] == -32002, symbol
        for timeframe in ("2min", "", "1M", "4h", "1day"):
            assert error("get_signals", symbol="ZZZ", timeframe=timeframe)["code"] == -32003, timeframe
        assert error("no_such_tool")["code"] == -32601
        for arguments in (
            {},
            {"symbol": "ZZZ"},
            {"symbol": 5, "timeframe": "1min"},
            {"symbol": "ZZZ", "timeframe": "1min", "x": 1},
        ):
            assert error("get_signals", **arguments)["code"] == -32602, arguments
        assert error("check_market_status", x=1)["code"] == -32602
        assert error("unsubscribe_alerts", subscription_id="sub_9")["code"] == -32602


def test_a_pair_of_currencies_is_refused_with_the_tools_that_have_it_and_never_suggested(tmp_path: Path) -> None:
    for symbol, name in (("eurusd", "EUR/USD"), ("USD/EUR", "USD/EUR")):
        failure = call(tmp_path, "get_signals", {"symbol": symbol, "timeframe": "1min"}, AS_OF=at(START + 86400))
        assert failure["code"] == -32002
        assert failure["message"] == (
            f"Invalid symbol '{name}': signals cover stocks and crypto; for currencies use get_indicators of chartgen or "
            "get_candles of market-data"
        )


def test_a_spelling_that_means_a_pair_of_currencies_names_the_tools_that_have_it(tmp_path: Path) -> None:
    for symbol in ("EURUSD=X", "EUR", "euro", "EUR/USDD", "JPY"):
        failure = call(tmp_path, "get_signals", {"symbol": symbol, "timeframe": "1min"}, AS_OF=at(START + 86400))
        assert failure["code"] == -32002
        assert failure["message"].endswith(
            "; signals cover stocks and crypto; for currencies use get_indicators of chartgen or "
            "get_candles of market-data"
        ), failure
        assert "did you mean" not in failure["message"]
    failure = call(tmp_path, "get_signals", {"symbol": "BTC/EUR", "timeframe": "1min"}, AS_OF=at(START + 86400))
    assert failure["message"].endswith("; did you mean 'BTC/USD' or 'BTC/USDT'?")


def test_the_data_source_of_alpaca_is_the_contracts_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALPACA_API_KEY", "key")
    monkeypatch.setenv("ALPACA_SECRET_KEY", "secret")
    done = run(tmp_path, "call", "chart-signals", "get_capabilities", FEED="alpaca")
    assert json.loads(done.stdout)["data_source"] == "Alpaca Markets"
    assert "data=live" in done.stderr
    assert "feed=alpaca" in done.stderr


def test_lenient_spellings_of_timeframes_are_described_and_answered_in_the_contracts(tmp_path: Path) -> None:
    tool = SERVICE.by_name["get_signals"]
    described = tool.input_schema["properties"]["timeframe"]
    assert described["enum"] == list(SECONDS)
    assert "1h" in described["description"]
    answer = call(tmp_path, "get_signals", {"symbol": "AAPL", "timeframe": "1h"}, AS_OF=at(START + 86400))
    assert answer["tf"] == "1hour"


def test_the_squeeze_of_trend_state_is_relative_to_the_symbols_own_history(tmp_path: Path) -> None:
    """Every bar is within the contract's 4 %, first busy and then quiet, and then as busy as ever."""

    def rows(quiet: int, then: int) -> list[Row]:
        sizes = [0.9] * 140 + [0.05] * quiet + [0.9] * then
        return [(START + 60 * n, *[100 + size * (-1) ** n] * 4, 1.0) for n, size in enumerate(sizes)]

    for symbol, bars, squeezed in (("QUIET", rows(20, 0), True), ("BUSY", rows(20, 30), False)):
        load(tmp_path, symbol, bars)
        clock = at(START + 60 * len(bars))
        answer = call(tmp_path, "get_signals", {"symbol": symbol, "timeframe": "1min"}, AS_OF=clock, FEED="none")
        assert answer["crossings"]["bb_squeeze"] is True, "as the contract defines it"
        assert answer["reading"]["squeeze"] is squeezed
        assert answer["trend_state"] != ("mixed" if squeezed else "consolidating")


def test_a_store_that_cannot_be_used_is_market_data_unavailable(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file in the folder's place")
    with Client(tmp_path, FEED="none") as client:
        client.initialize()
        failure = client.call("get_signals", {"symbol": "AAPL", "timeframe": "1min"})["error"]
        assert failure["code"] == -32004
        assert client.call("check_market_status")["result"]["isError"] is False


def test_call_prints_the_object_and_leaves_with_1_on_an_error(tmp_path: Path) -> None:
    good = run(tmp_path, "call", "chart-signals", "get_capabilities")
    assert good.returncode == 0
    assert json.loads(good.stdout) == {
        "version": "1.0.0",
        "protocol": "2025-06-18",
        "indicators": ["EMA9", "SMA10", "MACD(12,26,9)", "RSI14", "BB(20,2)"],
        "timeframes": ["1min", "5min", "15min", "1hour"],
        "asset_types": ["stocks", "crypto"],
        "data_source": "Openbell simulator (simulated data)",
        "storage": "parquet",
        "max_bars_in_memory": 3000,
    }
    bad = run(tmp_path, "call", "chart-signals", "get_signals", '{"symbol": "?", "timeframe": "1min"}')
    assert bad.returncode == 1
    assert json.loads(bad.stdout)["code"] == -32002
    unknown = run(tmp_path, "call", "chart-signals", "nope")
    assert unknown.returncode == 1
    assert json.loads(unknown.stdout)["code"] == -32601
    for words in (
        ["nope", "x"],
        ["chart-signals", "get_signals", "[]"],
        ["chart-signals", "get_signals", "{"],
    ):
        refused = run(tmp_path, "call", *words)
        assert refused.returncode != 0
        assert refused.stdout == ""
        assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("moment", "session", "is_open", "words", "opens"),
    [
        ("2025-09-19T19:00:00Z", "regular", True, "Monday, Sep 22 9:30 AM ET", "2025-09-22T13:30:00+00:00"),
        ("2025-09-18T19:00:00Z", "regular", True, "Tomorrow 9:30 AM ET", "2025-09-19T13:30:00+00:00"),
        ("2025-09-18T07:59:59Z", "closed", False, "Today 9:30 AM ET", "2025-09-18T13:30:00+00:00"),
        ("2025-09-18T08:00:00Z", "premarket", False, "Today 9:30 AM ET", "2025-09-18T13:30:00+00:00"),
        ("2025-09-18T13:29:59Z", "premarket", False, "Today 9:30 AM ET", "2025-09-18T13:30:00+00:00"),
        ("2025-09-18T13:30:00Z", "regular", True, "Tomorrow 9:30 AM ET", "2025-09-19T13:30:00+00:00"),
        ("2025-09-18T20:00:00Z", "afterhours", False, "Tomorrow 9:30 AM ET", "2025-09-19T13:30:00+00:00"),
        ("2025-09-19T00:00:00Z", "closed", False, "Tomorrow 9:30 AM ET", "2025-09-19T13:30:00+00:00"),
        ("2025-07-04T15:00:00Z", "closed", False, "Monday, Jul 7 9:30 AM ET", "2025-07-07T13:30:00+00:00"),
        ("2025-11-28T17:59:00Z", "regular", True, "Monday, Dec 1 9:30 AM ET", "2025-12-01T14:30:00+00:00"),
        ("2025-11-28T18:00:00Z", "afterhours", False, "Monday, Dec 1 9:30 AM ET", "2025-12-01T14:30:00+00:00"),
        ("2025-11-28T22:00:00Z", "closed", False, "Monday, Dec 1 9:30 AM ET", "2025-12-01T14:30:00+00:00"),
        ("2025-03-07T14:29:00Z", "premarket", False, "Today 9:30 AM ET", "2025-03-07T14:30:00+00:00"),
        ("2025-03-10T13:30:00Z", "regular", True, "Tomorrow 9:30 AM ET", "2025-03-11T13:30:00+00:00"),
        ("2025-11-03T13:30:00Z", "premarket", False, "Today 9:30 AM ET", "2025-11-03T14:30:00+00:00"),
        ("2025-09-20T15:00:00Z", "closed", False, "Monday, Sep 22 9:30 AM ET", "2025-09-22T13:30:00+00:00"),
        ("2025-12-31T22:00:00Z", "afterhours", False, "Friday, Jan 2 9:30 AM ET", "2026-01-02T14:30:00+00:00"),
    ],
)
def test_market_status(tmp_path: Path, moment: str, session: str, is_open: bool, words: str, opens: str) -> None:
    stocks = ask(tmp_path, "check_market_status", as_of=moment)["stocks"]
    assert (stocks["session"], stocks["open"]) == (session, is_open)
    assert (stocks["next_open"], stocks["next_open_at"]) == (words, opens)


def test_the_watchlist_file_rules(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("# mine\nAAPL  # the phone one\n\nbtc_usd\nnot a symbol\nTSLA\n")
    load(tmp_path, "AAPL", walk(100))
    answer = call(tmp_path, "get_watchlist", AS_OF=at(START + 6000), FEED="none")
    rows = answer["watchlist"]
    assert [row["symbol"] for row in rows["stocks"]] == ["AAPL", "TSLA"]
    assert rows["stocks"][0]["price"] > 0
    assert rows["stocks"][1] == {"symbol": "TSLA", "price": None, "rsi": None, "signals": []}
    assert [row["symbol"] for row in rows["crypto"]] == ["BTC/USD"]
    assert answer["timestamp"] == at(START + 6000)


def test_a_watched_symbol_without_bars_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("TSLA\n")
    answer = call(tmp_path, "get_signals", {"symbol": "TSLA", "timeframe": "1hour"}, FEED="none")
    assert answer == {"ready": False, "reason": "insufficient bars (need 35+)"}


def test_storage_info(tmp_path: Path) -> None:
    load(tmp_path, "AAPL", walk(3000))
    load(tmp_path, "BTC/USD", walk(100))
    info = call(tmp_path, "get_storage_info", FEED="none")
    assert info["data_directory"] == str(tmp_path / "data")
    assert info["stored_symbols"] == {"stocks": ["AAPL"], "crypto": ["BTC_USD"]}
    assert info["series"] == {"1m": {"total": 2, "symbols": ["AAPL", "BTC_USD"]}}
    assert info["total_size_mb"] > 0
    assert (tmp_path / "data/stocks/1min/AAPL_2025-09.parquet").exists()


def test_storage_info_names_the_timeframes_of_stored_bars(tmp_path: Path) -> None:
    load(tmp_path, "AAPL", walk(100))
    days = tmp_path / "days.csv"
    days.write_text("Date,Open,High,Low,Close,Volume\n2025-09-18,1,2,1,2,10\n2025-09-19,2,3,1,2,10\n")
    for symbol in ("AAPL", "EUR/USD"):
        assert run(tmp_path, "import", str(days), "--symbol", symbol, "--timeframe", "1d").returncode == 0
    found = {"1m": {"total": 1, "symbols": ["AAPL"]}, "1d": {"total": 2, "symbols": ["AAPL", "EUR_USD"]}}
    assert call(tmp_path, "get_storage_info", FEED="none")["series"] == found
    before = call(tmp_path, "get_storage_info", FEED="none", AS_OF="2025-09-18T12:00:00Z")
    assert before["series"] == {"1m": found["1m"]}, "no day had closed"


def test_under_a_clock_of_its_own_storage_info_tells_of_nothing_later(tmp_path: Path) -> None:
    """Bytes: later bars of known and new symbols, in the same month file and in others, and files set aside since."""
    clock = at(START + 60 * 1000 + 30)
    load(tmp_path, "AAPL", walk(1000, gaps=0))

    def info() -> str:
        return run(tmp_path, "call", "chart-signals", "get_storage_info", FEED="none", AS_OF=clock).stdout

    before = info()
    assert json.loads(before)["stored_symbols"] == {"stocks": ["AAPL"], "crypto": []}
    assert json.loads(before)["total_size_mb"] == 0.048
    later = [row for row in walk(8000) if row[0] >= START + 60 * 1000]
    load(tmp_path, "AAPL", later)
    load(tmp_path, "TSLA", later)
    (tmp_path / "data/stocks/1min/MSFT_2025-09.parquet").write_bytes(b"PAR1 this is no parquet file")
    call(tmp_path, "get_signals", {"symbol": "MSFT", "timeframe": "1min"}, FEED="none")
    assert info() == before
    now = call(tmp_path, "get_storage_info", FEED="none")
    assert now["stored_symbols"]["stocks"] == ["AAPL", "TSLA"]
    assert len(now["set_aside"]) == 1


def test_simulated_bars_are_never_served_as_real(tmp_path: Path) -> None:
    assert call(tmp_path, "get_signals", {"symbol": "SPY", "timeframe": "1min"})["ready"] is True
    assert not (tmp_path / "data").exists()
    assert call(tmp_path, "get_signals", {"symbol": "SPY", "timeframe": "1min"}, FEED="none")["code"] == -32002


def test_results_say_what_they_rest_on(tmp_path: Path) -> None:
    load(tmp_path, "AAPL", walk(100, gaps=0))
    with Client(tmp_path, AS_OF=at(START + 6000 + 90), FEED="none") as client:
        assert "imported" in client.initialize()["instructions"]
        truth = client.call("get_signals", {"symbol": "AAPL", "timeframe": "1min"})["result"]["_meta"]["openbell/truth"]
        assert truth == {
            "data": "imported",
            "account": "none",
            "feed": "none",
            "as_of": at(START + 6090),
            "made_of": "1m",
            "age_s": 90,
            "session": "closed",
        }
    with Client(tmp_path) as client:
        assert "SIMULATED" in client.initialize()["instructions"]
        result = client.call("get_signals", {"symbol": "AAPL", "timeframe": "1min"})["result"]
        assert result["_meta"]["openbell/truth"]["data"] == "simulated"
        assert "simulated" in result["structuredContent"]["data_source"]


def test_every_answer_fits_its_schema(tmp_path: Path) -> None:
    with Client(tmp_path) as client:
        client.initialize()
        tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
        conditions = [{"type": "macd_cross", "direction": "up"}, {"type": "rsi_oversold"}]
        subscribe = {"symbol": "AAPL", "timeframe": "1min", "conditions": conditions, "throttle_ms": 5000}
        arguments: dict[str, dict[str, Any]] = {
            "get_signals": {"symbol": "AAPL", "timeframe": "1min"},
            "subscribe_alerts": subscribe,
            "unsubscribe_alerts": {"subscription_id": "sub_1"},
        }
        for name, tool in tools.items():
            jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
            jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
            given = arguments.get(name, {})
            jsonschema.validate(given, tool["inputSchema"])
            result = client.call(name, given)["result"]
            jsonschema_rs.validate(tool["outputSchema"], result["structuredContent"])
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        not_ready = {"ready": False, "reason": "insufficient bars (need 35+)"}
        jsonschema.validate(not_ready, tools["get_signals"]["outputSchema"])
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"ready": True, "reason": "x"}, tools["get_signals"]["outputSchema"])


def test_many_servers_share_one_home(tmp_path: Path) -> None:
    clients = [Client(tmp_path, TIMEOUT="60") for _ in range(5)]
    try:
        for client in clients:
            client.send(
                {
                    "jsonrpc": "2.0",
                    "id": "i",
                    "method": "initialize",
                    "params": {
                        "protocolVersion": "2025-06-18",
                        "capabilities": {},
                        "clientInfo": {"name": "t", "version": "1"},
                    },
                }
            )
            client.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            for number, symbol in enumerate(("AAPL", "BTC/USD", "SPY")):
                params = {"name": "get_signals", "arguments": {"symbol": symbol, "timeframe": "15min"}}
                client.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        answers = []
        for client in clients:
            got: dict[Any, Any] = {}
            while len(got) < 4:
                message = client.receive()
                got[message["id"]] = message
            answers.append({n: got[n]["result"]["structuredContent"]["snapshot"] for n in range(3)})
        assert all(answer == answers[0] for answer in answers)
    finally:
        for client in clients:
            client.__exit__()
