"""A home as the version before trading days of currencies left it: forex days from midnight UTC."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from openbell.market.bars import Bars, make
from openbell.market.provenance import Source
from openbell.stores import bar_files
from openbell.stores.bar_table import table_of
from openbell.stores.periods import by_period
from tests.stores.samples import DAY


def at_midnight(days: Bars) -> Bars:
    """Returns daily or weekly bars with the times that the earlier version had given them."""
    times = (days.time // DAY + 1) * DAY
    return make(days.instrument, days.timeframe, times, *days.columns()[1:])


def make_old(folder: Path, days: Bars, source: Source) -> Path:
    """Give a stored series of days its old times, file and buffer. Returns the path of the file."""
    ((period, old),) = by_period(at_midnight(days), source)
    file = bar_files.bar_file(folder, days.series, period)
    key = b"openbell."
    meta = {
        key + b"symbol": days.series.name.encode(),
        key + b"month": period.encode(),
        key + b"origin": source.origin.value.encode(),
        key + b"feed": source.feed.encode(),
        key + b"adjustment": source.adjustment.encode(),
    }
    file.path.write_bytes(bar_files._with_checksum(table_of(old, meta)))
    make_old_buffer(folder)
    return file.path


def make_old_buffer(folder: Path) -> None:
    """Set the version of the buffer back, and remove the tables that it did not have."""
    with closing(sqlite3.connect(folder / "buffer.sqlite")) as db:
        db.execute("UPDATE newest SET time = (time / 86400 + 1) * 86400")
        for later in ("stored", "losses", "rollup_mark"):
            db.execute(f"DROP TABLE {later}")
        db.execute("PRAGMA user_version = 5")
        db.commit()
