"""A writer to be killed: it writes to a store for ever and prints the number of each operation once it is done.

    python -m tests.stores.writer FOLDER SEED FIRST

The operations depend only on the seed, so that the reader of the numbers knows which bars must be stored.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from openbell.market.bars import Bars
from openbell.market.provenance import Source
from openbell.stores.buffered import BULK
from openbell.stores.parquet.store import ParquetStore
from tests.stores.lean import without_pandas
from tests.stores.samples import FILE, LIVE, MINUTE, OCTOBER, run

SYMBOLS = ("AAPL", "BRK.B", "BTC/USD")
REPLACED = "TSLA"
"""Alternates between two sources; the others have one."""
BASE = OCTOBER - 2500 * MINUTE


@dataclass(frozen=True)
class Operation:
    """`small`, `large`, `replace` or `compact`."""

    kind: str
    parts: tuple[Bars, ...] = ()
    source: Source = LIVE
    before: int = 0

    def apply(self, store: ParquetStore) -> None:
        """Run the operation."""
        if self.kind == "compact":
            store.compact(self.before)
        else:
            store.write(self.parts, self.source, replace=self.kind == "replace")


def operation(seed: int, number: int) -> Operation:
    """The operation of a number, which is also the version of its bars."""
    chance = random.Random(seed * 1_000_003 + number)
    kind = chance.choices(["small", "large", "replace", "compact"], [6, 3, 1, 2])[0]
    if kind == "compact":
        return Operation(kind, before=BASE + chance.randrange(6000) * MINUTE)
    if kind == "large":
        start = BASE + chance.randrange(3000) * MINUTE
        return Operation(kind, (run(chance.choice(SYMBOLS), start, BULK + chance.randrange(500), number),))
    if kind == "replace":
        part = run(REPLACED, OCTOBER + chance.randrange(500) * MINUTE, chance.choice([5, 2500]), number)
        return Operation(kind, (part,), chance.choice([LIVE, FILE]))
    symbols = chance.sample(SYMBOLS, chance.randrange(1, 4))
    starts = [BASE + chance.randrange(6000) * MINUTE for _ in symbols]
    return Operation(
        kind, tuple(run(s, t, chance.randrange(1, 6), number) for s, t in zip(symbols, starts, strict=True))
    )


def main() -> None:
    """Write until killed."""
    folder, seed, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    store = ParquetStore(folder)
    for number in count(first):
        operation(seed, number).apply(store)
        print(number, flush=True)


if __name__ == "__main__":
    without_pandas()
    main()
