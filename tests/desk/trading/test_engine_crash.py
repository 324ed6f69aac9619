"""Engines that are killed during fills and alerts: acknowledged writes are kept, and nothing happens twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openbell.feeds.sim.bars import minute_bars
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso, parse_time
from openbell.market.instruments import parse
from openbell.stores.records.verify import entries, faults
from openbell.trading.alerts import Alert, AlertState, Type
from openbell.trading.amounts import of_bar
from openbell.trading.book import replay
from openbell.trading.costs import Costs
from openbell.trading.evidence import bar_hash
from openbell.trading.fills import Fill
from openbell.trading.ledger import LedgerEntry
from openbell.trading.orders import Order
from openbell.trading.rows import from_row
from tests.client import run
from tests.counts import runs
from tests.desk.trading.child import SYMBOLS, Fork, desk_of, trade

KILLS = runs(5, soak=500)
HOMES = max(1, KILLS // 25)
SEED = int(os.environ.get("OPENBELL_SEED", "20260105"))
BEGIN = parse_time("2026-01-05T15:00:00Z")
SPEED = 600
"""The speed of the replay: a minute takes 0.1 s."""
MARKET = 7


def settings(home: Path, clock: float, speed: int = SPEED) -> dict[str, str]:
    return {
        "HOME": str(home),
        "FEED": "sim",
        "SIM_SEED": str(MARKET),
        "AS_OF": iso(clock),
        "REPLAY_SPEED": str(speed),
        "TRADE": "1",
    }


@pytest.mark.parametrize("home", range(HOMES))
def test_a_killed_engine_loses_doubles_and_invents_nothing(tmp_path: Path, home: int) -> None:
    chance = random.Random(SEED + home)
    where = f"seed {SEED}, home {home}"
    clock = BEGIN
    acknowledged: dict[str, set[str]] = defaultdict(set)
    for _ in range(KILLS // HOMES):
        with Fork(trade, settings(tmp_path, clock), chance.getrandbits(32)) as desk:
            said = [desk.hear() for _ in range(chance.randrange(1, 20))]
            said += desk.kill()
        for kind, name, at in said:
            acknowledged[kind].add(name)
            clock = max(clock, at)
        clock += chance.choice((0.0, 20.0, 300.0))
    asyncio.run(_check(tmp_path, clock + 120, acknowledged, where))
    done = run(tmp_path, "verify", "--scenario", "as-of", FEED="sim", SIM_SEED=str(MARKET))
    assert done.returncode == 0, done.stdout + done.stderr


async def _check(home: Path, clock: float, acknowledged: dict[str, set[str]], where: str) -> None:
    desk = desk_of(settings(home, clock, 0) | {"REPLAY_SPEED": "0"})
    try:
        await desk.trading.engine.once()  # apply the bars since the last engine was killed
        records = desk.trading.records
        noted = records.head.read()
        assert noted, where
        found, ledger = await records.read(
            lambda view: (list(faults(view.connection, (noted,))), list(entries(view.connection)))
        )
        assert found == [], where
        told = Told(ledger)
        for kind, names in acknowledged.items():
            missing = names - told.known["order" if kind == "cancelled" else kind]
            assert not missing, f"{where}: acknowledged and gone: {kind} {missing}"
        assert all(told.orders[name].final for name in acknowledged["cancelled"]), where
        problems = [*_alerts(told, await records.read(_inbox), clock), *_fills(told)]
        assert problems == [], where
        book = replay(Decimal(100_000), told.fills)
        held = {each.position.symbol: each.position.quantity for each in await desk.trading.portfolio.holdings("local")}
        assert held == {each.symbol: each.quantity for each in book.positions.values()}, where
        assert (await desk.trading.portfolio.balance("local")).cash == book.cash, where
    finally:
        await desk.close()


class Told:
    """The rows of the ledger by kind."""

    def __init__(self, ledger: list[LedgerEntry]) -> None:
        self.known: dict[str, set[str]] = defaultdict(set)
        self.fills: list[Fill] = []
        self.orders: dict[str, Order] = {}
        self.alerts: dict[str, Alert] = {}
        self.placed: dict[str, Order] = {}
        self.fired: list[Alert] = []
        for entry in ledger:
            self.known[entry.kind].add(entry.key)
            body = json.loads(entry.body)
            if entry.kind == "fill":
                self.fills.append(from_row(Fill, body))
            elif entry.kind == "order":
                self.orders[entry.key] = from_row(Order, body)
                self.placed.setdefault(entry.key, self.orders[entry.key])
            elif entry.kind == "alert":
                self.alerts[entry.key] = from_row(Alert, body)
                self.fired += [self.alerts[entry.key]] if body["state"] == AlertState.FIRED else []


def _inbox(connection: Any) -> list[str]:
    return [str(row[0]) for row in connection.connection.exec_driver_sql("SELECT alert_id FROM inbox")]


def _bars(symbol: str, until: float) -> Bars:
    return minute_bars(parse(symbol), MARKET, int(BEGIN) - MINUTE, int(until // MINUTE * MINUTE))


def _alerts(told: Told, inbox: list[str], clock: float) -> Iterator[str]:
    bars = {symbol: _bars(symbol, clock) for symbol in SYMBOLS}
    names = [alert.id for alert in told.fired]
    if len(set(names)) != len(names) or sorted(inbox) != sorted(names):
        yield f"{len(names)} firings of {len(set(names))} alerts are {len(inbox)} notifications"
    for alert in told.alerts.values():
        first = _reached(alert, bars[alert.symbol])
        if alert.state is AlertState.FIRED and (
            first is None or alert.fired_at != first[0] or alert.bar_hash != first[1]
        ):
            yield f"{alert.id} set at {iso(alert.set_at)} fired at {alert.fired_at}, and its bar is {first}"
        if alert.state is AlertState.ACTIVE and first is not None:
            yield f"{alert.id} set at {iso(alert.set_at)} did not fire, and {iso(first[0])} reached it"


def _reached(alert: Alert, bars: Bars) -> tuple[float, str] | None:
    """Returns end and hash of the first bar that opened after an alert was set and reaches its threshold."""
    level = float(alert.threshold or 0)
    hit = bars.high >= level if alert.type is Type.PRICE_ABOVE else bars.low <= level
    found = np.flatnonzero(hit & (bars.time >= alert.set_at))
    if not len(found):
        return None
    index = int(found[0])
    return float(bars.time[index] + MINUTE), bar_hash(bars, index)


def _fills(told: Told) -> Iterator[str]:
    """Each fill has a bar, a price within it, and an order that existed when the bar opened."""
    slip = Costs().slippage
    if len({fill.id for fill in told.fills}) != len(told.fills):
        yield "a fill is there twice"
    for fill in told.fills:
        assert fill.bar is not None
        bars = minute_bars(parse(fill.symbol), MARKET, fill.bar, fill.bar + MINUTE)
        if len(bars) != 1 or bar_hash(bars, 0) != fill.bar_hash:
            yield f"{fill.id} names a bar that there is not"
            continue
        low, high = of_bar(bars.low[0]) * (1 - slip), of_bar(bars.high[0]) * (1 + slip)
        if not low - Decimal("1e-9") <= fill.price <= high + Decimal("1e-9"):
            yield f"{fill.id} at {fill.price} is outside its bar, {low} to {high}"
        if told.placed[fill.order_id].placed_at > fill.bar:
            yield f"{fill.id} is older than its order"
