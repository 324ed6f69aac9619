"""From a durable bar to a delivered alert: inside one process, and from the engine's process to a client's."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.clocks import HandClock

from measure import row, rows
from openbell.desk.alerts.inbox import Send
from openbell.desk.alerts.service import Condition
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.bars import MINUTE, make
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.timeframes import Timeframe
from openbell.trading.alerts import AlertFilter, Type

SOURCE = Source(Origin.IMPORTED, "import")
START = int(time.time()) // 86400 * 86400 - 86400
ROUNDS = 60
BTC = parse("BTC/USD")
ME = "local"
PATIENCE = 120.0


def desk_in(home: Path, at: float) -> tuple[Desk, HandClock]:
    settings = {"HOME": str(home), "FEED": "none", "TRADE": "1", "STALE_AFTER": "1000000"}
    desk = Desk(load({f"OPENBELL_{name}": value for name, value in settings.items()}))
    clock = HandClock(at)
    desk.clock = clock
    return desk, clock


async def fire(folder: Path, *, outside: bool) -> list[float]:
    """Milliseconds from each durable bar to its alert, here or in another process."""
    desk, clock = desk_in(folder, float(START))
    got: asyncio.Queue[float] = asyncio.Queue()

    async def here(_method: str, _params: dict[str, Any]) -> None:
        got.put_nowait(time.time())

    spent: list[float] = []
    async with desk:
        store(desk, START - MINUTE)
        await desk.trading.inbox.subscribe(ME, AlertFilter())
        desk.trading.start()
        child = await start(folder, got) if outside else None
        if child is None:
            desk.trading.push_to(desk, ME, here)
        try:
            for number in range(ROUNDS):
                await desk.trading.alerts.set(ME, "BTC/USD", "1m", Condition(Type.PRICE_ABOVE, 1.0))
                await asyncio.sleep(0.15)  # the engine has seen the alert, and the watchers are between two looks
                clock.advance(MINUTE)
                await asyncio.sleep(0.15)
                store(desk, START + number * MINUTE)
                durable = time.time()
                desk.bars.history.on_stored()
                spent.append((await asyncio.wait_for(got.get(), PATIENCE) - durable) * 1000)
        finally:
            if child is not None:
                child.kill()
    return spent[5:]


def store(desk: Desk, at: int) -> None:
    desk.store.write([make(BTC, Timeframe.M1, [at], [2.0], [2.0], [2.0], [2.0], [1.0])], SOURCE)


async def start(folder: Path, got: asyncio.Queue[float]) -> asyncio.subprocess.Process:
    """A process that only pushes to its client; it prints the time of each push."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "push", str(folder), stdout=subprocess.PIPE, env={**os.environ}
    )
    assert child.stdout
    assert (await asyncio.wait_for(child.stdout.readline(), PATIENCE)).strip() == b"ready"

    async def read() -> None:
        assert child.stdout
        while line := await child.stdout.readline():
            got.put_nowait(float(line))

    reading.add(asyncio.create_task(read()))
    return child


reading: set[asyncio.Task[None]] = set()


async def push(folder: Path) -> None:
    """The other process: it ends with its parent."""
    desk, _ = desk_in(folder, float(START + 86000))
    parent = os.getppid()

    async def told(_method: str, _params: dict[str, Any]) -> None:
        print(time.time(), flush=True)

    send: Send = told
    async with desk:
        await desk.trading.inbox.look(ME)
        desk.trading.push_to(desk, ME, send)
        await asyncio.sleep(0.5)
        print("ready", flush=True)
        while os.getppid() == parent:
            await asyncio.sleep(0.2)


def main() -> int:
    if sys.argv[1:2] == ["push"]:
        asyncio.run(push(Path(sys.argv[2])))
        return 0
    for what, outside, most in (
        ("durable bar to delivered alert, one process, median", False, 50.0),
        ("durable bar to delivered alert, across processes, median", True, 300.0),
    ):
        with TemporaryDirectory() as name:
            spent = asyncio.run(fire(Path(name), outside=outside))
        median = statistics.median(spent)
        row(what, f"{median:.0f} ms (worst {max(spent):.0f})", f"≤ {most:.0f} ms", median <= most)
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
