"""Replaces bars in InfluxDB and kills itself in the middle.

    python -m tests.stores.influx_replacer URL DATABASE FOLDER NAME STEP

runs one of `REPLACEMENTS` and kills itself before its step of that number; prints how many steps it has taken if there are
fewer. A step is a request that changes InfluxDB, or the commit of a transaction of the buffer.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from openbell.market.bars import Bars, closed_at, merge
from openbell.market.provenance import Source
from openbell.market.timeframes import Timeframe
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import BULK
from openbell.stores.influx.http import InfluxHttp
from openbell.stores.influx.store import InfluxStore
from openbell.stores.port import Span
from tests.stores.lean import without_pandas
from tests.stores.samples import DAY, FILE, LIVE, MINUTE, SEPTEMBER, bars, run, whole

DAYS = whole("AAPL", Timeframe.D1)
MINUTES = merge(run("AAPL", SEPTEMBER, BULK), run("AAPL", SEPTEMBER + 3 * DAY, 300))


@dataclass(frozen=True)
class Replacement:
    """Bars of a feed, and those of a file that replace some or all of them."""

    before: Bars
    new: Bars
    source: Source = FILE

    @property
    def after(self) -> Bars:
        """What is stored once it is done: bars of another adjustment are dropped as a whole."""
        if self.source.adjustment != LIVE.adjustment:
            return self.new
        first, last = self.new.time[0], self.new.time[-1] + 1
        return merge(self.before.between(0, first), self.new, self.before.between(last, 2**40))

    @property
    def covered(self) -> Span:
        """The time that the feed has covered."""
        return Span(int(self.before.time[0]), closed_at(self.before))

    def prepare(self, store: InfluxStore) -> None:
        """Store the bars of the feed."""
        store.write([self.before], LIVE, covers=self.covered)

    def run(self, store: InfluxStore) -> None:
        """Replace them."""
        covers = Span(int(self.new.time[0]), closed_at(self.new))
        store.write([self.new], self.source, covers=covers, replace=True)


SPLIT = replace(FILE, adjustment="split")
REPLACEMENTS = {
    "some minutes": Replacement(MINUTES, run("AAPL", SEPTEMBER + 600 * MINUTE, 500, 7)),
    "all minutes of a month": Replacement(MINUTES, run("AAPL", SEPTEMBER - DAY, 5 * 1440, 7).between(SEPTEMBER, 2**40)),
    "some days": Replacement(DAYS, bars(DAYS.series, DAYS.time[5:9], 7)),
    "days of another adjustment": Replacement(DAYS, bars(DAYS.series, DAYS.time[5:], 7), SPLIT),
}


@contextmanager
def dying(step: int) -> Iterator[list[int]]:
    """Kill this process before a step. Yields the steps that it has taken."""
    taken: list[int] = []

    def count() -> None:
        if len(taken) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        taken.append(len(taken))

    send: Callable[..., Any] = InfluxHttp._send
    transaction: Callable[..., Any] = Buffer.transaction

    def counted_send(self: InfluxHttp, method: str, path: str, **rest: Any) -> Any:
        if method == "POST":
            count()
        return send(self, method, path, **rest)

    @contextmanager
    def counted_transaction(self: Buffer, *given: Any, **named: Any) -> Iterator[Any]:
        with transaction(self, *given, **named) as db:
            yield db
            count()

    with (
        mock.patch.object(InfluxHttp, "_send", counted_send),
        mock.patch.object(Buffer, "transaction", counted_transaction),
    ):
        yield taken


def main() -> None:
    """Replace, or die."""
    url, database, folder, name, step = sys.argv[1:]
    store = InfluxStore(InfluxHttp(url, database), Path(folder))
    with dying(int(step)) as taken:
        REPLACEMENTS[name].run(store)
    print(len(taken), flush=True)


if __name__ == "__main__":
    without_pandas()
    main()
