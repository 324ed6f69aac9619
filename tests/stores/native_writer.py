"""A writer of native series to be killed: it prints the number of each write once it is done.

    python -m tests.stores.native_writer FOLDER SEED FIRST

The writes depend only on the seed, so that the reader of the numbers knows which bars must be stored.
"""

from __future__ import annotations

import random
import sys
from itertools import count
from pathlib import Path

from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from tests.stores.lean import without_pandas
from tests.stores.samples import LIVE, bars, whole

SERIES = [
    Series(parse(symbol), timeframe)
    for symbol in ("AAPL", "BTC/USD")
    for timeframe in (Timeframe.M15, Timeframe.H4, Timeframe.D1)
]


def parts_of(seed: int, number: int) -> list[Bars]:
    """The bars of a write; the number is also their version. Most writes hold several series and periods."""
    chance = random.Random(seed * 1_000_003 + number)
    found = []
    for series in chance.sample(SERIES, chance.randrange(1, len(SERIES) + 1)):
        every = whole(series.instrument.symbol, series.timeframe)
        first = chance.randrange(len(every))
        found.append(bars(series, every.time[first : first + chance.choice([1, 5, 2000])], number))
    return found


def main() -> None:
    """Write until killed."""
    folder, seed, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = ParquetStore(folder)
    for number in count(first):
        store.write(parts_of(seed, number), LIVE)
        print(number, flush=True)


if __name__ == "__main__":
    without_pandas()
    main()
