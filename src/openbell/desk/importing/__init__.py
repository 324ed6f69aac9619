"""Bars from a file, CSV or Parquet: every row of it is true, or the file is refused.

Arrow reads a clean CSV in one go. Only a file that it cannot read so, or that holds bars which cannot be true, is read
again line by line, to say which line is wrong and why; so a large clean file is fast and a bad one is explained.
"""

from __future__ import annotations

import stat
from pathlib import Path

from openbell.desk.importing.csv_rows import from_csv
from openbell.desk.importing.parquet_rows import from_parquet
from openbell.desk.importing.spacing import refuse_larger
from openbell.market.bars import Bars
from openbell.market.errors import InputError, InvalidParameter
from openbell.market.instruments import Instrument


def read(path: Path, instrument: Instrument, now: float, named: bool = False) -> Bars:
    """The minute bars of a file, sorted; a bar that ends after `now` is from the future.

    A file whose spacing is that of larger bars is refused, unless a person has `named` it one of minutes.

    Raises `InvalidParameter` if the file cannot be read as bars at all, `BadBars` if single rows are wrong.
    """
    data = _content(path)
    parquet = data[:4] == b"PAR1" or path.suffix.lower() in {".parquet", ".pq"}
    try:
        if not data.removeprefix(b"\xef\xbb\xbf").strip():
            raise InvalidParameter("the file is empty")
        bars = from_parquet(data, instrument, now) if parquet else from_csv(data, instrument, now)
        refuse_larger(bars, named)
    except InputError as error:
        raise type(error)(f"{path}: {error.message}", **error.details) from error.__cause__
    return bars


def _content(path: Path) -> bytes:
    """All of a file at once: a pipe can be read only once, and a file that grows must not be read twice."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
            return path.read_bytes()
    except FileNotFoundError:
        raise InvalidParameter(f"{path}: no such file") from None
    except OSError as error:
        raise InvalidParameter(f"{path}: cannot be read: {error.strerror}") from error
    raise InvalidParameter(f"{path}: is a folder, not a file" if stat.S_ISDIR(mode) else f"{path}: is not a file")
