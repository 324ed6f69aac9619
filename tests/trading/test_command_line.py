"""Fills without a volume, as a user of the command line meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from openbell.market.clock import iso, parse_time
from tests.client import run

MONDAY = int(parse_time("2026-01-05T15:00:00Z"))
"""A moment at which stocks and forex trade."""


def market(home: Path, symbol: str, price: float, volume: float) -> None:
    """An hour of minutes of one price, from a file."""
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
    code, found = ask(home, minute, "get_orders", {})
    assert code == 0, found
    listed: list[dict[str, Any]] = found["orders"]
    return listed


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
