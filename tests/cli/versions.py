"""Price files whose bars depend on a version only, and a process that watches a home while they are imported.

    python -m tests.cli.versions HOME READ_ONLY

reads every series of the home without end, as a desk or as a read-only desk, and prints which version each period has,
whenever that changes. A period must hold every bar, all of one version; otherwise it prints `torn` and ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from pathlib import Path

import numpy as np

from openbell.desk.bars.service import BarService
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.bars import Bars, resample
from openbell.market.clock import iso
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.periods import by_period
from tests.stores.lean import without_pandas
from tests.stores.samples import DAY, EVER, MANY, OCTOBER, at, bars, run

IMPORTED = Source(Origin.IMPORTED, "import")
DAILY = [Series(parse(symbol), Timeframe.D1) for symbol in ("AAPL", "MSFT", "KO", "BTC/USD")]
HOURLY = Series(parse("SPY"), Timeframe.H1)
MINUTES = [Series(parse("ETH/USD")), Series(parse("SOL/USD"))]
"""One is large and goes to files, in two months; the other waits in the buffer."""
TICKERS = [Series(parse(f"{a}{b}"), Timeframe.D1) for a in "QRSTUV" for b in "BCDFGHJKLMNP"]
"""More than are stored in one transaction."""
ALL = [*DAILY, HOURLY, *MINUTES, *TICKERS]


@lru_cache(maxsize=4096)
def expected(series: Series, version: int) -> Bars:
    """All bars of a series in a version."""
    if series.timeframe is Timeframe.M1:
        return run(series, OCTOBER - 30 * 60, MANY if series == MINUTES[0] else 300, version)
    first, last = at("2024-12-02"), at("2025-02-01") if series in TICKERS or series == HOURLY else at("2025-06-01")
    return bars(series, buckets(series.instrument, series.timeframe, first, last)[0], version)


def file_name(series: Series) -> str:
    """The file of a series, which is named by its symbol."""
    return f"{series.instrument.symbol.replace('/', '-')}.csv"


def write_files(folder: Path, version: int) -> None:
    """Write a file for each series but the tickers, which are in one file together."""
    folder.mkdir(parents=True)
    for series in (*DAILY, HOURLY, *MINUTES):
        rows = (",".join([iso(row[0]), *map(repr, row[1:])]) for row in _rows(expected(series, version)))
        text = "\n".join(["timestamp,open,high,low,close,volume", *rows, ""])
        (folder / file_name(series)).write_text(text)
    lines = ["ticker,volume,open,close,high,low,window_start,transactions"]
    for series in TICKERS:
        for time, opened, high, low, close, volume in _rows(expected(series, version)):
            midnight = int(time) // DAY * DAY + 5 * 3600
            lines.append(f"{series.instrument},{volume!r},{opened!r},{close!r},{high!r},{low!r},{midnight}000000000,9")
    (folder / "polygon.txt").write_text("\n".join([*lines, ""]))


def _rows(some: Bars) -> Iterator[tuple[float, ...]]:
    return zip(*(column.tolist() for column in some.columns()), strict=True)


def version_of(series: Series, found: Bars, since: int = 0) -> int | None:
    """The version whose bars of the same times these are; None if there is none."""
    for version in range(since, since + 300):
        whole = expected(series, version)
        part = whole.take(np.isin(whole.time, found.time))
        if len(part) == len(found) and part.same_as(found):
            return version
        if part.open[:1] == found.open[:1]:
            break
    return None


class Watcher:
    """Reads series and prints the version of each period whenever it changes."""

    def __init__(self, service: BarService) -> None:
        self._service = service
        self._versions: dict[tuple[Series, str], int] = {}
        self._kept: dict[Series, Bars] = {}

    async def look(self, series: Series) -> None:
        """Read a series; ends the process if a period lacks a bar or mixes two versions."""
        found = await self._service.latest(series.instrument, series.timeframe)
        if self._kept.get(series) is found:
            return
        self._kept[series] = found
        if not np.array_equal(found.time, expected(series, 0).time):
            raise SystemExit(f"torn {series}: {len(found)} bars")
        for period, part in by_period(found, IMPORTED):
            version = version_of(series, part, self._versions.get((series, period), 0))
            if version is None:
                raise SystemExit(f"torn {series} {period}")
            if self._versions.get((series, period)) != version:
                self._versions[series, period] = version
                print(series.name, period, version, flush=True)

    async def look_at_weeks(self, series: Series) -> None:
        """Read the weeks of a daily series: they are made of days of one version."""
        weeks = await self._service.latest(series.instrument, Timeframe.W1)
        seen = next(version for (each, _), version in self._versions.items() if each == series)
        made = (resample(expected(series, version), Timeframe.W1, EVER) for version in range(seen, seen + 5))
        whole = (each.between(int(weeks.time[0]), int(weeks.time[-1]) + 1) for each in made if len(weeks))
        if len(weeks) < 20 or not any(each.same_as(weeks) for each in whole):
            raise SystemExit(f"torn weeks of {series}: {len(weeks)}")


async def watch(home: str, read_only: str) -> None:
    """Read until killed."""
    settings = {"OPENBELL_HOME": home, "OPENBELL_FEED": "none", "OPENBELL_READ_ONLY": read_only}
    async with Desk(load(settings)) as desk:
        watcher = Watcher(desk.bars)
        for number in count():
            for series in (*DAILY, HOURLY, *MINUTES, *TICKERS[number % 24 :: 24]):
                await watcher.look(series)
            await watcher.look_at_weeks(DAILY[number % len(DAILY)])
            print("round", number, flush=True)
            await asyncio.sleep(0.05)  # leaves the processor to the commands


if __name__ == "__main__":
    without_pandas()
    asyncio.run(watch(*sys.argv[1:]))
