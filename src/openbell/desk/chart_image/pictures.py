"""Pictures that are kept in the home for a while, each under a name that cannot be guessed and that has its expiry in it."""

from __future__ import annotations

import logging
import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from openbell.market.errors import Refused, StoreError

log = logging.getLogger(__name__)

FOLDER = "pictures"
PATH = "/storage/"
"""The path under which the gateway serves them."""
_NAME = re.compile(r"([0-9a-f]{10})-[0-9a-f]{32}\.(png|jpeg)")
_SWEEP_SECONDS = 60.0
_PART = ".part"
_PART_SECONDS = 600.0
"""The age at which a file that is not complete is one whose writer has ended."""
_MEGABYTE = 2**20


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A picture in the home."""

    name: str
    expires: datetime
    size: int


class PictureStore:
    """Keeps pictures in the folder `pictures` of the home. Uses the machine's time: a file's life is no market time."""

    def __init__(self, home: Path, megabytes: int, *, read_only: bool) -> None:
        self._folder = home / FOLDER
        self._most = megabytes * _MEGABYTE
        self._read_only = read_only
        self._swept = -_SWEEP_SECONDS

    def put(self, data: bytes, form: str, seconds: float) -> StoredPicture:
        """Writes a picture that expires after some seconds. Raises `Refused` and `StoreError`."""
        if self._read_only:
            raise Refused("storage writes a file, and this desk was started with --read-only: leave out storage")
        expires = int(time.time() + seconds)
        name = f"{expires:010x}-{secrets.token_hex(16)}.{form}"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            used = self._sweep()
            if used + len(data) > self._most:
                raise StoreError(
                    f"stored pictures take {used / _MEGABYTE:.1f} MB of {self._most // _MEGABYTE}: wait until some expire, "
                    "or set OPENBELL_CHART_IMAGES_MB"
                )
            _write(self._folder / name, data)
        except OSError as error:
            raise StoreError(f"the picture cannot be stored: {error.strerror or 'the disk failed'}") from None
        return StoredPicture(name, datetime.fromtimestamp(expires, UTC), len(data))

    def get(self, name: str) -> bytes | None:
        """Returns a picture; None if there is none of this name or it has expired."""
        expiry = expiry_of(name)
        if expiry is None or expiry <= time.time():
            return None
        try:
            return (self._folder / name).read_bytes()
        except OSError:
            return None

    def _sweep(self) -> int:
        """Removes expired pictures, at most once a minute. Returns the bytes that the others take."""
        now, used = time.time(), 0
        remove = time.monotonic() - self._swept >= _SWEEP_SECONDS
        for entry in os.scandir(self._folder):
            with suppress(OSError):
                if remove and _is_over(entry, now):
                    Path(entry.path).unlink()
                else:
                    used += entry.stat().st_size
        if remove:
            self._swept = time.monotonic()
        return used


def expiry_of(name: str) -> int | None:
    """Returns the time in a picture's name; None if it is no such name."""
    found = _NAME.fullmatch(name)
    return int(found[1], 16) if found else None


def _is_over(entry: os.DirEntry[str], now: float) -> bool:
    """Returns True for pictures that have expired, and for those whose writing was interrupted. Raises `OSError`."""
    if (expiry := expiry_of(entry.name)) is not None:
        return expiry <= now
    # A new one may be one that another process is writing.
    is_part = entry.name.endswith(_PART) and expiry_of(entry.name.removesuffix(_PART)) is not None
    return is_part and now - entry.stat().st_mtime >= _PART_SECONDS


def _write(path: Path, data: bytes) -> None:
    """Writes a file that is either complete or not there."""
    part = path.with_name(path.name + _PART)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
