"""The market-data contract over real pipes, on Parquet files and on a real InfluxDB."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from openbell.market.clock import parse_time
from tests.client import OPENBELL, Client, run
from tests.servers.desks import ask, data, error
from tests.stores import influx_server
from tests.stores.influx_server import InfluxServer
from tests.waiting import wait_for

CONTRACT = Path(__file__).parents[1] / "servers" / "contracts" / "market-data.json"
AS_OF = "2026-01-07T15:00:30Z"
COMMAND = [*OPENBELL, "mcp", "market-data"]
SECONDS = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600, "4h": 14400, "1d": 86400}


@pytest.fixture(scope="module", params=["parquet", "influxdb"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    settings = {"AS_OF": AS_OF, "TIMEOUT": "60"}
    if request.param == "influxdb":
        settings["INFLUX_URL"] = request.getfixturevalue("influx").url
    with Client(tmp_path_factory.mktemp("market"), command=COMMAND, **settings) as made:
        made.initialize()
        made.aside = [{"store": request.param}]
        yield made


def code(client: Client, tool: str, **arguments: Any) -> str:
    return str(error(client, tool, **arguments)["code"])


# The contract


def test_names_schemas_enums_limits_and_defaults_are_the_contracts(client: Client) -> None:
    contract = {tool["name"]: tool for tool in json.loads(CONTRACT.read_text())}
    tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    assert set(tools) == set(contract)
    for name, tool in tools.items():
        wanted, offered = contract[name]["parameters"], tool["inputSchema"]
        assert offered.get("required") == wanted["required"]
        assert set(offered["properties"]) == set(wanted["properties"])
        for argument, schema in wanted["properties"].items():
            for key, value in schema.items():
                assert offered["properties"][argument][key] == value, (name, argument, key)
        returned = tool["outputSchema"]["properties"]["data"]["properties"]
        assert set(returned) >= set(contract[name]["returns"]["properties"]) | {"data_source", "session", "as_of"}


def test_the_server_calls_itself_as_in_the_contract(tmp_path: Path) -> None:
    with Client(tmp_path, command=COMMAND, AS_OF=AS_OF) as made:
        assert made.initialize()["serverInfo"]["name"] == "market-data-mcp"


def test_results_fit_their_schema_and_say_where_they_come_from(client: Client) -> None:
    tools = {tool["name"]: tool for tool in client.request("tools/list")["result"]["tools"]}
    for name in tools:
        first = ask(client, name, symbol="BTC/USD", force_refresh=True)
        again = ask(client, name, symbol="BTC/USD")
        for answer in (first, again):
            jsonschema_rs.validate(tools[name]["outputSchema"], answer["structuredContent"])
            assert answer["structuredContent"]["_metadata"]["source"] == client.aside[0]["store"]
            assert answer["_meta"]["openbell/truth"]["data"] == "simulated"
            assert answer["structuredContent"]["data"]["data_source"] == "Openbell simulator (simulated data)"
        meta = [answer["structuredContent"]["_metadata"] for answer in (first, again)]
        assert [each["cached"] for each in meta] == [False, True]
        longest = {"get_candles": 60, "get_current_price": 5, "get_volatility": 30}[name]
        assert longest - 3 < meta[1]["cache_ttl_remaining"] <= longest
        assert meta[0]["cache_ttl_remaining"] is None
        assert first["structuredContent"]["data"] == again["structuredContent"]["data"]


# Candles


@pytest.mark.parametrize("symbol", ["BTC/USD", "AAPL"])
@pytest.mark.parametrize("timeframe", list(SECONDS))
def test_pages_put_together_are_the_whole(client: Client, symbol: str, timeframe: str) -> None:
    """The newest come first by offset, inside a page they run forward, and nothing is missing or double."""
    whole = data(client, "get_candles", symbol=symbol, timeframe=timeframe, limit=60)
    assert len(whole["items"]) == 60
    parts: list[dict[str, Any]] = []
    for offset in range(0, 60, 13):
        page = data(
            client, "get_candles", symbol=symbol, timeframe=timeframe, limit=min(13, 60 - offset), offset=offset
        )
        parts = page["items"] + parts
        assert page["pagination"]["offset"] == offset
        assert page["pagination"]["has_more"] is (offset + len(page["items"]) < page["pagination"]["total"])
    assert parts == whole["items"]
    times = [datetime.fromisoformat(item["timestamp"]) for item in whole["items"]]
    assert times == sorted(set(times))
    ends = times[-1] + timedelta(seconds=SECONDS[timeframe] if timeframe != "1d" or symbol != "AAPL" else 6.5 * 3600)
    assert ends <= datetime.fromisoformat(AS_OF), "closed bars only"


def test_the_total_does_not_depend_on_what_was_asked_before(client: Client) -> None:
    """Through a server and on both stores; every kind of instrument and timeframe is in tests/desk/test_bars.py."""

    def page(limit: int, offset: int = 0) -> Any:
        return data(client, "get_candles", symbol="QQQ", timeframe="4h", limit=limit, offset=offset)

    totals = [page(limit)["pagination"]["total"] for limit in (1, 10, 700, 11)]
    items: list[Any] = []
    more = True
    while more:
        found = page(1000, len(items))
        items = found["items"] + items
        totals.append(found["pagination"]["total"])
        more = found["pagination"]["has_more"]
    assert set(totals) == {len(items)}
    assert len(items) > 10_000, "years"
    assert len({item["timestamp"] for item in items}) == len(items)


def test_candles_are_the_minutes(client: Client) -> None:
    minutes = data(client, "get_candles", symbol="ETH/USD", timeframe="1m", limit=1000)["items"]
    for timeframe in ("5m", "15m", "1h"):
        length = SECONDS[timeframe]
        last = data(client, "get_candles", symbol="ETH/USD", timeframe=timeframe, limit=3)["items"]
        for candle in last:
            start = parse_time(candle["timestamp"])
            inside = [m for m in minutes if start <= parse_time(m["timestamp"]) < start + length]
            assert candle["open"] == inside[0]["open"]
            assert candle["high"] == max(m["high"] for m in inside)
            assert candle["low"] == min(m["low"] for m in inside)
            assert candle["close"] == inside[-1]["close"]
            assert candle["volume"] == pytest.approx(math.fsum(m["volume"] for m in inside), rel=1e-12)


def test_defaults_are_a_hundred_hours(client: Client) -> None:
    page = data(client, "get_candles", symbol="BTC-USD")
    assert (len(page["items"]), page["pagination"]["limit"], page["pagination"]["offset"]) == (100, 100, 0)
    times = [parse_time(item["timestamp"]) for item in page["items"]]
    assert {b - a for a, b in itertools.pairwise(times)} == {3600}


def test_beyond_the_last_page_there_is_nothing_and_no_error(client: Client) -> None:
    total = data(client, "get_candles", symbol="SPY", timeframe="1d", limit=10)["pagination"]["total"]
    page = data(client, "get_candles", symbol="SPY", timeframe="1d", limit=10, offset=total + 100_000)
    assert page["items"] == []
    assert page["pagination"]["has_more"] is False


# Prices


def test_the_price_and_its_changes_by_the_wall_clock(client: Client) -> None:
    minutes = data(client, "get_candles", symbol="BTC/USD", timeframe="1m", limit=1000)["items"]
    minutes = data(client, "get_candles", symbol="BTC/USD", timeframe="1m", limit=1000, offset=1000)["items"] + minutes
    price = data(client, "get_current_price", symbol="BTC/USD", force_refresh=True)
    now = parse_time(AS_OF)
    closes = {parse_time(m["timestamp"]) + 60: m["close"] for m in minutes}

    def close_at(moment: float) -> float:
        return float(closes[max(end for end in closes if end <= moment)])

    assert price["price"] == minutes[-1]["close"]
    assert price["timestamp"] == "2026-01-07T15:00:00+00:00"
    assert price["change_1h"] == pytest.approx((price["price"] / close_at(now - 3600) - 1) * 100, rel=1e-9)
    assert price["change_24h"] == pytest.approx((price["price"] / close_at(now - 86400) - 1) * 100, rel=1e-9)
    day = [m["volume"] for m in minutes if parse_time(m["timestamp"]) >= now - 86400]
    assert price["volume_24h"] == pytest.approx(math.fsum(day), rel=1e-9)


def test_a_closed_market_does_not_make_a_price_stale(tmp_path: Path) -> None:
    for as_of, session in (("2026-01-10T18:00:00Z", "closed"), ("2026-01-19T18:00:00Z", "closed")):
        with Client(tmp_path, command=COMMAND, AS_OF=as_of) as made:
            made.initialize()
            answer = ask(made, "get_current_price", symbol="AAPL")
            assert answer["isError"] is False, answer
            assert answer["_meta"]["openbell/truth"]["session"] == session


# Volatility


def test_volatility_is_what_its_window_says(client: Client) -> None:
    for timeframe in ("1h", "4h", "1d"):
        found = data(client, "get_volatility", symbol="BTC/USD", timeframe=timeframe)
        window = found["window"]
        bars = data(client, "get_candles", symbol="BTC/USD", timeframe=timeframe, limit=window["bars"])["items"]
        assert (bars[0]["timestamp"], bars[-1]["timestamp"]) == (window["start"], window["end"])
        returns = [math.log(b["close"] / a["close"]) for a, b in itertools.pairwise(bars)]
        assert found["volatility"] == pytest.approx(statistics.pstdev(returns), rel=1e-9)
        reach = max(b["high"] for b in bars) - min(b["low"] for b in bars)
        assert found["high_low_range"] == float(f"{reach:.10g}")
        ranges = [bars[0]["high"] - bars[0]["low"]] + [
            max(b["high"], a["close"]) - min(b["low"], a["close"]) for a, b in itertools.pairwise(bars)
        ]
        atr = sum(ranges[:14]) / 14
        for each in ranges[14:]:
            atr = (atr * 13 + each) / 14
        assert found["atr"] == pytest.approx(atr, rel=1e-9)


# Errors


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("get_candles", {"symbol": "???"}, "INVALID_SYMBOL"),
        ("get_candles", {"symbol": "'; DROP DATABASE openbell; --"}, "INVALID_SYMBOL"),
        ("get_candles", {"symbol": "BTC/USD", "timeframe": "2h"}, "INVALID_TIMEFRAME"),
        ("get_candles", {"symbol": "BTC/USD", "timeframe": "1M"}, "INVALID_TIMEFRAME"),
        ("get_candles", {"symbol": "ZZZZ"}, "NO_DATA"),
        ("get_candles", {"symbol": "BTC/USD", "limit": 1001}, "INVALID_PARAMETER"),
        ("get_candles", {"symbol": "BTC/USD", "limit": 0}, "INVALID_PARAMETER"),
        ("get_candles", {"symbol": "BTC/USD", "offset": -1}, "INVALID_PARAMETER"),
        ("get_candles", {"symbol": "BTC/USD", "limit": "10"}, "INVALID_PARAMETER"),
        ("get_candles", {"symbol": "BTC/USD", "nonsense": 1}, "INVALID_PARAMETER"),
        ("get_candles", {}, "INVALID_PARAMETER"),
        ("get_current_price", {"symbol": ""}, "INVALID_SYMBOL"),
        ("get_current_price", {"symbol": "ZZZZ"}, "SYMBOL_NOT_FOUND"),
        ("get_volatility", {"symbol": "A B C"}, "INVALID_SYMBOL"),
        ("get_volatility", {"symbol": "BTC/USD", "timeframe": "1m"}, "INVALID_TIMEFRAME"),
        ("get_volatility", {"symbol": "ZZZZ"}, "NOT_FOUND"),
    ],
)
def test_every_mistake_has_its_code(client: Client, tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert code(client, tool, **arguments) == expected


def csv(folder: Path, count: int, start: str = "2025-09-19T13:30:00Z") -> Path:
    first = int(parse_time(start))
    rows = [f"{first + 60 * n},{100 + n % 7},{101 + n % 7},{99 + n % 7},{100 + n % 7},{n}" for n in range(count)]
    file = folder / "bars.csv"
    file.write_text("timestamp,open,high,low,close,volume\n" + "\n".join(rows) + "\n")
    return file


@pytest.mark.parametrize("store", ["parquet", "influxdb"])
def test_old_and_few_bars_have_their_codes(request: pytest.FixtureRequest, tmp_path: Path, store: str) -> None:
    settings = {"FEED": "none"}
    if store == "influxdb":
        settings |= {"INFLUX_URL": request.getfixturevalue("influx").url, "INFLUX_DATABASE": "few"}
    done = run(tmp_path, "import", str(csv(tmp_path, 200)), "--symbol", "AAPL", **settings)
    assert done.returncode == 0, done.stderr
    with Client(tmp_path, command=COMMAND, AS_OF="2025-09-19T19:50:00Z", **settings) as made:
        made.initialize()
        answer = error(made, "get_current_price", symbol="AAPL")
        assert answer["code"] == "STALE_DATA"
        assert answer["details"]["trading_age_s"] == 3 * 3600
        assert answer["message"].endswith("; its market has been open for 3 hours since")
        assert code(made, "get_volatility", symbol="AAPL") == "INSUFFICIENT_DATA"
        assert code(made, "get_candles", symbol="AAPL", timeframe="1d") == "NO_DATA"
        assert data(made, "get_candles", symbol="AAPL", timeframe="1h")["pagination"]["total"] == 3, "not the cut one"
    with Client(tmp_path, command=COMMAND, AS_OF="2025-09-19T16:55:00Z", **settings) as made:
        made.initialize()
        price = data(made, "get_current_price", symbol="AAPL")
        assert price["change_24h"] is None, "there was no price then"


def test_a_store_that_is_gone_is_a_database_error(influx: InfluxServer, tmp_path: Path) -> None:
    settings = {"FEED": "none", "INFLUX_DATABASE": "gone", "POOL_INFLUX_TIMEOUT": "0.4", "TIMEOUT": "5"}
    own = influx_server.started()
    try:
        settings["INFLUX_URL"] = own.url
        assert run(tmp_path, "import", str(csv(tmp_path, 3000)), "--symbol", "AAPL", **settings).returncode == 0
        with Client(tmp_path, command=COMMAND, AS_OF="2025-09-21T20:00:00Z", **settings) as made:
            made.initialize()
            before = data(made, "get_candles", symbol="AAPL", timeframe="15m")
            own.pause()
            assert code(made, "get_candles", symbol="AAPL", timeframe="15m", force_refresh=True) == "TIMEOUT"
            assert data(made, "get_candles", symbol="AAPL", timeframe="15m") == before, "what is cached still answers"
            own.resume()
            own.kill()
            for tool in ("get_candles", "get_current_price", "get_volatility"):
                assert code(made, tool, symbol="AAPL", force_refresh=True) == "DATABASE_ERROR"
            doctor = run(tmp_path, "doctor", **settings)
            assert doctor.returncode == 1
            assert "cannot be reached" in doctor.stdout
            own.start()
            assert data(made, "get_candles", symbol="AAPL", timeframe="15m", force_refresh=True) == before
        assert "InfluxDB 1." in run(tmp_path, "doctor", **settings).stdout
    finally:
        own.close()


def test_a_call_that_takes_too_long_is_a_time_out(influx: InfluxServer, tmp_path: Path) -> None:
    own = influx_server.started()
    try:
        settings = {"FEED": "none", "INFLUX_URL": own.url, "TIMEOUT": "0.2"}
        with Client(tmp_path, command=COMMAND, **settings) as made:
            made.initialize()
            own.pause()
            assert code(made, "get_candles", symbol="AAPL") == "TIMEOUT"
            own.resume()
    finally:
        own.close()


def test_cache_times_are_settings(tmp_path: Path) -> None:
    with Client(tmp_path, command=COMMAND, AS_OF=AS_OF, CACHE_CANDLES="7", CACHE_PRICE="0") as made:
        made.initialize()
        for _ in range(2):
            candles = ask(made, "get_candles", symbol="BTC/USD")["structuredContent"]["_metadata"]
            price = ask(made, "get_current_price", symbol="BTC/USD")["structuredContent"]["_metadata"]
        assert candles["cached"] is True
        assert 4 < candles["cache_ttl_remaining"] <= 7
        assert price["cached"] is False


def test_each_argument_has_an_answer_of_its_own(client: Client) -> None:
    """Cache keys hold every argument."""
    seen = set()
    for arguments in ({"limit": 2}, {"limit": 3}, {"limit": 2, "offset": 1}, {"limit": 2, "timeframe": "4h"}):
        page = data(client, "get_candles", symbol="BTC/USD", **arguments)
        seen.add(json.dumps(page["items"]))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("tool", "arguments", "age"),
    [
        ("get_candles", {"symbol": "AAPL", "timeframe": "1d"}, 1800),
        ("get_volatility", {"symbol": "AAPL", "timeframe": "1d"}, 1800),
        ("get_candles", {"symbol": "BTC/USD", "timeframe": "1h"}, 1800),
        ("get_volatility", {"symbol": "BTC/USD", "timeframe": "4h"}, 5400),
    ],
)
def test_the_age_is_counted_from_the_end_of_the_newest_bar(
    tmp_path: Path, tool: str, arguments: dict[str, Any], age: int
) -> None:
    with Client(tmp_path, command=COMMAND, AS_OF="2025-11-10T21:30:00Z", TIMEOUT="60") as made:
        made.initialize()
        assert ask(made, tool, **arguments)["_meta"]["openbell/truth"]["age_s"] == age


def test_a_fast_replay_is_not_answered_with_the_bars_of_hours_ago(tmp_path: Path) -> None:
    """A minute in the cache is a minute of the market, as it is without a replay."""
    with Client(tmp_path, command=COMMAND, AS_OF=AS_OF, REPLAY_SPEED="36000", TIMEOUT="60") as replay:
        replay.initialize()
        asked = {"symbol": "BTC/USD", "timeframe": "1m", "limit": 1}
        first = parse_time(data(replay, "get_candles", **asked)["as_of"])
        # Candles are cached for 30 s without a replay: here for less than a millisecond of them.
        wait_for(lambda: parse_time(data(replay, "get_candles", **asked)["as_of"]) > first, "a later answer", 10.0)
