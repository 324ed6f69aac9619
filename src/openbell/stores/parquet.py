"""The embedded bar store: Parquet months behind a SQLite buffer.

Small writes go to the buffer and are moved to the month files later (`compact`); large ones go straight to the files. A
month file is only ever changed while the buffer's write lock is held, and a bar leaves the buffer in the same transaction
in which its file has been replaced, so a reader that asks the buffer first and the files second misses nothing.
"""

from __future__ import annotations

import logging
import sqlite3
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, StoreError
from openbell.market.instruments import Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores import larger, month_files
from openbell.stores.buffer import Buffer
from openbell.stores.buffered import FIRST, LAST, BufferedStore, conflict
from openbell.stores.month_files import MonthFile
from openbell.stores.months import by_month, month_of, month_span
from openbell.stores.port import Lease, Premature, Span

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

_CHANCES = 10
"""How often a file may be damaged in one look and sound in the next, before that is the error."""


class ParquetStore(BufferedStore):
    """Implements `stores.port.BarStore` in one folder (`data/` or `simulated/data/`)."""

    name = "parquet"

    def __init__(self, root: Path, origins: frozenset[Origin] | None = None) -> None:
        """`origins` are the only ones whose bars this folder may hold: a file of another is set aside."""
        self.root = root
        self._origins = origins
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot use {root}: {error}") from error
        self._buffer = Buffer(root / "buffer.sqlite", origins)
        self._counts: dict[tuple[Path, Timeframe], tuple[object, int]] = {}

    def _file(self, instrument: Instrument, month: str) -> MonthFile:
        return month_files.month_file(self.root, instrument, month, self._origins)

    # Writing

    def _write_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        self._mending(self._put_month, month, bars, source, lease, replace)

    def _write_small(
        self, parts: Sequence[Bars], source: Source, covers: Span | None, lease: Lease | None, replace: bool
    ) -> None:
        self._mending(super()._write_small, parts, source, covers, lease, replace)

    def _owner(self, db: sqlite3.Connection, series: int, instrument: Instrument, month: str) -> Source | None:
        """As the month is marked or, if it is not, as its file says."""
        marked = self._buffer.month_source(db, series, month)
        return marked or month_files.source_of(self._file(instrument, month))

    def _put_month(self, month: str, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> None:
        """Merge bars into their month's file.

        A file cannot change in the same instant as the buffer. So that being killed in between hides nothing, the change
        is announced first.
        """
        file = self._file(bars.instrument, month)
        merged = False
        while not merged:
            if replace:
                self._compact_month(file.instrument, month, LAST)
            self._announce(file, source, lease, replace)
            merged = self._merge_month(file, bars, source, lease, replace)

    def _announce(self, file: MonthFile, source: Source, lease: Lease | None, replace: bool) -> None:
        """Make readers read again until the change is done; let go of a month of another source that is to be replaced.

        From then on the file itself decides whose the month is: the old one or, once it is in place, the new one.
        """
        start, end = month_span(file.month)
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            series = self._buffer.claim_series(db, file.instrument)
            owner = self._owner(db, series, file.instrument, file.month)
            if owner not in {None, source}:
                if not replace:
                    raise conflict(file.instrument, file.month, owner, source)
                if not len(self._buffer.get(file.instrument, start, end, 1)):
                    db.execute("DELETE FROM months WHERE series = ? AND month = ?", (series, file.month))
                    self._buffer.uncover(db, series, Span(start, end))
            db.execute("UPDATE series SET epoch = epoch + 1 WHERE id = ? AND epoch % 2 = 0", (series,))

    def _merge_month(self, file: MonthFile, bars: Bars, source: Source, lease: Lease | None, replace: bool) -> bool:
        """Put the new file in place and drop what the buffer held of its minutes; False if others came in between."""
        with self._buffer.transaction() as db:
            self._check_lease(lease)
            series = self._buffer.claim_series(db, file.instrument)
            announced = self._buffer.state(file.instrument)[0] % 2 == 1
            owner = self._owner(db, series, file.instrument, file.month)
            let_go = replace and self._buffer.month_source(db, series, file.month) is None
            if not announced or (owner not in {None, source} and not let_go):
                return False
            stored = self._read_file(file) if owner == source else barlib.empty(file.instrument)
            month_files.write(file, barlib.merge(stored, bars), source)
            self._buffer.set_month_source(db, series, file.month, source)
            if len(self._buffer.get(file.instrument, int(bars.time[0]), int(bars.time[-1]) + 1, 1)):
                times = bars.time.tolist()
                db.executemany("DELETE FROM bars WHERE series = ? AND time = ?", ((series, t) for t in times))
            self._changed(db, series)
        return True

    def compact(self, before: int) -> int:
        """Move buffered bars that opened before `before` into their month files."""
        with self._buffer.transaction():
            month_files.sweep(self.root)
        return sum(self._compact(instrument, before) for instrument in self._buffer.buffered())

    def _compact(self, instrument: Instrument, before: int) -> int:
        months = {month for month, _ in by_month(self._buffer.get(instrument, FIRST, before))}
        return sum(self._mending(self._compact_month, instrument, month, before) for month in sorted(months))

    def _compact_month(self, instrument: Instrument, month: str, before: int) -> int:
        start, end = month_span(month)
        with self._buffer.transaction() as db:
            series = self._buffer.claim_series(db, instrument)
            waiting = self._buffer.get(instrument, start, min(end, before))
            source = self._buffer.month_source(db, series, month)
            if not len(waiting) or source is None:
                return 0
            file = self._file(instrument, month)
            month_files.write(file, barlib.merge(self._read_file(file), waiting), source)
            db.execute(
                "DELETE FROM bars WHERE series = ? AND time >= ? AND time < ?", (series, start, min(end, before))
            )
            db.execute(
                "UPDATE series SET epoch = epoch + epoch % 2, compacted_seq = version, compacted_from ="
                " CASE WHEN compacted_seq = 0 THEN ? ELSE min(compacted_from, ?) END WHERE id = ?",
                (int(waiting.time[0]), int(waiting.time[0]), series),
            )
        return len(waiting)

    def _mend(self, found: Premature) -> None:
        self._mending(super()._mend, found)

    def _drop(self, db: sqlite3.Connection, series: int, instrument: Instrument, span: Span) -> None:
        for month in {*month_files.existing(self.root, instrument), *self._buffer.months(instrument)}:
            start, end = month_span(month)
            if end <= span.start or start >= span.end:
                continue
            file = self._file(instrument, month)
            stored = self._read_file(file)
            kept = barlib.merge(stored.between(FIRST, span.start), stored.between(span.end, LAST))
            source = month_files.source_of(file)
            if source and 0 < len(kept) < len(stored):
                month_files.write(file, kept, source)
            elif not len(kept):
                file.path.unlink(missing_ok=True)
                if not len(self._buffer.get(instrument, start, end, 1)):
                    db.execute("DELETE FROM months WHERE series = ? AND month = ?", (series, month))

    # Reading

    def read(self, instrument: Instrument, start: int, end: int) -> Bars:
        """See the port."""
        return self._mending(self._read, instrument, start, end, None)

    def tail(self, instrument: Instrument, count: int, end: int) -> Bars:
        """See the port."""
        return self._mending(self._read, instrument, FIRST, end, count).tail(count)

    def larger(self, instrument: Instrument, timeframe: Timeframe, count: int, end: int, skip: int = 0) -> Bars:
        """See the port."""
        return larger.newest(self.tail, instrument, timeframe, count, end, skip)

    def count(self, instrument: Instrument, timeframe: Timeframe, end: int) -> int:
        """See the port. No bar but a week's reaches over a month's end: months are counted once and remembered."""
        if timeframe is Timeframe.W1:
            return len(barlib.resample(self.read(instrument, FIRST, end), timeframe, end))
        fresh = {month for month, _ in by_month(self._buffer.get(instrument, FIRST, end))}
        months = sorted(fresh | set(month_files.existing(self.root, instrument)))
        return sum(self._count(instrument, timeframe, month, end, month in fresh) for month in months)

    def _count(self, instrument: Instrument, timeframe: Timeframe, month: str, end: int, fresh: bool) -> int:
        """How many bars of a month had closed; `fresh` if some of them are still in the buffer."""
        start, stop = month_span(month)
        if start >= end:
            return 0
        file, until = self._file(instrument, month), min(stop, end)
        state = (until, month_files.version(file), self._buffer.state(instrument) if fresh else None)
        known = self._counts.get((file.path, timeframe))
        if known and known[0] == state:
            return known[1]
        times = self.read(instrument, start, until).time if fresh else self._mending(self._times, file)
        found = barlib.count(instrument, timeframe, times, until)
        self._counts[file.path, timeframe] = state, found
        return found

    def _times(self, file: MonthFile) -> Times:
        try:
            return month_files.times(file)
        except FileNotFoundError:
            return barlib.empty(file.instrument).time

    def _read(self, instrument: Instrument, start: int, end: int, newest: int | None) -> Bars:
        """Buffer first, files second; again if bars were moved from one to the other in between."""
        while True:
            before = self._buffer.state(instrument)
            buffered = self._buffer.get(instrument, start, end, newest)
            stored = self._read_files(instrument, start, end, newest)
            after = self._buffer.state(instrument)
            if (before[0], before[2]) == (after[0], after[2]):
                return barlib.merge(*stored, buffered) if stored else buffered

    def _read_files(self, instrument: Instrument, start: int, end: int, newest: int | None) -> list[Bars]:
        found: list[Bars] = []
        rows = 0
        for month in reversed(month_files.existing(self.root, instrument)):
            file = self._file(instrument, month)
            first, last = month_span(file.month)
            if first >= end:
                continue
            if last <= start or (newest is not None and rows >= newest) or month_files.ends_before(file, start):
                break
            part = self._read_file(file, start, end, None if newest is None else newest - rows)
            rows += len(part)
            found.append(part)
        return found[::-1]

    def _read_file(self, file: MonthFile, start: int = FIRST, end: int = LAST, newest: int | None = None) -> Bars:
        try:
            return month_files.read(file, start, end, newest)
        except FileNotFoundError:
            return barlib.empty(file.instrument)

    def _mending(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something with month files; when one of them turns out to be damaged, set it aside and do it again."""
        mended = 0
        while True:
            try:
                return work(*args, **kwargs)
            except CorruptFile as damage:
                instrument = parse(damage.details["symbol"])
                file = self._file(instrument, damage.details["month"])
                mended += not self._set_aside(file)
                if mended > _CHANCES:
                    raise

    def _set_aside(self, file: MonthFile) -> bool:
        """Move a damaged file out of the way, remember it, and let the feed fill its month again.

        The buffer learns of it before the file moves: killed in between, the month is a gap already and the file will be
        found damaged once more. Each look is under the lock: False if another process has mended it meanwhile.
        """
        start, end = span = month_span(file.month)
        aside = file.path.with_name(f"{file.path.name}.corrupt-{time.time_ns()}")
        with self._buffer.transaction() as db:
            reason = month_files.damage(file)
            if not reason:
                return False
            series = self._buffer.claim_series(db, file.instrument)
            db.execute("INSERT INTO problems VALUES (?, ?, ?)", (time.time(), str(aside), reason))
            self._buffer.uncover(db, series, Span(*span))
            if not len(self._buffer.get(file.instrument, start, end, 1)):
                db.execute("DELETE FROM months WHERE series = ? AND month = ?", (series, file.month))
            self._changed(db, series)
        log.error("set aside %s: %s", aside, reason)
        with self._buffer.transaction():
            if month_files.damage(file):
                try:
                    file.path.replace(aside)
                except OSError as error:
                    raise StoreError(f"cannot set {file.path} aside: {error}") from error
        return True

    # State

    def gaps(self, instrument: Instrument, span: Span) -> list[Span]:
        """See the port. A month whose file has been taken away is a gap again."""
        self._notice_missing(instrument)
        return super().gaps(instrument, span)

    def _notice_missing(self, instrument: Instrument) -> None:
        marked = self._buffer.months(instrument)
        for month in marked - set(month_files.existing(self.root, instrument)):
            start, end = month_span(month)
            with self._buffer.transaction() as db:
                file = self._file(instrument, month)
                if file.path.exists() or len(self._buffer.get(instrument, start, end, 1)):
                    continue
                series = self._buffer.claim_series(db, instrument)
                reason = "is gone; its bars will be fetched again if the feed has them"
                db.execute("INSERT INTO problems VALUES (?, ?, ?)", (time.time(), str(file.path), reason))
                db.execute("DELETE FROM months WHERE series = ? AND month = ?", (series, month))
                self._buffer.uncover(db, series, Span(start, end))
                self._changed(db, series)
            log.error("%s %s", file.path, reason)

    def source(self, instrument: Instrument, epoch: int) -> Source | None:
        """What the bars of the month of `epoch` are marked with, in the buffer or in their file."""
        file = month_files.month_file(self.root, instrument, month_of(epoch))
        series = self._buffer.series(instrument)
        marked = None if series is None else self._buffer.month_source(self._buffer.db, series, file.month)
        return marked or self._mending(month_files.source_of, file)

    def _held(self, series: int | None, instrument: Instrument, month: str) -> Source | None:
        file = self._file(instrument, month)
        try:
            return super()._held(series, instrument, month) or month_files.source_of(file)
        except CorruptFile:
            return None  # set aside when it is written

    def instruments(self) -> list[Instrument]:
        """See the port."""
        return sorted(month_files.on_disk(self.root) | set(self._buffer.buffered()))

    def where(self) -> str:
        """See the port."""
        return str(self.root)

    def size(self) -> int:
        """See the port."""
        total = 0
        for path in self.root.rglob("*"):
            with suppress(FileNotFoundError):  # files come and go while they are counted
                found = path.stat()
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
        return total
