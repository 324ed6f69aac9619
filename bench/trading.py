"""The trading core: how long a durable order takes, what ten thousand alerts cost a minute, and a hundred readers beside it.

The floor under an order is the disk: one durable SQLite transaction and one synchronised head, measured in the same run.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.client import OPENBELL, Client
from tests.clocks import HandClock

from measure import row, rows
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.feeds.sim.minutes import minute_bars
from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.stores.records.journal import Journal
from openbell.trading import amounts
from openbell.trading.alerts import Alert, Type
from openbell.trading.orders import Kind, Side
from openbell.trading.request import request

NOW = 1_763_000_000 // 86400 * 86400 + 15 * 3600
SOURCE = Source(Origin.IMPORTED, "import")
SYMBOLS, ALERTS, MINUTES = 500, 10_000, 30


def desk_at(home: Path, clock: Any = None, **more: str) -> Desk:
    settings = {"HOME": str(home), "TRADE": "1", "TIMEOUT": "60", **more}
    desk = Desk(load({f"OPENBELL_{name}": value for name, value in settings.items()}))
    if clock is not None:
        desk.clock = clock
    return desk


def floor(folder: Path) -> float:
    """One durable transaction and one synchronised write, as plain as can be: ms."""
    db = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)")
    head = os.open(folder / "floor.head", os.O_RDWR | os.O_CREAT)
    spent = []
    for _ in range(200):
        began = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t (body) VALUES (?)", ("x" * 1500,))
        db.execute("COMMIT")
        os.pwrite(head, b"x" * 128, 0)
        os.fdatasync(head)
        spent.append((time.perf_counter() - began) * 1000)
    return statistics.median(spent)


def orders(folder: Path) -> None:
    """place_order over real pipes, acknowledged after it is durable."""
    least = floor(folder)
    command = [*OPENBELL, "mcp", "chartgen", "--trade"]
    with Client(folder / "orders", command=command, AS_OF=str(NOW), RISK_POSITIONS="0") as client:
        client.initialize()
        spent = []
        for number in range(220):
            given = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "0.00001"}
            given |= {"price": "130000", "client_order_id": f"bench-{number}"}
            began = time.perf_counter()
            answer = client.call("place_order", given)["result"]
            spent.append((time.perf_counter() - began) * 1000)
            assert not answer["isError"], answer
            if number % 50 == 49:
                time.sleep(0.6)  # a hundred a second are let through
    median = statistics.median(spent[20:])
    worst = statistics.quantiles(spent[20:], n=100)[98]
    figure = f"{median:.1f} ms (p99 {worst:.1f}), {median / least:.1f} × a bare durable write of {least:.1f} ms"
    row("place_order to durable acknowledgement, SQLite, over stdio", figure, "≤ 15 ms", median <= 15)


def symbols() -> list[Instrument]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [parse(f"Q{letters[n // 26 % 26]}{letters[n % 26]}Z/USD") for n in range(SYMBOLS)]


def moved(bars: Bars, instrument: Instrument) -> Bars:
    return Bars(instrument, bars.timeframe, *bars.columns())


async def alerts(folder: Path) -> None:
    clock = HandClock(NOW + 1)
    desk = desk_at(folder / "alerts", clock, FEED="none")
    base = minute_bars(parse("BTC/USD"), 7, NOW - 3000 * MINUTE, NOW + MINUTES * MINUTE)
    known = symbols()
    for instrument in known:
        desk.store.write([moved(base.between(0, NOW), instrument)], SOURCE)
    last = float(base.between(0, NOW).close[-1])
    chance = random.Random(7)

    def fill(journal: Journal) -> None:
        for number in range(ALERTS):
            symbol, key = known[number % SYMBOLS].symbol, f"alert_{number}"
            if number % 10 == 0:
                one = Alert(key, "local", symbol, symbol, "4h", Type.INDICATOR_SIGNAL, NOW, None, "rsi", "rsi_oversold")
            else:
                above = number % 2 == 0
                level = amounts.price(round(last * (1 + (1 if above else -1) * chance.uniform(0.0005, 0.2)), 2))
                kind = Type.PRICE_ABOVE if above else Type.PRICE_BELOW
                one = Alert(key, "local", symbol, symbol, "1m", kind, NOW, level)
            journal.put("alert", one, new=True)

    trading = desk.trading
    await trading.records.write(fill)
    await trading.engine.step(None)
    spent, fired = [], 0
    for minute in range(1, MINUTES + 1):
        part = base.between(NOW + (minute - 1) * MINUTE, NOW + minute * MINUTE)
        desk.store.write([moved(part, instrument) for instrument in known], SOURCE)
        clock.advance(MINUTE)
        began = time.perf_counter()
        fired += await trading.engine.step(None)
        spent.append((time.perf_counter() - began) * 1000)
    await desk.close()
    median = statistics.median(spent)
    figure = f"{median:.0f} ms (worst {max(spent):.0f}; {fired} fired in {MINUTES} minutes)"
    row(f"{ALERTS:,} alerts on {SYMBOLS} symbols, one minute", figure, "≤ 100 ms", median <= 100)


async def read_on(home: Path) -> None:
    """A hundred desks, each with its own connection, reading until told to stop: one process of its own."""
    crowd = [desk_at(home, AS_OF=str(NOW)) for _ in range(100)]
    done, failures = 0, 0

    async def read(desk: Desk) -> None:
        nonlocal done, failures
        while not (home / "stop").exists():
            try:
                await desk.trading.orders.listing("local", open_only=True, limit=20)
                await desk.trading.decisions.recent("local", 10, 0, None, None)
                done += 1
            except OpenbellError as error:
                failures += 1
                print(error, file=sys.stderr)

    await asyncio.gather(*(desk.trading.orders.listing("local", open_only=True, limit=1) for desk in crowd))
    (home / "ready").touch()
    await asyncio.gather(*(read(desk) for desk in crowd))
    for desk in crowd:
        await desk.trading.close()
    print(done, failures)


async def readers(folder: Path) -> None:
    home = folder / "readers"
    writer = desk_at(home, AS_OF=str(NOW), RISK_ORDER_SHARE="0", RISK_SYMBOL_SHARE="0")
    instrument = parse("BTC/USD")

    async def place(number: int) -> float:
        asked = request(instrument, Side.BUY, Kind.LIMIT, "0.00001", price="130000", client_order_id=f"r{number}")
        began = time.perf_counter()
        await writer.trading.orders.place("local", asked)
        return (time.perf_counter() - began) * 1000

    await place(-1)
    command = [sys.executable, __file__, "readers", str(home)]
    crowd = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    while not (home / "ready").exists():
        await asyncio.sleep(0.05)
    spent = [await place(number) for number in range(300)]
    (home / "stop").touch()
    done, failures = map(int, (await crowd.communicate())[0].split())
    await writer.close()
    figure = f"{failures} errors in {done:,} reads; an order {statistics.median(spent):.0f} ms meanwhile"
    row("100 reading connections while orders flow", figure, "no error", failures == 0 and done > 0)


def main() -> int:
    if sys.argv[1:2] == ["readers"]:
        asyncio.run(read_on(Path(sys.argv[2])))
        return 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        orders(folder)
        asyncio.run(alerts(folder))
        asyncio.run(readers(folder))
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
