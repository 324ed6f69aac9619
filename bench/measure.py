"""What `make bench` measures. Every row names its target; ratios are taken within this one run."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HELLO = [sys.executable, str(HERE / "hello.py")]
OURS = [sys.executable, "-m", "openbell.cli.entry", "mcp", "chart-signals"]
AAPL = {"symbol": "AAPL", "timeframe": "1min"}
PATIENCE = 60.0

rows: list[tuple[str, str, str, bool]] = []


def row(what: str, figure: str, target: str, met: bool) -> None:
    rows.append((what, figure, target, met))
    print(f"{'ok   ' if met else 'SHORT'} {what:<58} {figure:>28}   target {target}", flush=True)


class Client:
    """A client as plain as can be: lines in, lines out."""

    def __init__(
        self, command: list[str], home: str, variables: dict[str, str] | None = None, /, **settings: str
    ) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                **(variables or {}),
                "OPENBELL_HOME": home,
                **{f"OPENBELL_{name}": each for name, each in settings.items()},
            },
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", hello)
        self.start = time.perf_counter() - self.began
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> Any:
        assert self.process.stdout
        self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise RuntimeError(f"{method}: no answer in {PATIENCE:.0f} s")
        answer = json.loads(self.process.stdout.readline() or '{"error": "the server has ended"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        return self.request("tools/call", {"name": name, "arguments": arguments or {}})

    def memory_mb(self, field: str) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{field}:")[1].split()[0]) / 1024

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def timed(work: Callable[[], object], repeat: int) -> list[float]:
    spent = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        spent.append(time.perf_counter() - began)
    return spent


def ms(values: list[float]) -> float:
    return statistics.median(values) * 1000


def servers(home: str, quick: bool) -> None:
    starts: dict[str, list[float]] = {"hello": [], "ours": []}
    for _ in range(4 if quick else 10):
        for name, command in (("hello", HELLO), ("ours", OURS)):
            client = Client(command, home)
            starts[name].append(client.start)
            client.close()
    hello_start, our_start = statistics.median(starts["hello"]), statistics.median(starts["ours"])
    ratio = our_start / hello_start
    row(
        "server start / bare SDK's",
        f"{ratio:.2f} × ({our_start * 1000:.0f} / {hello_start * 1000:.0f} ms)",
        "≤ 1.0 ×",
        ratio <= 1.0,
    )

    count = 500 if quick else 2000
    hello, ours = Client(HELLO, home), Client(OURS, home)
    ours.call("check_market_status")
    rates: dict[str, list[float]] = {"hello": [], "ours": []}
    for _ in range(3):
        for name, client, tool in (("hello", hello, "hello"), ("ours", ours, "check_market_status")):
            began = time.perf_counter()
            for _ in range(count):
                client.call(tool)
            rates[name].append(count / (time.perf_counter() - began))
    hello_rate, our_rate = max(rates["hello"]), max(rates["ours"])
    ratio = our_rate / hello_rate
    row(
        "check_market_status calls/s / bare SDK's hello",
        f"{ratio:.2f} × ({our_rate:.0f} / {hello_rate:.0f})",
        "≥ 1 ×",
        ratio >= 1,
    )
    hello.close()

    ours.call("get_signals", AAPL)
    spent = ms(timed(lambda: ours.call("get_signals", AAPL), count))
    row("get_signals warm, over stdio, median", f"{spent:.2f} ms", "≤ 2 ms", spent <= 2)
    ours.call("get_watchlist")
    memory, peak = ours.memory_mb("VmRSS"), ours.memory_mb("VmHWM")
    row("memory (peak) with 22 symbols", f"{memory:.0f} ({peak:.0f}) MB", "≤ 140 MB", peak <= 140)
    for symbol in ("BTC/USD", "AAPL"):
        for timeframe in ("5min", "15min", "1hour"):
            ours.call("get_signals", {"symbol": symbol, "timeframe": timeframe})
    memory, peak = ours.memory_mb("VmRSS"), ours.memory_mb("VmHWM")
    row("memory (peak) after a year of hours as well", f"{memory:.0f} ({peak:.0f}) MB", "(none)", True)
    ours.close()


def stores(quick: bool) -> None:
    import numpy as np

    from openbell.feeds.sim.bars import minute_bars
    from openbell.market.bars import Bars, make, resample
    from openbell.market.instruments import parse
    from openbell.market.provenance import Origin, Source
    from openbell.market.series import Series
    from openbell.market.timeframes import Timeframe
    from openbell.stores.parquet.store import ParquetStore
    from openbell.stores.port import Span

    source = Source(Origin.SIMULATED, "sim")
    btc = parse("BTC/USD")
    end = 1_767_225_600
    minute_bars(btc, 7, end - 86400, end)
    spent = ms(timed(lambda: minute_bars(btc, 11, end - 365 * 86400, end), 1 if quick else 3))
    row("a year of simulated minutes, one symbol", f"{spent:.0f} ms", "≤ 1000 ms", spent <= 1000)
    year = minute_bars(btc, 7, end - 365 * 86400, end)

    with tempfile.TemporaryDirectory() as folder:
        store = ParquetStore(Path(folder))
        store.write([year], source, covers=Span(int(year.time[0]), end))
        fresh = minute_bars(btc, 7, end, end + 600 * 60)
        store.write([fresh], source)
        last = end + 600 * 60
        assert len(store.tail(Series(btc), 3000, last)) == 3000
        spent = ms(timed(lambda: store.tail(Series(btc), 3000, last), 50))
        row("newest 3,000 bars read (600 of them buffered)", f"{spent:.2f} ms", "≤ 3 ms", spent <= 3)

        symbols = [parse(f"{a}{b}{c}X") for a in "ABCDEFGH" for b in "ABCDEFGH" for c in "ABCDEFGH"][:500]
        at = iter(range(end, end + 60 * 1000, 60))

        def minute() -> list[Bars]:
            time_ = next(at)
            return [make(symbol, Timeframe.M1, [time_], [1.0], [2.0], [0.5], [1.5], [10.0]) for symbol in symbols]

        lease = store.leases.acquire("collector", "bench", 60.0)
        spans = []
        for batch in [minute() for _ in range(10 if quick else 40)]:
            began = time.perf_counter()
            at_ = int(batch[0].time[0])
            store.write(batch, source, covers=Span(at_, at_ + 60), lease=lease)
            spans.append(time.perf_counter() - began)
        spent = ms(spans)
        row("a minute of 500 symbols, durable", f"{spent:.1f} ms", "≤ 15 ms", spent <= 15)
        store.close()

    big = make(
        btc, Timeframe.M1, np.arange(1_000_000) * 60 + 60, *(np.random.default_rng(1).random((5, 1_000_000)) + 1)
    )
    spent = ms(timed(lambda: resample(big, Timeframe.M5, 1e12), 5))
    row("resample 1,000,000 bars to 5 min", f"{spent:.1f} ms", "(none)", True)


def in_process() -> None:
    from openbell.desk.desk import Desk
    from openbell.desk.settings import load
    from openbell.protocol.service import Runner
    from openbell.protocol.session import LOCAL_OPERATOR, Replies, Session, no_notifications
    from openbell.servers import load as load_service

    async def cold(home: str) -> float:
        desk = Desk(load({"OPENBELL_HOME": home}))
        runner = Runner(load_service("chart-signals"), desk)
        client = Session(LOCAL_OPERATOR, no_notifications, Replies())
        began = time.perf_counter()
        reply = await runner.run("get_signals", {"symbol": "ETH/USD", "timeframe": "1hour"}, client)
        assert not reply.is_error
        spent = time.perf_counter() - began
        await desk.close()
        return spent

    with tempfile.TemporaryDirectory() as home:
        first = asyncio.run(cold(home)) * 1000
        second = asyncio.run(cold(home)) * 1000
    row("get_signals 1hour, empty home (4 months fetched)", f"{first:.0f} ms", "(none)", True)
    row("get_signals 1hour, stored, new process", f"{second:.0f} ms", "(none)", True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as home:
        servers(home, quick)
    stores(quick)
    in_process()
    short = [what for what, _, _, met in rows if not met]
    print(f"\n{len(rows) - len(short)} of {len(rows)} targets met" + (f"; short: {', '.join(short)}" if short else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
