"""One month of minute bars in one Parquet file, at the contract's paths.

`stocks/1min/AAPL_2025-09.parquet`, `crypto/1min/BTC_USD_2025-09.parquet`. A file is written beside its place, forced to
disk and renamed over it, so that it is there whole or not at all; its metadata carries a checksum of all its bytes, and a
file that fails it, or whose content cannot be true, is `CorruptFile`, never served.
"""

from __future__ import annotations

import errno
import os
import re
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.errors import CorruptFile, InvalidSymbol, StoreError
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.provenance import Origin, Source
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores.months import month_span

# Arrow's own allocator keeps what it once had; a server that reads a few columns a minute should give it back.
pa.set_memory_pool(pa.system_memory_pool())

_NAME = re.compile(r"(?P<symbol>.+)_(?P<month>\d{4}-(?:0[1-9]|1[0-2]))\.parquet")
_ROWS_PER_GROUP = 5000
_KEY = b"openbell."
_SEAL = _KEY + b"crc32"
_SEAL_VALUE = _SEAL + b"\x18\x08"  # as Thrift writes it: the key, then that a text of eight characters follows
_NAMES = ("timestamp", "open", "high", "low", "close", "volume")
_FIELDS = [pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False)] + [
    pa.field(name, pa.float64(), nullable=False) for name in _NAMES[1:]
]


@dataclass(frozen=True, slots=True, order=True)
class MonthFile:
    """Where the bars of one instrument and month are, or would be."""

    month: str
    path: Path
    instrument: Instrument
    origins: frozenset[Origin] | None = None
    """The only ones that it may hold; None if any will do."""


@lru_cache(maxsize=64)
def folder(root: Path, asset_class: AssetClass) -> Path:
    """The folder of minute bars of one asset class."""
    return root / asset_class.value / "1min"


def month_file(root: Path, instrument: Instrument, month: str, origins: frozenset[Origin] | None = None) -> MonthFile:
    """The place of one month."""
    path = folder(root, instrument.asset_class) / f"{instrument.file_name}_{month}.parquet"
    return MonthFile(month, path, instrument, origins)


def existing(root: Path, instrument: Instrument) -> tuple[str, ...]:
    """The months on disk of one instrument, oldest first."""
    return _listing(folder(root, instrument.asset_class)).get(instrument.file_name, ())


def on_disk(root: Path) -> set[Instrument]:
    """Every instrument that has a file."""
    found = set()
    for asset_class in AssetClass:
        for name in _listing(folder(root, asset_class)):
            try:
                instrument = parse(name)
            except InvalidSymbol:
                continue
            if instrument.asset_class is asset_class and instrument.file_name == name:
                found.add(instrument)
    return found


_listings: dict[Path, tuple[int, dict[str, tuple[str, ...]]]] = {}


def _listing(place: Path) -> dict[str, tuple[str, ...]]:
    """The months of every symbol in a folder; scanned again when the folder has changed."""
    try:
        changed = place.stat().st_mtime_ns
        if (known := _listings.get(place)) and known[0] == changed:
            return known[1]
        found: dict[str, list[str]] = {}
        for name in os.listdir(place):
            if match := _NAME.fullmatch(name):
                found.setdefault(match["symbol"], []).append(match["month"])
    except FileNotFoundError:
        return {}
    listing = {symbol: tuple(sorted(months)) for symbol, months in found.items()}
    # Folder times are coarse: one that is still fresh could hide a file that came a moment later.
    if time.time_ns() - changed > 100_000_000:
        _listings[place] = (changed, listing)
    return listing


def write(file: MonthFile, bars: Bars, source: Source) -> None:
    """Put a month in its place, durably and at once."""
    meta = {
        _KEY + b"symbol": file.instrument.symbol.encode(),
        _KEY + b"month": file.month.encode(),
        _KEY + b"origin": source.origin.value.encode(),
        _KEY + b"feed": source.feed.encode(),
        _KEY + b"adjustment": source.adjustment.encode(),
    }
    columns = [pa.array(bars.time * 1000, pa.timestamp("ms", tz="UTC"))]
    columns += [pa.array(column) for column in bars.columns()[1:]]
    table = pa.Table.from_arrays(columns, schema=pa.schema(_FIELDS, metadata=meta))
    data = _sealed(table)
    beside = file.path.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
        beside.replace(file.path)
        _sync_folder(file.path.parent)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StoreError(f"cannot write {file.path}: {error}") from error


def _sealed(table: pa.Table) -> bytearray:
    """A file's bytes, with the checksum of all of them in its metadata."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        writer.add_key_value_metadata({_SEAL: b"--------"})
    data = bytearray(sink.getvalue())
    at = data.rindex(_SEAL_VALUE) + len(_SEAL_VALUE)
    data[at : at + 8] = _checksum(data, at)
    return data


def _checksum(data: bytes | bytearray, at: int) -> bytes:
    """Of everything but the eight characters at which it stands itself."""
    view = memoryview(data)
    return b"%08x" % zlib.crc32(view[at + 8 :], zlib.crc32(view[:at]))


def sweep(root: Path) -> None:
    """Remove what killed writers left beside the files. Only under the write lock: a living writer's looks the same."""
    for asset_class in AssetClass:
        for left in folder(root, asset_class).glob("*.tmp"):
            with suppress(OSError):
                left.unlink()


def _sync_folder(path: Path) -> None:
    """Make a rename last; folders cannot be opened on Windows, where the rename is durable by itself."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def source_of(file: MonthFile) -> Source | None:
    """The provenance that a file carries; None if there is no file. Raises `CorruptFile`."""
    try:
        with _open(file) as parquet:
            return _source(parquet, file)
    except FileNotFoundError:
        return None


def damage(file: MonthFile) -> str:
    """What is wrong with a file; nothing if it is sound, or not there."""
    try:
        read(file, -(2**62), 2**62)
    except FileNotFoundError:
        return ""
    except CorruptFile as found:
        return found.message
    return ""


def read(file: MonthFile, start: int, end: int, newest: int | None = None) -> Bars:
    """The bars of a month that opened in [start, end), at least the `newest` of them if a number is given.

    Raises `FileNotFoundError` or `CorruptFile`, and `StoreError` if the file could not be read just now.
    """
    with _open(file) as parquet:
        _source(parquet, file)
        try:
            groups = _groups(parquet, start, end, newest)
            table = parquet.read_row_groups(groups, columns=list(_NAMES), use_threads=False)
            if table.schema.types != [field.type for field in _FIELDS]:
                raise _corrupt(file, "not the columns of a bar file")
            columns = [column.to_numpy() for column in table.columns]
        except (pa.ArrowException, OSError, KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise _corrupt(file, str(error)) from error
    bars = barlib.make(file.instrument, Timeframe.M1, columns[0].astype("datetime64[s]"), *columns[1:])
    _check(file, bars)
    return bars.between(start, end)


def version(file: MonthFile) -> tuple[int, ...] | None:
    """What tells a file from another that stands at its place later; None if there is none."""
    try:
        return _version(file.path.stat())
    except OSError:
        return None


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def times(file: MonthFile) -> Times:
    """When the bars of a month opened. Raises as `read` does."""
    with _open(file) as parquet:
        _source(parquet, file)
        try:
            column = parquet.read(columns=[_NAMES[0]], use_threads=False).column(0)
            found: Times = column.to_numpy().astype("datetime64[s]").astype(np.int64)
        except (pa.ArrowException, OSError, KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise _corrupt(file, str(error)) from error
    return found


_sound: dict[Path, tuple[int, ...]] = {}
_last: dict[Path, tuple[tuple[int, ...], float]] = {}
"""When the newest bar of a file opened, by the file's version."""


def ends_before(file: MonthFile, start: int) -> bool:
    """Returns True if the file was read before, has not changed since, and has no bar that opened at `start` or later."""
    known = _last.get(file.path)
    return known is not None and known[1] < start and known[0] == version(file)


def _open(file: MonthFile) -> pq.ParquetFile:
    """A file whose checksum is right. Nothing else may reach Arrow: one wrong bit in a footer can end the process.

    A file is summed up once, and again whenever anything about it has changed.
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
        # Too many open files, no permission: says nothing about what the file holds.
        raise StoreError(f"cannot read {file.path}: {error}") from error
    now = _version(found)
    if _sound.get(file.path) != now:
        _sound.pop(file.path, None)
        at = data.rfind(_SEAL_VALUE) + len(_SEAL_VALUE)
        if at < len(_SEAL_VALUE) or data[at : at + 8] != _checksum(data, at):
            raise _corrupt(file, "its checksum is missing or wrong")
        # Times of files are coarse: one that has just changed may change again within the same tick.
        if time.time_ns() - found.st_ctime_ns > 100_000_000:
            _sound[file.path] = now
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise _corrupt(file, str(error)) from error
    if _sound.get(file.path) == now:
        _note_last(file, parquet, now)
    return parquet


def _note_last(file: MonthFile, parquet: pq.ParquetFile, now: tuple[int, ...]) -> None:
    groups = parquet.metadata.num_row_groups
    times = parquet.metadata.row_group(groups - 1).column(0).statistics if groups else None
    if times is not None and isinstance(times.max, datetime):
        _last[file.path] = now, times.max.timestamp()


def _source(parquet: pq.ParquetFile, file: MonthFile) -> Source:
    meta = parquet.schema_arrow.metadata or {}
    try:
        symbol, month = meta[_KEY + b"symbol"].decode(), meta[_KEY + b"month"].decode()
        source = Source(
            Origin(meta[_KEY + b"origin"].decode()),
            meta[_KEY + b"feed"].decode(),
            meta[_KEY + b"adjustment"].decode(),
        )
    except (KeyError, ValueError) as error:
        raise _corrupt(file, "does not say where its bars come from") from error
    if file.origins is not None and source.origin not in file.origins:
        raise _corrupt(file, f"holds {source.origin} bars, which have no place here")
    if (symbol, month) != (file.instrument.symbol, file.month):
        raise _corrupt(file, f"holds {symbol} {month}, not {file.instrument} {file.month}")
    return source


def _corrupt(file: MonthFile, reason: str) -> CorruptFile:
    return CorruptFile(f"{file.path.name}: {reason}", symbol=file.instrument.symbol, month=file.month)


def _groups(parquet: pq.ParquetFile, start: int, end: int, newest: int | None) -> list[int]:
    """The row groups to read, by the times that their statistics name."""
    chosen: list[int] = []
    rows = 0
    for index in reversed(range(parquet.metadata.num_row_groups)):
        group = parquet.metadata.row_group(index)
        times = group.column(0).statistics
        if times.min.timestamp() >= end:
            continue
        if times.max.timestamp() < start or (newest is not None and rows >= newest):
            break
        chosen.append(index)
        # A group that reaches past the end may count for less than its rows: it is not counted at all.
        rows += group.num_rows if times.max.timestamp() < end else 0
    return chosen[::-1]


def _check(file: MonthFile, bars: Bars) -> None:
    """What no writer of ours would have written is damage."""
    if not len(bars):
        return
    first, last = month_span(file.month)
    if bars.time[0] < first or bars.time[-1] >= last or (len(bars) > 1 and np.diff(bars.time).min() <= 0):
        raise _corrupt(file, "times out of order or of another month")
    if wrong := barlib.damage(bars, now=float(last)):
        raise _corrupt(file, f"a bar is {wrong[0][0]}")
