"""The files of bars: which exist, and the bars of one period of a series in one Parquet file.

Minutes are at the contract's paths, `stocks/1min/AAPL_2025-09.parquet`, `crypto/1min/BTC_USD_2025-09.parquet`, those of a
second source of a month beside them: `stocks/1min/AAPL_2025-09.alpaca-iex-raw.parquet`; other series in other folders:
`stocks/1d/AAPL_all.import-raw.parquet`. A file is written under a temporary name, synchronised to disk and
renamed, so that a file is always complete. Its metadata holds a checksum of all its bytes;
reading a file that fails the check, or that holds impossible bars, raises `CorruptFile`.
"""

from __future__ import annotations

import errno
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, InvalidSymbol, StoreError
from openbell.market.instruments import AssetClass, parse
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of
from openbell.stores.folders import sync_folder
from openbell.stores.parquet.arrow import FIELDS, NAMES, pa, pq, prices_of, table_of, times_of
from openbell.stores.periods import period_span

_MINUTES = re.compile(r"(?P<symbol>.+)_(?P<period>\d{4}-(?:0[1-9]|1[0-2])(?:\.[a-z0-9-]+)?)\.parquet")
_OTHERS = re.compile(r"(?P<symbol>.+)_(?P<period>(?:\d{4}(?:-\d\d)?|all)\.[a-z0-9-]+)\.parquet")
_listings: dict[Path, tuple[int, dict[str, tuple[str, ...]]]] = {}
_ROWS_PER_GROUP = 5000
_KEY = b"openbell."
_CHECKSUM = _KEY + b"crc32"
_CHECKSUM_VALUE = _CHECKSUM + b"\x18\x08"  # Thrift's encoding: the key, then the type and length of eight characters
_undamaged: dict[Path, tuple[int, ...]] = {}
"""The versions of the files whose checksum was found right."""
_last: dict[Path, tuple[tuple[int, ...], float]] = {}
"""When the newest bar of a file opened, by the file's version."""


@lru_cache(maxsize=256)
def folder(root: Path, asset_class: AssetClass, timeframe: Timeframe) -> Path:
    """The folder of the bars of one asset class at one timeframe."""
    return root / asset_class.value / ("1min" if timeframe is Timeframe.M1 else name_of(timeframe, ALL_NAMES))


def folder_of(root: Path, series: Series) -> Path:
    """The folder of the bars of a series."""
    return folder(root, series.instrument.asset_class, series.timeframe)


def folders(root: Path) -> Iterator[tuple[AssetClass, Timeframe, Path]]:
    """All folders that may hold bars."""
    return ((kind, each, folder(root, kind, each)) for kind in AssetClass for each in Timeframe)


def existing(root: Path, series: Series) -> tuple[str, ...]:
    """The periods of a series that have a file, oldest first."""
    return _listing(folder_of(root, series)).get(series.instrument.file_name, ())


def existing_of_each(root: Path, every: Iterable[Series]) -> dict[Series, tuple[str, ...]]:
    """The same for many series; each folder is listed once."""
    listings: dict[Path, dict[str, tuple[str, ...]]] = {}
    found = {}
    for series in every:
        place = folder_of(root, series)
        if place not in listings:
            listings[place] = _listing(place)
        found[series] = listings[place].get(series.instrument.file_name, ())
    return found


def on_disk(root: Path) -> set[Series]:
    """Every series that has a file."""
    found = set()
    for asset_class, timeframe, place in folders(root):
        for name in _listing(place):
            try:
                instrument = parse(name)
            except InvalidSymbol:
                continue
            if instrument.asset_class is asset_class and instrument.file_name == name:
                found.add(Series(instrument, timeframe))
    return found


def _listing(place: Path) -> dict[str, tuple[str, ...]]:
    """The periods of every symbol in a folder; cached until the folder changes."""
    try:
        changed = place.stat().st_mtime_ns
        if (known := _listings.get(place)) and known[0] == changed:
            return known[1]
        found: dict[str, list[str]] = {}
        pattern = _MINUTES if place.name == "1min" else _OTHERS
        for name in os.listdir(place):
            if match := pattern.fullmatch(name):
                found.setdefault(match["symbol"], []).append(match["period"])
    except FileNotFoundError:
        return {}
    listing = {symbol: tuple(sorted(periods)) for symbol, periods in found.items()}
    # Modification times are coarse: a file created a moment later may leave the same time.
    if time.time_ns() - changed > 100_000_000:
        _listings[place] = (changed, listing)
    return listing


@dataclass(frozen=True, slots=True, order=True)
class BarFile:
    """The path of the bars of one period of a series; the file may not exist."""

    period: str
    path: Path
    series: Series
    origins: frozenset[Origin] | None = None
    """The origins whose bars it may hold; None for any."""


def bar_file(root: Path, series: Series, period: str, origins: frozenset[Origin] | None = None) -> BarFile:
    """The file of one period."""
    path = folder_of(root, series) / f"{series.instrument.file_name}_{period}.parquet"
    return BarFile(period, path, series, origins)


def write(file: BarFile, bars: Bars, source: Source, *, sync: bool = True) -> None:
    """Replace a file atomically and durably. With `sync=False` the caller must call `sync_folders`. Raises `StoreError`."""
    meta = {
        _KEY + b"symbol": file.series.name.encode(),  # with the timeframe, unless it is minutes
        _KEY + b"month": file.period.encode(),
        _KEY + b"origin": source.origin.value.encode(),
        _KEY + b"feed": source.feed.encode(),
        _KEY + b"adjustment": source.adjustment.encode(),
    }
    data = _with_checksum(table_of(bars, meta))
    temporary = file.path.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
        temporary.replace(file.path)
        if sync:
            sync_folder(file.path.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StoreError(f"cannot write {file.path}: {error}") from error


def sync_folders(files: Iterable[BarFile]) -> None:
    """Make the names of written files durable. Raises `StoreError`."""
    try:
        for place in {file.path.parent for file in files if file.path.parent.exists()}:
            sync_folder(place)
    except OSError as error:
        raise StoreError(f"cannot write {place}: {error}") from error


def _with_checksum(table: pa.Table) -> bytearray:
    """The bytes of a Parquet file, with a checksum in its metadata."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        writer.add_key_value_metadata({_CHECKSUM: b"--------"})
    data = bytearray(sink.getvalue())
    at = data.rindex(_CHECKSUM_VALUE) + len(_CHECKSUM_VALUE)
    data[at : at + 8] = _checksum(data, at)
    return data


def _checksum(data: bytes | bytearray, at: int) -> bytes:
    """The checksum of all bytes but its own eight, which are at `at`."""
    view = memoryview(data)
    return b"%08x" % zlib.crc32(view[at + 8 :], zlib.crc32(view[:at]))


def remove_unfinished(root: Path) -> None:
    """Remove temporary files of killed writers. Call it under the write lock: running writers have the same names."""
    for _, _, place in folders(root):
        for unfinished in place.glob("*.tmp"):
            with suppress(OSError):
                unfinished.unlink()


def source_of(file: BarFile) -> Source | None:
    """The source in a file's metadata; None if there is no file. Raises `CorruptFile`."""
    try:
        with _open(file) as parquet:
            return _source(parquet, file)
    except FileNotFoundError:
        return None


def damage(file: BarFile) -> str:
    """Why a file is damaged; empty if it is undamaged or does not exist."""
    try:
        read(file, -(2**62), 2**62)
    except FileNotFoundError:
        return ""
    except CorruptFile as found:
        return found.message
    return ""


def read(file: BarFile, start: int, end: int, newest: int | None = None) -> Bars:
    """The bars of a period that opened in [start, end); at least the latest `newest` of them if that is given.

    Raises `FileNotFoundError` or `CorruptFile`, and `StoreError` if the file cannot be read for another reason.
    """
    if ends_before(
        file, start
    ):  # new minutes come after all that an earlier source has: those need not be read each time
        return barlib.empty_of(file.series)
    with _open(file) as parquet:
        _source(parquet, file)
        try:
            groups = _groups(parquet, start, end, newest)
            table = parquet.read_row_groups(groups, columns=list(NAMES), use_threads=False)
            if table.schema.types != [field.type for field in FIELDS]:
                raise _corrupt(file, "not the columns of a bar file")
            time_, prices = times_of(table.column(0)), [prices_of(column) for column in table.columns[1:]]
        except (pa.ArrowException, OSError, KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise _corrupt(file, str(error)) from error
    bars = barlib.make(file.series.instrument, file.series.timeframe, time_, *prices)
    _check(file, bars)
    return bars.between(start, end)


def version(file: BarFile) -> tuple[int, ...] | None:
    """A value that changes whenever a file is changed or replaced; None if there is no file."""
    try:
        return _version(file.path.stat())
    except OSError:
        return None


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def times(file: BarFile) -> Times:
    """The open times of a period's bars. Raises the same errors as `read`."""
    with _open(file) as parquet:
        _source(parquet, file)
        try:
            return times_of(parquet.read(columns=[NAMES[0]], use_threads=False).column(0))
        except (pa.ArrowException, OSError, KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise _corrupt(file, str(error)) from error


def ends_before(file: BarFile, start: int) -> bool:
    """Returns True if the file was read before, has not changed since, and has no bar that opened at `start` or later."""
    known = _last.get(file.path)
    return known is not None and known[1] < start and known[0] == version(file)


def _open(file: BarFile) -> pq.ParquetFile:
    """Open a file after checking its checksum: one wrong bit in a footer can crash the process inside Arrow.

    The checksum is computed once, and again whenever the file's version has changed.
    """
    try:
        with file.path.open("rb") as opened:
            found = os.fstat(opened.fileno())
            data = opened.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        if file.path.is_dir() or error.errno == errno.EIO:
            raise _corrupt(file, str(error)) from error
        # Too many open files, or no permission: the content may be undamaged.
        raise StoreError(f"cannot read {file.path}: {error}") from error
    now = _version(found)
    if _undamaged.get(file.path) != now:
        _undamaged.pop(file.path, None)
        at = data.rfind(_CHECKSUM_VALUE) + len(_CHECKSUM_VALUE)
        if at < len(_CHECKSUM_VALUE) or data[at : at + 8] != _checksum(data, at):
            raise _corrupt(file, "its checksum is missing or wrong")
        # Modification times are coarse: a file that has just changed may change again within the same tick.
        if time.time_ns() - found.st_ctime_ns > 100_000_000:
            _undamaged[file.path] = now
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(file, str(error)) from error
    if _undamaged.get(file.path) == now:
        _note_last(file, parquet, now)
    return parquet


def _note_last(file: BarFile, parquet: pq.ParquetFile, now: tuple[int, ...]) -> None:
    groups = parquet.metadata.num_row_groups
    times = parquet.metadata.row_group(groups - 1).column(0).statistics if groups else None
    if times is not None and isinstance(times.max_raw, int):
        _last[file.path] = now, times.max_raw / 1000


def _source(parquet: pq.ParquetFile, file: BarFile) -> Source:
    meta = parquet.schema_arrow.metadata or {}
    try:
        symbol, period = meta[_KEY + b"symbol"].decode(), meta[_KEY + b"month"].decode()
        source = Source(
            Origin(meta[_KEY + b"origin"].decode()),
            meta[_KEY + b"feed"].decode(),
            meta[_KEY + b"adjustment"].decode(),
        )
    except (KeyError, ValueError) as error:
        raise _corrupt(file, "its metadata does not name the source of its bars") from error
    if file.origins is not None and source.origin not in file.origins:
        raise _corrupt(file, f"holds {source.origin} bars, which must not be stored here")
    if (symbol, period) != (file.series.name, file.period):
        raise _corrupt(file, f"holds {symbol} {period}, not {file.series} {file.period}")
    return source


def _corrupt(file: BarFile, reason: str) -> CorruptFile:
    return CorruptFile(f"{file.path.name}: {reason}", symbol=file.series.name, period=file.period)


def _groups(parquet: pq.ParquetFile, start: int, end: int, newest: int | None) -> list[int]:
    """The indexes of the row groups to read, chosen by the times in their statistics, which are milliseconds.

    Not `min` and `max`: to make a datetime, Arrow imports pandas where it is installed, which takes 0.3 s.
    """
    chosen: list[int] = []
    rows = 0
    for index in reversed(range(parquet.metadata.num_row_groups)):
        group = parquet.metadata.row_group(index)
        times = group.column(0).statistics
        if times.min_raw / 1000 >= end:
            continue
        if times.max_raw / 1000 < start or (newest is not None and rows >= newest):
            break
        chosen.append(index)
        # Some rows of a group that reaches past `end` are left out, so none of its rows is counted.
        rows += group.num_rows if times.max_raw / 1000 < end else 0
    return chosen[::-1]


def _check(file: BarFile, bars: Bars) -> None:
    """Raise `CorruptFile` for bars that `write` would never have written."""
    if not len(bars):
        return
    first, last = period_span(file.period)
    if bars.time[0] < first or bars.time[-1] >= last or (len(bars) > 1 and np.diff(bars.time).min() <= 0):
        raise _corrupt(file, "times out of order or of another period")
    if wrong := barlib.damage(bars, now=float(last)):
        raise _corrupt(file, f"a bar is {wrong[0][0]}")
