"""Reads bars from a CSV or Parquet file. A file with any bad row is refused as a whole.

Arrow reads a clean CSV file at once, which is fast. A file that Arrow cannot read, or that holds impossible bars, is read
again line by line to report which lines are wrong and why.
"""

from __future__ import annotations

import stat
from pathlib import Path

from openbell.desk.importing.csv_rows import from_csv
from openbell.desk.importing.parquet_rows import from_parquet
from openbell.desk.importing.spacing import refuse_longer
from openbell.market.bars import Bars
from openbell.market.errors import InputError, InvalidParameter
from openbell.market.instruments import Instrument


def read(path: Path, instrument: Instrument, now: float, named: bool = False) -> Bars:
    """The minute bars of a file, sorted.

    A bar that ends after `now` is bad. Bars that are spaced like those of a longer timeframe are refused, unless `named`:
    the user has stated that they are minutes.

    Raises `InvalidParameter` if the file as a whole cannot be read as bars, `BadBars` if single rows are wrong.
    """
    data = _content(path)
    parquet = data[:4] == b"PAR1" or path.suffix.lower() in {".parquet", ".pq"}
    try:
        if not data.removeprefix(b"\xef\xbb\xbf").strip():
            raise InvalidParameter("the file is empty")
        bars = from_parquet(data, instrument, now) if parquet else from_csv(data, instrument, now)
        refuse_longer(bars, named)
    except InputError as error:
        raise type(error)(f"{path}: {error.message}", **error.details) from error.__cause__
    return bars


def _content(path: Path) -> bytes:
    """The whole content, read once: a pipe cannot be read twice, and a growing file must not be."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
            return path.read_bytes()
    except FileNotFoundError:
        raise InvalidParameter(f"{path}: no such file") from None
    except OSError as error:
        raise InvalidParameter(f"{path}: cannot be read: {error.strerror}") from error
    raise InvalidParameter(f"{path}: is a folder, not a file" if stat.S_ISDIR(mode) else f"{path}: is not a file")
