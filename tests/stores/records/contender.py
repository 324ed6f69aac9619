"""A process that wants the engine's lease and writes while it holds it: `python -m … URL SCHEMA FOLDER LABEL`.

It prints `ready`, `took TOKEN` and `lost`. A line on its standard input is a number of seconds for which its event loop
stands still.
Half a core is always busy with other work.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from itertools import count
from pathlib import Path

from openbell.desk.events import leased_work
from openbell.desk.events.leased_work import LeasedWork, LeasesInRecords
from openbell.desk.events.supervision import WorkStatus
from openbell.market.errors import LeaseLost
from openbell.stores.port import Lease
from tests.stores.records.places import Place, decision

TTL = 1.5
_numbers = count()


def load() -> None:
    """Keep the interpreter busy for half of the time."""
    while True:
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass
        time.sleep(0.02)


def stand_still(loop: asyncio.AbstractEventLoop) -> None:
    """Block the event loop as long as each line says."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(time.sleep, float(line))


async def main(place: Place, label: str) -> None:
    """Work until killed."""
    async with place.opened() as records:

        async def work(lease: Lease, renewing: asyncio.Task[None]) -> None:
            print(f"took {lease.token}", flush=True)
            try:
                while not renewing.done():
                    row = decision(f"{label}-{next(_numbers)}", reasoning=f"{lease.token}")
                    await records.write(lambda journal: journal.put("decision", row, new=True), lease=lease)  # noqa: B023
                    await asyncio.sleep(0.01)
                await renewing
            except LeaseLost:
                print("lost", flush=True)
                raise

        await records.read(lambda _view: None)
        print("ready", flush=True)
        await LeasedWork(LeasesInRecords(records), "engine", label, WorkStatus()).run(work)


async def start(place: Place, label: str) -> None:
    """Start the load, then work."""
    threading.Thread(target=load, daemon=True).start()
    threading.Thread(target=stand_still, args=(asyncio.get_running_loop(),), daemon=True).start()
    await main(place, label)


if __name__ == "__main__":
    setattr(leased_work, "LEASE_SECONDS", TTL)  # noqa: B010 - shorter than in earnest
    setattr(leased_work, "STANDBY_SECONDS", 0.05)  # noqa: B010
    url, schema, folder, name = sys.argv[1:]
    asyncio.run(start(Place(Path(folder), url, schema), name))
