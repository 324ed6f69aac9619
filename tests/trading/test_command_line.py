"""Fills without volume, shorts and reduce_only, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openbell.market.clock import iso, parse_time
from tests.client import run

MONDAY = int(parse_time("2026-01-05T15:00:00Z"))
"""A time at which stocks and forex are open."""
OLD = {"STALE_AFTER": "1e9"}
"""Accepts orders hours after the last bar."""
EVERY_KIND: tuple[dict[str, str], ...] = (
    {"type": "market"},
    {"type": "limit", "price": "100"},
    {"type": "stop", "stop_price": "100"},
    {"type": "stop_limit", "stop_price": "100", "price": "100"},
)


def market(home: Path, symbol: str, price: float, volume: float) -> None:
    """Import an hour of minute bars of one price."""
    rows = [f"{iso(MONDAY + 60 * minute)},{price},{price},{price},{price},{volume}" for minute in range(60)]
    path = home / "bars.csv"
    path.write_text("\n".join(["time,open,high,low,close,volume", *rows]) + "\n")
    done = run(home, "import", str(path), "--symbol", symbol, FEED="none")
    assert done.returncode == 0, done.stderr


def ask(home: Path, minute: float, tool: str, arguments: dict[str, Any], **settings: str) -> tuple[int, Any]:
    words = ("call", "chartgen", tool, json.dumps(arguments), "--trade", "--as-of", iso(MONDAY + 60 * minute))
    done = run(home, *words, FEED="none", TIMEOUT="60", **settings)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def place(home: Path, minute: float, side: str, quantity: str, symbol: str = "AAPL", **more: Any) -> tuple[int, Any]:
    settings = more.pop("settings", {})
    given = {"symbol": symbol, "side": side, "type": "market", "quantity": quantity, **more}
    return ask(home, minute, "place_order", given, **settings)


def orders(home: Path, minute: float) -> list[dict[str, Any]]:
    code, found = ask(home, minute, "get_orders", {"detail": True})
    assert code == 0, found
    listed: list[dict[str, Any]] = found["orders"]
    return listed


def positions(home: Path, minute: float) -> dict[str, tuple[str, str]]:
    code, found = ask(home, minute, "get_positions", {})
    assert code == 0, found
    return {each["symbol"]: (each["side"], each["quantity"]) for each in found["positions"]}


@pytest.mark.parametrize("volume", [0, 3])
def test_a_forex_order_fills_whole_whatever_its_file_has_as_volume(tmp_path: Path, volume: int) -> None:
    market(tmp_path, "EUR/USD", 1.1, volume)
    code, placed = place(tmp_path, 10.5, "buy", "5000", "EUR/USD")
    assert code == 0, placed
    (found,) = orders(tmp_path, 12.1)
    assert (found["status"], found["filled_quantity"]) == ("filled", "5000")


def test_an_order_for_a_stock_without_volume_waits(tmp_path: Path) -> None:
    market(tmp_path, "AAPL", 100, 0)
    code, placed = place(tmp_path, 10.5, "buy", "5")
    assert code == 0, placed
    (found,) = orders(tmp_path, 40.5)
    assert (found["status"], found["filled_quantity"]) == ("open", "0")
    assert found["reason"] == f"waits for volume: the minutes since {iso(MONDAY + 660)} had none"


def test_an_order_outside_the_session_says_when_the_session_opens(tmp_path: Path) -> None:
    market(tmp_path, "AAPL", 100, 10_000)
    waits = "waits for the regular session, which opens at 2026-01-06T14:30:00+00:00"
    evening = 7 * 60.0
    price = {"type": "limit", "price": "99", "time_in_force": "day"}
    for key, more, words in (
        ("market", {}, waits),
        ("limit", price, f"{waits}; rests until the price trades through 99; until 2026-01-06T21:00:00+00:00"),
    ):
        code, placed = place(tmp_path, evening, "buy", "1", client_order_id=key, settings=OLD, **more)
        assert (code, placed.get("reason")) == (0, words), placed
        found = {each["client_order_id"]: each for each in orders(tmp_path, evening + 1)}[key]
        assert (found["status"], found["reason"]) == ("open", words)


def test_an_order_that_a_halt_holds_back_says_until_when(tmp_path: Path) -> None:
    """The halt is in the home, and no engine has cancelled the order yet: a read-only desk never does."""
    given = {"symbol": "BTC/USD", "side": "buy", "type": "market", "quantity": "0.01"}
    assert run(tmp_path, "call", "chartgen", "place_order", json.dumps(given), "--trade").returncode == 0
    (tmp_path / "halted").write_text("the news")
    done = run(tmp_path, "call", "chartgen", "get_orders", "--trade", "--read-only")
    (found,) = json.loads(done.stdout)["orders"]
    assert (found["status"], found["reason"]) == ("open", "trading is halted: the news; until openbell resume")


def test_a_symbol_that_is_not_held_cannot_be_sold_unless_shorts_are_allowed(tmp_path: Path) -> None:
    market(tmp_path, "AAPL", 100, 10_000)
    code, refused = place(tmp_path, 10.5, "sell", "2")
    assert code == 1
    assert "0 of AAPL is held, and shorts are not allowed (rule short, OPENBELL_RISK_SHORT)" in refused["error"]
    code, placed = place(tmp_path, 10.5, "sell", "2", settings={"RISK_SHORT": "true"}, client_order_id="short")
    assert code == 0, placed
    assert positions(tmp_path, 20.5) == {"AAPL": ("short", "2")}


def test_selling_more_than_is_held_is_refused_with_the_largest_size(tmp_path: Path) -> None:
    market(tmp_path, "BTC/USD", 100, 10_000)
    place(tmp_path, 10.5, "buy", "0.81", "BTC/USD")
    for settings in ({}, {"RISK_SHORT": "true"}):
        code, refused = place(tmp_path, 20.5, "sell", "2", "BTC/USD", settings=settings)
        assert code == 1
        assert (
            "it sells 2, 0.81 of BTC/USD is held, and spot crypto cannot be sold short (rule short); at most 0.81 would pass"
            in refused["error"]
        )
    code, placed = place(tmp_path, 20.5, "sell", "0.81", "BTC/USD")
    assert code == 0, placed
    assert positions(tmp_path, 30.5) == {}


def test_a_reduce_only_order_never_opens(tmp_path: Path) -> None:
    market(tmp_path, "AAPL", 100, 10_000)
    shorts = {"RISK_SHORT": "true"}
    for kind in EVERY_KIND:
        code, refused = place(tmp_path, 10.5, "sell", "2", settings=shorts, reduce_only=True, **kind)
        assert code == 1
        assert "it is reduce_only, and there is nothing of AAPL for a sell to reduce" in refused["error"]
    place(tmp_path, 10.5, "buy", "3", settings=shorts)
    code, refused = place(tmp_path, 20.5, "sell", "4", settings=shorts, reduce_only=True)
    assert code == 1
    assert "only 3 of AAPL can be reduced" in refused["error"]
    assert "at most 3 would pass" in refused["error"]
    for key in ("first", "second"):  # together they exceed the position
        code, placed = place(tmp_path, 20.5, "sell", "2", settings=shorts, reduce_only=True, client_order_id=key)
        assert code == 0, placed
    assert positions(tmp_path, 30.5) == {}
    found = {each["client_order_id"]: (each["status"], each["filled_quantity"]) for each in orders(tmp_path, 30.5)}
    assert (found["first"], found["second"]) == (("filled", "2"), ("cancelled", "1"))
