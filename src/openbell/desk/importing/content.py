"""Reads files and unpacks them: plain, gzip, and zip with one or many members. Expands quoted globs."""

from __future__ import annotations

import glob
import gzip
import io
import os
import select
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from openbell.market.errors import InvalidParameter
from openbell.market.foreign_text import one_visible_line

MOST_BYTES = 2**31
"""Bytes that one file may hold, unpacked."""
FREE_BYTES, MOST_TIMES = 2**26, 200
"""A file of more than these bytes may unpack to at most so many times its packed size: price files shrink to a third or a
tenth, and tables of flat prices to a fiftieth."""
_GZIP, _ZIPS = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
_DEEPEST = 2
"""How many archives may be inside each other: a zip of gzip files is common, more is not."""
_ENCRYPTED, _LONGEST_NAME = 1, 120
_PATIENCE = 60.0
"""Seconds until a pipe to which nobody writes is given up."""


@dataclass(frozen=True, slots=True)
class FilePart:
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


def parts_of(path: Path) -> Iterator[FilePart]:
    """Unpacks a file. Raises `InvalidParameter` if it cannot be read."""
    yield from _unpacked(FilePart(str(path), path.name, _content(path)), _DEEPEST)


def _content(path: Path) -> bytes:
    """The whole content, read once: a pipe cannot be read twice, and a growing file must not be."""
    try:
        status = path.stat()
        mode = status.st_mode
        if stat.S_ISREG(mode):
            if status.st_size > MOST_BYTES:
                raise _too_large(path)
            with path.open("rb") as file:
                return _whole(file, path)
        if stat.S_ISFIFO(mode):
            return _piped(path)
    except FileNotFoundError:
        raise InvalidParameter(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise InvalidParameter(f"{path}: cannot be read: {getattr(error, 'strerror', error)}") from error
    raise InvalidParameter(f"{path}: is a folder, not a file" if stat.S_ISDIR(mode) else f"{path}: is not a file")


def _piped(path: Path) -> bytes:
    """Returns all that is written to a pipe. Raises `InvalidParameter` if nobody begins to, or if it is too much."""
    # Without O_NONBLOCK, the call would wait for a writer without end.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as pipe:  # noqa: PTH123 (a descriptor)
        ready = select.poll()
        ready.register(pipe, select.POLLIN)
        if not ready.poll(_PATIENCE * 1000):
            raise InvalidParameter(f"{path}: is a pipe to which nothing was written for {_PATIENCE:.0f} seconds")
        os.set_blocking(pipe.fileno(), True)
        return _whole(pipe, path)


def _whole(file: IO[bytes], path: Path) -> bytes:
    """Returns the content up to its end. Raises `InvalidParameter` if it is too large: a file may grow while it is read."""
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise _too_large(path)
    return data


def _too_large(path: Path) -> InvalidParameter:
    return InvalidParameter(f"{path}: holds more than {MOST_BYTES // 2**20:,} MB: split it into several files")


def _unpacked(part: FilePart, depth: int) -> Iterator[FilePart]:
    packed_again = part.data[:2] == _GZIP or part.data[:4] in _ZIPS
    if packed_again and not depth:
        raise InvalidParameter(
            f"{part.shown}: is an archive inside {_DEEPEST} others, which is too deep: unpack it and import the files"
        )
    if part.data[:2] == _GZIP:
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(part.data)) as packed:
                data = _bounded(packed, part.shown, len(part.data))
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidParameter(f"{part.shown}: is not a readable gzip file: {error}") from error
        yield from _unpacked(FilePart(part.shown, part.name.removesuffix(".gz").removesuffix(".GZ"), data), depth - 1)
    elif packed_again:
        yield from _members(part, depth)
    else:
        yield part


def _members(part: FilePart, depth: int) -> Iterator[FilePart]:
    try:
        with zipfile.ZipFile(io.BytesIO(part.data)) as archive:
            if "[Content_Types].xml" in archive.namelist():
                raise InvalidParameter(
                    f"{part.shown}: is an Office document, such as an Excel workbook: save it as CSV"
                )
            # By their entries and not by name: two members may have the same one.
            members = [each for each in archive.infolist() if _is_file(each)]
            if not members:
                raise InvalidParameter(f"{part.shown}: the zip file holds no file")
            for member in members:
                shown = f"{part.shown}: {one_visible_line(member.filename, _LONGEST_NAME)}"
                data = _member(archive, member, shown)
                yield from _unpacked(FilePart(shown, PurePosixPath(member.filename).name, data), depth - 1)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, ValueError) as error:
        # NotImplementedError: an unknown compression.
        raise InvalidParameter(
            f"{part.shown}: is not a readable zip file: {one_visible_line(str(error), _LONGEST_NAME)}"
        ) from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, shown: str) -> bytes:
    """Returns the content of one member. Raises `InvalidParameter` and what `zipfile` raises."""
    if member.flag_bits & _ENCRYPTED:
        raise InvalidParameter(f"{shown}: is encrypted: unpack it with its password and import the file")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise InvalidParameter(f"{shown}: is a link, not a file: add the file itself to the archive")
    if member.file_size > MOST_BYTES:  # nothing beyond the declared size is unpacked
        raise _unpacks_too_large(shown)
    with archive.open(member) as packed:
        return _bounded(packed, shown, member.compress_size)


def _bounded(packed: IO[bytes] | gzip.GzipFile, shown: str, size: int) -> bytes:
    """Returns the unpacked content. Raises `InvalidParameter` if it is too large: a small file can hold any amount."""
    most = _most_unpacked(size)
    data = packed.read(most + 1)
    if len(data) > MOST_BYTES:
        raise _unpacks_too_large(shown)
    if len(data) > most:
        raise InvalidParameter(
            f"{shown}: unpacks to more than {MOST_TIMES} times its size, which no price file does: unpack it and look inside"
        )
    return data


def _unpacks_too_large(shown: str) -> InvalidParameter:
    return InvalidParameter(f"{shown}: unpacks to more than {MOST_BYTES // 2**20:,} MB: split it into several files")


def check_decoded_size(size: int, packed: int) -> None:
    """Raise `InvalidParameter` if a table of `packed` bytes in its file would decode to too many."""
    most = _most_unpacked(packed)
    if size > most:
        raise InvalidParameter(
            f"decodes to {size / 2**20:,.0f} MB, but at most {most / 2**20:,.0f} MB are read from a file of its size: "
            "split it into several files, or save it as CSV"
        )


def _most_unpacked(packed: int) -> int:
    """Returns the most bytes to which a file of `packed` bytes may unpack."""
    return min(MOST_BYTES, max(FREE_BYTES, MOST_TIMES * packed))


def _is_file(member: zipfile.ZipInfo) -> bool:
    """Returns False for folders, for members without a name, and for the files that macOS adds to archives."""
    path = PurePosixPath(member.filename)
    is_folder = not path.name or member.is_dir() or stat.S_ISDIR(member.external_attr >> 16)
    return not is_folder and not path.name.startswith(".") and "__MACOSX" not in path.parts[:1]
