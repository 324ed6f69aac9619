"""Runs a desk through simulated hours as fast as it keeps up, and prints what it holds after each of them as a line of JSON.

The desk is the product's own, with its real stores: only its clock and its feed are those of this test. It collects a minute
of every symbol, fills resting orders and fires alerts. `python -m tests.operations.day --help` lists the sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import time
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

from openbell.cli.process_memory import tune_allocator
from openbell.desk.bars.collector import Collector
from openbell.desk.desk import Desk
from openbell.desk.orders.halts import HaltSync
from openbell.desk.settings import load
from openbell.gateway.outbound import Outbound
from openbell.gateway.webhooks.sender import WebhookSender
from openbell.market.bars import MINUTE
from openbell.market.series import Series
from tests.clocks import HandClock
from tests.operations import gauges
from tests.operations.feed import PathFeed
from tests.operations.load import PRINCIPALS, Load
from tests.operations.observed import Observed, minutes_in_influx, records_in_postgres, records_in_sqlite
from tests.operations.path import symbols
from tests.waiting import until

MIDNIGHT = 1_767_830_400
"""2026-01-08 00:00 UTC, at which the desk empties its buffer of bars."""
_PATIENCE = 120.0


class Warnings(logging.Handler):
    """Counts the log's warnings by their text."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.found[record.getMessage()[:200]] += 1


class Day:
    """One run."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._begin = MIDNIGHT - given.before * MINUTE
        self._end = self._begin + given.minutes * MINUTE
        settings = {"HOME": given.home, "FEED": "ccxt:kraken", "TRADE": "1", "RISK_POSITIONS": "0", "RISK_COLLAR": "0"}
        settings |= {"DATABASE_URL": given.postgres, "INFLUX_URL": given.influx}
        self._clock = HandClock(self._begin + 1)
        self._instruments = symbols(given.symbols)
        self._desk = Desk(load({f"OPENBELL_{name}": value for name, value in settings.items()}))
        self._desk.clock = self._clock
        self._desk.feed = PathFeed(self._clock, self._instruments, self._begin - given.history * MINUTE)
        self._collector = Collector(self._desk.bars, self._desk.watchlist, self._desk.hub)
        self._load = Load(self._desk, self._instruments, self._end)
        self._warnings = Warnings()

    async def run(self) -> None:
        """Run the parts that `openbell up` runs, but for the gateway and the search for strategies."""
        logging.getLogger("openbell").addHandler(self._warnings)
        desk, trading = self._desk, self._desk.trading
        desk.watchlist.watch(each.symbol for each in self._instruments)
        before = time.monotonic()
        async with desk, asyncio.TaskGroup() as group:
            halts = HaltSync(trading.halt_file, trading.records, trading.halts, desk.hub)
            webhooks = WebhookSender(desk, Outbound(trusted=desk.settings.trusted_origins))
            tasks = [group.create_task(part.run()) for part in (self._collector, trading.engine, halts, webhooks)]
            await self._caught_up(self._begin)
            began = time.monotonic()
            await self._load.place(self._given.orders, self._given.orders * self._given.near // 100)
            placed = time.monotonic()
            await self._load.set_alerts(self._given.alerts, self._given.alerts * self._given.near // 100)
            _print(
                caught_up_s=round(began - before, 1),
                placed_s=round(placed - began, 1),
                set_s=round(time.monotonic() - placed, 1),
                resident_mb=round(gauges.resident() / 2**20, 1),
            )
            for start in range(self._begin, self._end, self._given.every * MINUTE):
                await self._advance(start, min(start + self._given.every * MINUTE, self._end))
            for task in tasks:
                task.cancel()

    async def _advance(self, start: int, end: int) -> None:
        """Pass the minutes up to `end`, print what was found, and replace the orders and alerts that have ended."""
        began, used, slowest = time.monotonic(), gauges.processor_seconds(), 0.0
        for minute in range(start + MINUTE, end + MINUTE, MINUTE):
            at = time.monotonic()
            self._clock.advance(MINUTE)
            await self._caught_up(minute)
            slowest = max(slowest, time.monotonic() - at)
        spent, used = time.monotonic() - began, gauges.processor_seconds() - used
        minutes, observed = (end - start) // MINUTE, await self._observed()
        _print(
            minute=(end - self._begin) // MINUTE,
            minutes_per_s=round(minutes / spent, 2),
            slowest_s=round(slowest, 3),
            processor_ms=round(used * 1000 / minutes, 1),
            **await self._checked(observed, start, end),
            **self._held(),
        )
        if end < self._end:
            await self._read_as_clients()
            await self._load.renew(observed, end)

    async def _caught_up(self, minute: int) -> None:
        """Wait until everything up to a minute is collected, filled and fired."""
        status, engine = self._collector.status, self._desk.trading.engine.status
        await until(lambda: status.through >= minute and engine.through >= minute, f"minute {minute}", _PATIENCE)

    async def _read_as_clients(self) -> None:
        """Read what clients read: the watchlist, orders, alerts, the inbox."""
        trading = self._desk.trading
        await self._desk.signals.rows(self._instruments)
        for principal in PRINCIPALS:
            await trading.orders.listing(principal, open_only=True, limit=100)
            await trading.alerts.listing(principal)
            found, _, left = await trading.inbox.reader(principal).take(100, 0)
            if found:
                await left()

    # What was found

    async def _observed(self) -> Observed:
        if self._given.postgres:
            return await records_in_postgres(self._given.postgres)
        return await asyncio.to_thread(records_in_sqlite, Path(self._given.home) / "records.sqlite")

    async def _checked(self, observed: Observed, start: int, end: int) -> dict[str, Any]:
        minutes = (end - start) // MINUTE
        stored = await asyncio.to_thread(self._stored, start, end)
        lost = self._load.lost_orders(observed, end) + self._load.lost_alerts(observed, end)
        return {
            "missing_minutes": sum(minutes - stored.get(each.symbol, 0) for each in self._instruments),
            "resting": Counter(observed.states.values())["open"],
            "waiting": self._load.waiting(observed, end),
            "fills": sum(map(len, observed.fills.values())),
            "fired": len(observed.fired),
            "wrong": lost[:5],
            "connections": observed.connections,
        }

    def _stored(self, start: int, end: int) -> dict[str, int]:
        if self._given.influx:
            return minutes_in_influx(self._given.influx, start, end)
        return {each.symbol: len(self._desk.store.read(Series(each), start, end)) for each in self._instruments}

    def _held(self) -> dict[str, Any]:
        gc.collect()
        handles = gauges.handles()
        return {
            "resident_mb": round(gauges.resident() / 2**20, 1),
            "handles": dict(sorted(handles.items())),
            "threads": gauges.threads(),
            "tasks": len(asyncio.all_tasks()),
            "objects": len(gc.get_objects()),
            "warnings": dict(self._warnings.found),
        }


def _print(**found: Any) -> None:
    print(json.dumps(found), flush=True)


def main() -> None:
    """Run one day of the given size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", help="the folder of a new home")
    parser.add_argument("--postgres", default="", help="a PostgreSQL database; SQLite in the home if left out")
    parser.add_argument("--influx", default="", help="an InfluxDB server; Parquet files in the home if left out")
    sizes = {
        "symbols": (500, "which trade every minute"),
        "orders": (1000, "that rest"),
        "alerts": (10_000, "that wait"),
        "near": (2, "per cent of these that the market reaches soon; they are replaced"),
        "minutes": (1440, "that pass"),
        "before": (720, "minutes before midnight at which the run begins"),
        "every": (60, "minutes after which the desk is looked at"),
        "history": (3000, "minutes that the feed has from before the run"),
    }
    for name, (size, meaning) in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size, help=f"{meaning}; {size}")
    tune_allocator()  # as `openbell up` does
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Day(parser.parse_args()).run())


if __name__ == "__main__":
    main()
