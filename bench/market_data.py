"""The server market-data on 500,000 minutes: Parquet files and InfluxDB, and how fast a file is imported.

The time is that of the call inside the server, as a client reads it in `_metadata.latency_ms`.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.sessions import session
from tests.stores.influx_server import InfluxServer, NotHere

from measure import row, rows
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.feeds.sim.bars import minute_bars
from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.protocol.service import Runner
from openbell.servers import load as server

COUNT = 500_000
END = 1_763_000_000 // 86400 * 86400


async def calls(runner: Runner, repeat: int, **more: Any) -> list[float]:
    spent = []
    for _ in range(repeat):
        asked = {"symbol": "BTC/USD", "timeframe": "1h", "limit": 1000, **more}
        reply = await runner.run("get_candles", asked, session())
        assert not reply.is_error, reply.payload
        assert len(reply.payload["data"]["items"]) == 1000
        spent.append(reply.payload["_metadata"]["latency_ms"])
    return spent


def candles(bars: Bars, home: Path, url: str) -> None:
    settings = {"HOME": str(home), "FEED": "none", "AS_OF": str(END + 18000), "TIMEOUT": "60", "INFLUX_URL": url}
    desk = Desk(load({f"OPENBELL_{name}": value for name, value in settings.items()}))
    desk.store.write([bars], Source(Origin.IMPORTED, "import"))
    runner = Runner(server("market-data"), desk)

    async def measure() -> tuple[float, float, float]:
        first = (await calls(runner, 1))[0]
        fresh = statistics.median(await calls(runner, 15, force_refresh=True))
        cached = statistics.median(await calls(runner, 15))
        await desk.close()
        return first, fresh, cached

    first, fresh, cached = asyncio.run(measure())
    where, most = ("InfluxDB", 60) if url else ("Parquet", 25)
    figure = f"{fresh:.1f} ms (the very first {first:.0f})"
    row(f"get_candles(1h, 1000) of 500k minutes, {where}", figure, f"≤ {most} ms", fresh <= most)
    row(f"the same, cached, {where}", f"{cached:.2f} ms", "≤ 1 ms", cached <= 1)


def importing(bars: Bars, folder: Path) -> None:
    file = folder / "bars.csv"
    columns = [bars.time.tolist(), *(column.tolist() for column in bars.columns()[1:])]
    lines = (",".join(map(str, values)) for values in zip(*columns, strict=True))
    file.write_text("timestamp,open,high,low,close,volume\n" + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "openbell.cli.entry", "import", str(file), "--symbol", "BTC/USD"]
    best = float("inf")
    for number in range(3):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env={"OPENBELL_HOME": str(folder / str(number))})
        best = min(best, time.perf_counter() - began)
    row("openbell import, whole command", f"{COUNT / best / 1000:.0f}k bars/s", "≥ 300k", COUNT / best >= 300_000)


def main() -> int:
    bars = minute_bars(parse("BTC/USD"), 7, END - COUNT * 60, END)
    with TemporaryDirectory() as folder:
        candles(bars, Path(folder) / "files", "")
        try:
            influx = InfluxServer()
        except NotHere as error:
            print(f"NOT MEASURED: {error}", file=sys.stderr)
        else:
            candles(bars, Path(folder) / "influx", influx.url)
            influx.close()
        importing(bars, Path(folder))
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
