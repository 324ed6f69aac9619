"""Reads files and unpacks them: plain, gzip, and zip with one or many members. Expands quoted globs."""

from __future__ import annotations

import glob
import gzip
import io
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from openbell.market.errors import InvalidParameter

MOST_BYTES = 2**31
"""Bytes that one packed file may hold."""
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_DEEPEST = 2
"""How many archives may be inside each other: a zip of gzip files is common, more is not."""


@dataclass(frozen=True, slots=True)
class Part:
    """The unpacked content of a file, or of one member of a zip file."""

    shown: str
    """The name in messages: `bars.zip: AAPL.csv`."""
    name: str
    """The file name without its folder and without `.gz`; some formats read the symbol from it."""
    data: bytes


def expand(patterns: Iterable[str]) -> list[Path]:
    """Returns the files that names and globs stand for, each once. Raises `InvalidParameter` if a glob matches nothing."""
    found: dict[Path, None] = {}
    for pattern in patterns:
        path = Path(pattern)
        if not glob.has_magic(pattern) or path.exists():
            found[path] = None
            continue
        matches = sorted(Path(name) for name in glob.glob(pattern, recursive=True))  # noqa: PTH207 (patterns may be absolute)
        files = [match for match in matches if not match.is_dir()]
        if not files:
            raise InvalidParameter(f"{pattern}: no file has a name of this form")
        found.update(dict.fromkeys(files))
    return list(found)


def parts_of(path: Path) -> Iterator[Part]:
    """Unpacks a file. Raises `InvalidParameter` if it cannot be read."""
    yield from _unpacked(Part(str(path), path.name, _content(path)), _DEEPEST)


def _content(path: Path) -> bytes:
    """The whole content, read once: a pipe cannot be read twice, and a growing file must not be."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) or stat.S_ISFIFO(mode):
            return path.read_bytes()
    except FileNotFoundError:
        raise InvalidParameter(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise InvalidParameter(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error
    raise InvalidParameter(f"{path}: is a folder, not a file" if stat.S_ISDIR(mode) else f"{path}: is not a file")


def _unpacked(part: Part, depth: int) -> Iterator[Part]:
    if part.data[:2] == _GZIP and depth:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(part.data)) as packed:
                data = _bounded(packed, part.shown)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidParameter(f"{part.shown}: is not a readable gzip file: {error}") from error
        yield from _unpacked(Part(part.shown, part.name.removesuffix(".gz").removesuffix(".GZ"), data), depth - 1)
    elif part.data[:4] == _ZIP and depth:
        yield from _members(part, depth)
    else:
        yield part


def _members(part: Part, depth: int) -> Iterator[Part]:
    try:
        with zipfile.ZipFile(io.BytesIO(part.data)) as archive:
            names = [each.filename for each in archive.infolist() if not each.is_dir()]
            if "[Content_Types].xml" in names:
                raise InvalidParameter(
                    f"{part.shown}: is an Office document, such as an Excel workbook: save it as CSV"
                )
            names = [name for name in names if not _is_hidden(PurePosixPath(name))]
            if not names:
                raise InvalidParameter(f"{part.shown}: the zip file holds no file")
            for name in names:
                if archive.getinfo(name).file_size > MOST_BYTES:  # nothing beyond the declared size is unpacked
                    raise _too_large(f"{part.shown}: {name}")
                with archive.open(name) as packed:
                    data = _bounded(packed, f"{part.shown}: {name}")
                member = Part(f"{part.shown}: {name}", PurePosixPath(name).name, data)
                yield from _unpacked(member, depth - 1)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        # RuntimeError: the archive needs a password. NotImplementedError: an unknown compression.
        raise InvalidParameter(f"{part.shown}: is not a readable zip file: {error}") from error


def _bounded(packed: IO[bytes] | gzip.GzipFile, shown: str) -> bytes:
    """Returns the unpacked content. Raises `InvalidParameter` if it is too large: a small file can hold any amount."""
    data = packed.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _too_large(shown)
    return data


def _too_large(shown: str) -> InvalidParameter:
    return InvalidParameter(f"{shown}: unpacks to more than {MOST_BYTES // 2**20:,} MB: split it into several files")


def _is_hidden(path: PurePosixPath) -> bool:
    """Returns True for the files that macOS adds to archives."""
    return path.parts[0] == "__MACOSX" or path.name.startswith(".")
