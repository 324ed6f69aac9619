"""A process that shares a store with others: it reads jobs, one line of JSON each, and prints the result of each.

    python -m tests.stores.partner

It prints `ready` once it is loaded, so that several can begin a job at the same moment.
"""

from __future__ import annotations

import json
import select
from collections.abc import Callable
from pathlib import Path
from typing import Any

from openbell.market.bars import Bars
from openbell.market.errors import OpenbellError
from openbell.stores.leases import this_process
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Lease, Span
from tests.stores.lean import without_pandas
from tests.stores.model import Reader, assert_same
from tests.stores.samples import EVER, FILE, LIVE, MINUTE, SEPTEMBER, bars, minutes_of, run

SHARED, CONTESTED, REPLACED = "BTC/USD", "ETH/USD", "TSLA"
CONTESTED_MINUTES = 2400
LAST_VERSION = 6
FIXED = run("AAPL", SEPTEMBER + 29 * 86400, 2600)
"""Written repeatedly with the same values, in two months."""

opened: dict[str, ParquetStore] = {}
held: dict[str, Lease] = {}


def store_in(folder: str) -> ParquetStore:
    """The store of a folder, opened once."""
    if folder not in opened:
        opened[folder] = ParquetStore(Path(folder))
    return opened[folder]


def mine(number: int) -> Bars:
    """The bars of the shared symbol that the process of a number writes."""
    return run(SHARED, SEPTEMBER + number * 1000 * MINUTE, 40, number)


def begin(folder: str, number: int) -> int:
    """Open the folder, write this process's bars in small parts, and read them back."""
    store = store_in(folder)
    own = mine(number)
    span = Span(int(own.time[0]), int(own.time[-1]) + MINUTE)
    for first in range(0, len(own), 8):
        store.write([own.take(slice(first, first + 8))], LIVE, covers=span)
        assert_same(store.read(own.series, span.start, span.end), own.take(slice(0, first + 8)))
    return len(own)


def contest(folder: str, number: int) -> int:
    """Write the same minutes as another process, in parts of all sizes, each time in a later version."""
    store = store_in(folder)
    for version in range(1, LAST_VERSION + 1):
        whole = run(CONTESTED, SEPTEMBER, CONTESTED_MINUTES, version * 10 + number)
        size = 600 if version % 2 else CONTESTED_MINUTES
        pieces = [whole.take(slice(first, first + size)) for first in range(0, CONTESTED_MINUTES, size)]
        for piece in pieces:
            store.write([piece], LIVE)
        store.compact(SEPTEMBER + version * 300 * MINUTE)
    return LAST_VERSION


def rewrite(folder: str, rounds: int) -> int:
    """Write the fixed bars again in small and large parts, and compact them: the stored bars do not change."""
    store = store_in(folder)
    moved = 0
    for number in range(rounds):
        step = 97 * number % len(FIXED)
        store.write([FIXED.take(slice(step, step + 300))], LIVE)
        moved += store.compact(int(FIXED.time[step]) + 150 * MINUTE)
        if number % 5 == 0:
            store.write([FIXED], LIVE)
        moved += store.compact(EVER)
    return moved


def watch(folder: str) -> int:
    """Read until the next line of input; every read must be exact. Returns the number of reads."""
    store = store_in(folder)
    reader = Reader(FIXED.series)
    reads = 0
    while reads == 0 or not select.select([0], [], [], 0)[0]:
        start, end, count = int(FIXED.time[reads % 1300]), int(FIXED.time[2599 - reads % 1300]), 1 + reads * 31 % 3000
        where = f"read {reads}"
        assert_same(store.read(FIXED.series, 0, EVER), FIXED, where)
        assert_same(store.read(FIXED.series, start, end), FIXED.between(start, end), where)
        assert_same(store.tail(FIXED.series, count, end), FIXED.between(0, end).tail(count), where)
        assert_same(reader.refresh(store), FIXED, where)
        assert store.stored() == [FIXED.series]
        assert store.size() > 0
        assert store.audit.problems() == []
        reads += 1
    return reads


def replace(folder: str, rounds: int) -> int:
    """Replace minutes by those of another source and back."""
    store = store_in(folder)
    for number in range(rounds):
        source = FILE if number % 2 else LIVE
        store.write([run(REPLACED, SEPTEMBER, 20, _version(source.feed))], source, replace=True)
    return rounds


def insist(folder: str, rounds: int) -> int:
    """Write other minutes of that month as one of the two sources. Returns how often."""
    store = store_in(folder)
    for number in range(rounds):
        store.write([run(REPLACED, SEPTEMBER + (100 + number) * MINUTE, 3, _version(LIVE.feed))], LIVE)
    return rounds


def compare(folder: str) -> int:
    """Read those minutes until the next line of input; every read must hold bars of one source only."""
    store = store_in(folder)
    reads = 0
    while reads == 0 or not select.select([0], [], [], 0)[0]:
        got = store.read(minutes_of(REPLACED), SEPTEMBER, SEPTEMBER + 20 * MINUTE)
        sources = [s for s in (LIVE, FILE) if got.same_as(bars(REPLACED, got.time, _version(s.feed)))]
        assert len(sources) == 1 or len(got) == 0, f"read {reads}: {len(got)} bars of {len(sources)} sources"
        later = store.read(minutes_of(REPLACED), SEPTEMBER + 20 * MINUTE, EVER)
        assert_same(later, bars(REPLACED, later.time, _version(LIVE.feed)), f"read {reads}")
        reads += 1
    return reads


def _version(feed: str) -> int:
    return {LIVE.feed: 1, FILE.feed: 2}[feed]


def read(folder: str, symbol: str) -> int:
    """Read everything."""
    return len(store_in(folder).read(minutes_of(symbol), 0, EVER))


def write(folder: str, symbol: str, count: int, version: int) -> int:
    """Write bars of September."""
    store_in(folder).write([run(symbol, SEPTEMBER, count, version)], LIVE)
    return count


def acquire(folder: str, ttl: float) -> int:
    """Take the lease. Returns its token."""
    held[folder] = store_in(folder).leases.acquire("collector", this_process("partner"), ttl)
    return held[folder].token


def leased_write(folder: str, symbol: str, count: int, version: int) -> int:
    """Write with the lease."""
    part = run(symbol, SEPTEMBER, count, version)
    store_in(folder).write([part], LIVE, covers=Span(0, EVER), lease=held[folder])
    return count


def renew(folder: str, ttl: float) -> int:
    """Renew the lease."""
    store_in(folder).leases.renew(held[folder], ttl)
    return held[folder].token


JOBS: dict[str, Callable[..., int]] = {
    job.__name__: job
    for job in (
        begin, contest, rewrite, watch, replace, insist, compare, read, write, acquire, leased_write, renew
    )
}  # fmt: skip


def main() -> None:
    """Run jobs until standard input ends."""
    print(json.dumps("ready"), flush=True)
    # Unbuffered, because a job may check whether there is another line.
    lines = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 - standard input
    while line := lines.readline():
        job: dict[str, Any] = json.loads(line)
        name = job.pop("do")
        if name == "stop":
            continue
        try:
            answer: Any = JOBS[name](**job)
        except (AssertionError, OpenbellError, OSError) as error:
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    without_pandas()
    main()
