"""The trading core: how long a durable order takes, what ten thousand alerts cost a minute, and a hundred readers beside it.

The floor under an order is the disk: one durable SQLite transaction and one synchronised head, measured in the same run.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.client import OPENBELL, Client
from tests.clocks import HandClock
from tests.sessions import session
from tests.waiting import Pace

from measure import row, rows
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.feeds.sim.bars import minute_bars
from openbell.market.bars import MINUTE, Bars
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.protocol.service import Runner
from openbell.servers import load as server
from openbell.stores.records.journal import Journal
from openbell.trading import amounts
from openbell.trading.alerts import Alert, Type

NOW = 1_763_000_000 // 86400 * 86400 + 15 * 3600
SOURCE = Source(Origin.IMPORTED, "import")
SYMBOLS, ALERTS, MINUTES = 500, 10_000, 65
"""Within these minutes a bar of four hours closes, on which a tenth of the alerts wait."""
PER_SECOND = 80
"""Orders; the desk accepts at most a hundred a second."""
PATIENCE = 120.0
CHARTGEN = [*OPENBELL, "mcp", "chartgen", "--trade"]


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


def placed(client: Client, count: int) -> list[float]:
    """How long each of so many orders took until it was acknowledged, in ms."""
    pace, spent = Pace(PER_SECOND), []
    for number in range(count):
        given = {"symbol": "BTC/USD", "side": "buy", "type": "limit", "quantity": "0.00001"}
        given |= {"price": "130000", "client_order_id": f"bench-{number}"}
        time.sleep(pace.delay())
        began = time.perf_counter()
        answer = client.call("place_order", given)["result"]
        spent.append((time.perf_counter() - began) * 1000)
        assert not answer["isError"], answer
    return spent


def orders(folder: Path) -> None:
    """place_order over real pipes, acknowledged after it is durable."""
    least = floor(folder)
    with Client(folder / "orders", command=CHARTGEN, AS_OF=str(NOW), RISK_POSITIONS="0") as client:
        client.initialize()
        spent = placed(client, 220)[20:]
    median, worst = statistics.median(spent), statistics.quantiles(spent, n=100)[98]
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
    met = median <= 40 and max(spent) <= 300
    row(f"{ALERTS:,} alerts on {SYMBOLS} symbols, one minute", figure, "≤ 40 ms, worst ≤ 300 ms", met)


async def read_on(home: Path, count: int) -> None:
    """So many desks, each with its own connection, that read until `stop` appears or the parent is gone: one process."""
    crowd = [desk_at(home, AS_OF=str(NOW)) for _ in range(count)]
    parent, deadline = os.getppid(), time.monotonic() + PATIENCE
    done, failures = 0, 0

    async def read(desk: Desk) -> None:
        nonlocal done, failures
        runners = {name: Runner(server(name), desk) for name in ("chartgen", "decisions")}
        asked = {"limit": 10, "force_refresh": True}
        while not (home / "stop").exists() and os.getppid() == parent and time.monotonic() < deadline:
            replies = [await runners["chartgen"].run("get_orders", {}, session())]
            replies.append(await runners["decisions"].run("get_recent_decisions", asked, session()))
            done += 1
            for reply in replies:
                if reply.is_error:
                    failures += 1
                    print(reply.payload, file=sys.stderr)

    reading = [asyncio.create_task(read(desk)) for desk in crowd]
    while done < count and not all(task.done() for task in reading):
        await asyncio.sleep(0.05)
    (home / "ready").touch()
    await asyncio.gather(*reading)
    for desk in crowd:
        await desk.trading.close()
    print(done, failures)


def readers(folder: Path, count: int = 100) -> None:
    home = folder / "readers"
    command = [sys.executable, __file__, "readers", str(home), str(count)]
    free = {"RISK_ORDER_SHARE": "0", "RISK_SYMBOL_SHARE": "0"}
    with Client(home, command=CHARTGEN, AS_OF=str(NOW), **free) as client:
        client.initialize()
        placed(client, 1)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as crowd:
            try:
                deadline = time.monotonic() + PATIENCE
                while not (home / "ready").exists():
                    assert crowd.poll() is None, "the readers have ended"
                    assert time.monotonic() < deadline, "the readers do not start"
                    time.sleep(0.05)
                spent = placed(client, 301)[1:]
                (home / "stop").touch()
                done, failures = map(int, crowd.communicate(timeout=PATIENCE)[0].split())
            finally:
                crowd.kill()
    figure = f"{failures} errors in {done:,} reads; an order {statistics.median(spent):.0f} ms meanwhile"
    row(f"{count} reading connections while orders flow", figure, "no error", failures == 0 and done > 0)


def main() -> int:
    if sys.argv[1:2] == ["readers"]:
        asyncio.run(read_on(Path(sys.argv[2]), int(sys.argv[3])))
        return 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        orders(folder)
        asyncio.run(alerts(folder))
        readers(folder)
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
