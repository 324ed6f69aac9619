"""Decades of daily bars: reading the newest, importing one file and thousands, and a screen of all symbols.

The start of a command is measured as `openbell import --help` in the same run and subtracted where a row says so.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from measure import Client, ms, row, rows, timed
from openbell.desk.bars.service import BarService
from openbell.feeds.none.feed import NoFeed
from openbell.market.bars import Bars
from openbell.market.clock import FixedClock
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import BarStore, Span

OPENBELL = [sys.executable, "-m", "openbell.cli.entry"]
SOURCE = Source(Origin.IMPORTED, "import")
NOW = 1_763_000_000 // 86400 * 86400
YEARS = 20
SYMBOLS = 5000
FILES = 500
"""Files of the import through the command line, each with 20 years of one symbol."""
BATCH = 64
REPEAT = 15


def instruments(count: int) -> list[Instrument]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [parse("".join(letters[n // 26**power % 26] for power in (2, 1, 0)) + "Q") for n in range(count)]


def days(instrument: Instrument, years: int = YEARS) -> Bars:
    """A random walk with a price each session."""
    opens = buckets(instrument, Timeframe.D1, NOW - years * 31_557_600, NOW)[0]
    chance = np.random.default_rng(sum(map(ord, instrument.symbol)))
    close = np.round(100 * np.exp(np.cumsum(chance.normal(0, 0.01, len(opens)))), 2)
    before = np.append(100.0, close[:-1])
    high, low = np.maximum(close, before) + 0.25, np.minimum(close, before) - 0.25
    volume = chance.integers(1_000, 5_000_000, len(opens)).astype(float)
    return Bars(instrument, Timeframe.D1, opens, before, high, np.maximum(low, 0.01), close, volume)


def write_csv(path: Path, bars: Bars) -> None:
    """As Yahoo writes it."""
    lines = ["Date,Open,High,Low,Close,Volume"]
    for time_, *prices, volume in zip(*(column.tolist() for column in bars.columns()), strict=True):
        date = datetime.fromtimestamp(time_, UTC).date()
        lines.append(f"{date},{','.join(f'{price:.2f}' for price in prices)},{volume:.0f}")
    path.write_text("\n".join(lines) + "\n")


def command(home: Path, *words: str) -> float:
    """Seconds that a command takes."""
    environment = {**os.environ, "OPENBELL_HOME": str(home), "OPENBELL_FEED": "none"}
    began = time.perf_counter()
    subprocess.run([*OPENBELL, *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def one_file(folder: Path) -> None:
    bars = days(parse("AAPL"))
    write_csv(folder / "AAPL.csv", bars)
    start, whole = [], []
    for number in range(REPEAT // 2):
        start.append(command(folder / "none", "import", "--help"))
        whole.append(command(folder / f"one-{number}", "import", str(folder / "AAPL.csv"), "--symbol", "AAPL"))
    beyond = ms(whole) - ms(start)
    figure = f"{beyond:.0f} ms of {ms(whole):.0f}, {len(bars):,} bars"
    row("import of 20 years of days, beyond the command's start", figure, "≤ 150 ms", beyond <= 150)
    client = Client([*OPENBELL, "mcp", "market-data"], str(folder / "one-0"), FEED="none", AS_OF=str(NOW))
    given = {"symbol": "AAPL", "timeframe": "1d", "limit": 1000}
    first = timed(lambda: client.call("get_candles", given | {"limit": 10}), 1)[0] * 1000
    second = timed(lambda: client.call("get_candles", given), 1)[0] * 1000
    client.close()
    figure = f"{second:.1f} ms (first call {first:.0f})"
    row("get_candles(1d, 1000), a new process's second call", figure, "≤ 10 ms", second <= 10)


def newest(folder: Path) -> None:
    apple = parse("AAPL")
    with closing(ParquetStore(folder / "one-0" / "data")) as store:
        series = Series(apple, Timeframe.D1)
        found = timed(lambda: store.resampled(series, Timeframe.D1, 3000, NOW), REPEAT)

        async def read() -> float:
            service = BarService(store, NoFeed(), FixedClock(float(NOW)))
            began = time.perf_counter()
            assert len(await service.latest(apple, Timeframe.D1)) == 3000
            spent = time.perf_counter() - began
            await service.threads.close()
            return spent

        desk = [asyncio.run(read()) for _ in range(REPEAT)]
    figure = f"{ms(found):.1f} ms in the store, {ms(desk):.1f} as the desk reads them"
    row("newest 3,000 daily bars", figure, "≤ 3 ms", max(ms(found), ms(desk)) <= 3)


def batches(known: list[Instrument]) -> Iterator[list[Bars]]:
    for at in range(0, len(known), BATCH):
        yield [days(each) for each in known[at : at + BATCH]]


def many_symbols(folder: Path) -> None:
    known = instruments(SYMBOLS)
    store: BarStore = ParquetStore(folder / "many" / "data")
    spent, count = 0.0, 0
    for parts in batches(known):
        covers = {part.series: [Span(int(part.time[0]), NOW)] for part in parts}
        began = time.perf_counter()
        store.write(parts, SOURCE, covers=covers)
        spent += time.perf_counter() - began
        count += sum(map(len, parts))
    row(
        f"  stored: {SYMBOLS:,} symbols, {count / 1e6:.1f} M daily bars",
        f"{count / spent / 1e3:.0f}k bars/s",
        "(none)",
        True,
    )
    found = timed(lambda: store.newest(Timeframe.D1, NOW), 7)
    assert len(store.newest(Timeframe.D1, NOW)) == SYMBOLS
    row(f"a screen over the newest day of {SYMBOLS:,} symbols", f"{ms(found):.0f} ms", "≤ 150 ms", ms(found) <= 150)
    store.close()


def many_files(folder: Path) -> None:
    files = folder / "files"
    files.mkdir()
    count = 0
    for instrument in instruments(FILES):
        bars = days(instrument)
        count += len(bars)
        write_csv(files / f"{instrument.symbol}.csv", bars)
    spent = command(folder / "files-home", "import", f"{files}/*.csv", "--by-name")
    rate = count / spent
    row(
        f"import of {FILES} CSV files with 20 years of days each",
        f"{rate / 1e3:.0f}k bars/s",
        "≥ 500k bars/s",
        rate >= 5e5,
    )


def main() -> int:
    """Measure and print."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        one_file(folder)
        newest(folder)
        many_symbols(folder)
        many_files(folder)
    return len([met for *_, met in rows if not met]) and 0


if __name__ == "__main__":
    sys.exit(main())
