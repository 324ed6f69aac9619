"""Twenty real minutes of `openbell up` on PostgreSQL and InfluxDB with 500 symbols, 1,000 resting orders, 10,000 alerts."""

from __future__ import annotations

import random
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest

from openbell.market.bars import MINUTE
from tests.client import OPENBELL, PATIENCE, Client, environment, run
from tests.counts import SOAK
from tests.feeds.alpaca_server import KEY, SECRET
from tests.operations import gauges
from tests.operations.observed import minutes_in_influx, rows_in_postgres
from tests.operations.path import Path, symbols
from tests.operations.vendor import ManySymbols
from tests.stores.influx_server import InfluxServer
from tests.waiting import Pace, wait_for

SYMBOLS, ORDERS, ALERTS, REAL_MINUTES, WARM_UP = 500, 1000, 10_000, 20, 5
ORDERED = 50
"""Symbols that have orders: they are all in one account, which is valued for each order."""
LEVEL = 1.05
FEW = 5
"""Connections and threads that may be there for a moment."""
_ORDERS = "SELECT id, symbol, limit_price, placed_at, state FROM orders"
_FILLS = "SELECT order_id, at FROM fills"
_ALERTS = "SELECT symbol, type, threshold, set_at, fired_at FROM alerts"


@pytest.mark.skipif(not SOAK, reason="takes half an hour: make soak")
def test_a_desk_at_work_stays_level_and_loses_nothing(tmp_path: File, database: str, influx: InfluxServer) -> None:
    home, watched = tmp_path / "home", symbols(SYMBOLS)
    home.mkdir()
    (home / "watchlist.txt").write_text("".join(f"{each}\n" for each in watched))
    with ManySymbols(watched) as vendor:
        urls = {f"ALPACA_{name.upper()}": url for name, url in vendor.urls.items()}
        secrets = {"ALPACA_API_KEY": KEY, "ALPACA_SECRET_KEY": SECRET}
        settings = {"FEED": "alpaca", "DATABASE_URL": database, "INFLUX_URL": influx.url}
        settings |= {"RISK_COLLAR": "0", "RISK_POSITIONS": "0"}
        with pytest.MonkeyPatch.context() as patch:
            for name, value in (urls | secrets).items():
                patch.setenv(name, value)
            with desk(home, tmp_path / "log", **settings) as process:
                begun = collected_from(influx, SYMBOLS)
                load(home, **settings)
                levels = [minute_of(process.pid) for _ in range(REAL_MINUTES)]
                through = int((time.time() - 45) // MINUTE) * MINUTE
                observe(database, through)
                process.terminate()
                assert process.wait(PATIENCE) == 0
            verified = run(home, "verify", **settings)
    assert verified.returncode == 0, verified.stdout
    minutes = (through - begun) // MINUTE
    found = minutes_in_influx(influx.url, begun, through)
    assert {each.symbol: found.get(each.symbol) for each in watched} == {each.symbol: minutes for each in watched}
    print(*levels, sep="\n")
    first, *later = levels[WARM_UP:]
    for each in later:
        assert each["resident_mb"] <= first["resident_mb"] * LEVEL, levels
        for count in ("handles", "threads"):
            assert each[count] <= first[count] + FEW, levels
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log, log


@contextmanager
def desk(home: File, log: File, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """`openbell up --trade` whose engine works."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            [*OPENBELL, "up", "--trade"], env=environment(home, **settings), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_for(lambda: "engine: working" in log.read_text(), "the engine")
        yield running
    finally:
        running.kill()
        running.wait()


def collected_from(influx: InfluxServer, count: int) -> int:
    """Wait until a minute of every symbol was collected after the start; returns that minute."""
    begun = int(time.time() // MINUTE) * MINUTE
    deadline = time.monotonic() + 10 * PATIENCE
    while len(minutes_in_influx(influx.url, begun, begun + MINUTE)) < count:
        assert time.monotonic() < deadline, "gave up waiting for the first minute"
        time.sleep(1.0)
    return begun


def load(home: File, **settings: str) -> None:
    """Place orders and set alerts through a server on standard input and output; the market soon reaches one of 47."""
    chance, pace = random.Random(7), Pace(80)
    now = np.array([int(time.time() // MINUTE - 2) * MINUTE])
    with Client(home, command=[*OPENBELL, "mcp", "chartgen", "--trade"], **settings) as client:
        client.initialize()
        for each in range(ORDERS + ALERTS):
            time.sleep(pace.delay())
            number = each % (ORDERED if each < ORDERS else SYMBOLS)
            away = chance.uniform(0.001, 0.01) if each % 47 == 0 else chance.uniform(0.3, 0.6)
            level = str(round(float(Path(number).closes(now)[0]) * (1 - away), 2))
            symbol = f"C{number:03d}/USD"
            order = {"symbol": symbol, "side": "buy", "type": "limit", "quantity": "0.001", "price": level}
            if each < ORDERS:
                answer = client.call("place_order", {**order, "client_order_id": f"order-{each}"})
            else:
                answer = client.call("set_alert", {"symbol": symbol, "condition": {"price_below": level}})
            assert not answer["result"]["isError"], answer


def minute_of(pid: int) -> dict[str, Any]:
    """Returns what a process holds during a minute, as medians, and its share of a processor."""
    samples, used, began = [], gauges.processor_seconds(pid), time.monotonic()
    while time.monotonic() < began + 60:
        samples.append((gauges.resident(pid) / 2**20, gauges.handles(pid).total(), gauges.threads(pid)))
        time.sleep(1.0)
    names = ("resident_mb", "handles", "threads")
    found: dict[str, Any] = {
        name: round(statistics.median(column), 1)
        for name, column in zip(names, zip(*samples, strict=True), strict=True)
    }
    return {**found, "processor_share": round((gauges.processor_seconds(pid) - used) / 60, 3)}


def observe(database: str, through: int) -> None:
    """Compare every order and alert with the prices: each filled or fired once, at its time, or not at all."""
    fills: dict[str, list[float]] = {}
    for order_id, at in rows_in_postgres(database, _FILLS):
        fills.setdefault(order_id, []).append(float(at))
    orders = rows_in_postgres(database, _ORDERS)
    assert len(orders) == ORDERS
    for order_id, symbol, limit, placed_at, state in orders:
        at = reached(symbol, float(limit), placed_at, through, through_it=True)
        before = [each for each in fills.get(order_id, []) if each <= through]
        assert before == ([at] if at else []), (order_id, symbol, limit, placed_at, state, at)
        assert state == ("filled" if fills.get(order_id) else "open")
    alerts = rows_in_postgres(database, _ALERTS)
    assert len(alerts) == ALERTS
    for symbol, kind, threshold, set_at, fired_at in alerts:
        at = reached(symbol, float(threshold), set_at, through, through_it=False)
        assert (fired_at if fired_at and fired_at <= through else None) == at, (symbol, kind, threshold, set_at, at)
    assert fills
    assert any(row[4] for row in alerts)


def reached(symbol: str, level: float, since: float, through: int, *, through_it: bool) -> float | None:
    """Returns the end of the first minute after `since` that falls to a level, or below it; None if there is none."""
    times = np.arange(-(-since // MINUTE) * MINUTE, through, MINUTE).astype(np.int64)
    lows = Path(int(symbol[1:4])).lows(times)
    found = lows < level if through_it else lows <= level
    return float(times[found.argmax()]) + MINUTE if found.any() else None
