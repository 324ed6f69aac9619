"""A live feed as a user meets it: keys in the environment, commands, errors that say what to do, no secret anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.client import OPENBELL, Client, run
from tests.feeds.alpaca_server import KEY, SECRET, AlpacaServer


def test_candles_come_from_the_vendor_and_say_so(alpaca: AlpacaServer, tmp_path: Path) -> None:
    with Client(tmp_path, command=[*OPENBELL, "mcp", "market-data"], FEED="alpaca") as client:
        assert "live from alpaca" in client.initialize()["instructions"]
        answer = client.call("get_candles", {"symbol": "BTC/USD", "timeframe": "5m", "limit": 20})["result"]
        assert answer["isError"] is False, answer
        assert len(answer["structuredContent"]["data"]["items"]) == 20
        truth = answer["_meta"]["openbell/truth"]
        assert (truth["data"], truth["feed"]) == ("live", "alpaca")
        asked = len(alpaca.requests)
        client.call("get_candles", {"symbol": "BTC/USD", "timeframe": "5m", "limit": 19})
        assert len(alpaca.requests) - asked <= 1, "stored bars are not asked for again, but for the newest minutes"
    assert (tmp_path / "data" / "buffer.sqlite").exists()
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_an_unknown_symbol_is_told_from_a_silent_one(alpaca: AlpacaServer, tmp_path: Path) -> None:
    alpaca.unlisted.add("ZZZZ")
    done = run(tmp_path, "call", "market-data", "get_current_price", '{"symbol": "ZZZZ"}', FEED="alpaca")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "SYMBOL_NOT_FOUND"


def test_refused_keys_say_which_variables_and_never_what_they_hold(
    alpaca: AlpacaServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALPACA_SECRET_KEY", "wrong-but-secret")
    call = run(
        tmp_path, "call", "market-data", "get_candles", '{"symbol": "BTC/USD"}', FEED="alpaca", LOG_LEVEL="debug"
    )
    doctor = run(tmp_path, "doctor", FEED="alpaca")
    assert (call.returncode, doctor.returncode) == (1, 1)
    assert "ALPACA_SECRET_KEY" in call.stdout
    assert "ALPACA_SECRET_KEY" in doctor.stdout
    for text in (call.stdout, call.stderr, doctor.stdout, doctor.stderr):
        assert "wrong-but-secret" not in text
        assert KEY not in text


def test_without_keys_nothing_starts_and_the_error_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALPACA_API_KEY", raising=False)
    monkeypatch.delenv("ALPACA_SECRET_KEY", raising=False)
    done = run(tmp_path, "call", "market-data", "get_candles", '{"symbol": "BTC/USD"}', FEED="alpaca")
    assert done.returncode != 0
    assert "ALPACA_API_KEY" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_shows_the_connection(alpaca: AlpacaServer, tmp_path: Path) -> None:
    (tmp_path / "watchlist.txt").write_text("BTC/USD\n")
    done = run(tmp_path, "doctor", FEED="alpaca")
    assert "feed alpaca responds in" in done.stdout, done.stdout


def test_an_exchange_that_is_none_is_named_with_its_neighbours(tmp_path: Path) -> None:
    done = run(
        tmp_path, "call", "market-data", "get_candles", '{"symbol": "BTC/USDT"}', FEED="ccxt:binanse", TIMEOUT="60"
    )
    assert done.returncode != 0
    assert "binance" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["collect", "up"])
def test_commands_that_run_on_say_it_too(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, FEED="ccxt:binanse")
    assert done.returncode == 1
    assert "binance" in done.stderr
    assert "Traceback" not in done.stderr


def test_simulated_bars_in_influxdb_are_never_served_as_real(tmp_path: Path) -> None:
    settings = {"FEED": "none", "INFLUX_URL": "http://127.0.0.1:9", "INFLUX_DATABASE": "openbell_simulated_7"}
    done = run(tmp_path, "call", "market-data", "get_candles", '{"symbol": "BTC/USD"}', **settings)
    assert json.loads(done.stdout)["error"]["code"] == "DATABASE_ERROR"
    assert "simulated" in done.stdout
