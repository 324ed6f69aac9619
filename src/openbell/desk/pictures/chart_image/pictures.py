"""Pictures that are kept in the home for a while, each under a name that cannot be guessed and that has its expiry in it.

Each principal has a folder, so that what it keeps can be counted; its name is a digest, and is not part of a URL.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from openbell.backtest.wire.limits import MEGABYTE
from openbell.desk.settings import Settings
from openbell.desk.settings.principals import Quota
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
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class StoredPicture:
    """A picture in the home."""

    name: str
    expires: datetime
    size: int


class PictureStore:
    """Keeps pictures in the folder `pictures` of the home. Uses the machine's time: a file's life is no market time."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.home / FOLDER
        self._most = settings.chart_images_mb * MEGABYTE
        self._read_only = settings.read_only
        self._count, self._megabytes = (Quota.of(settings, name) for name in ("quota_pictures", "quota_pictures_mb"))
        self._swept = -_SWEEP_SECONDS
        self._writing = threading.Lock()

    def put(self, principal: str, data: bytes, form: str, seconds: float) -> StoredPicture:
        """Writes a picture that expires after some seconds. Raises `Refused`, `QuotaExceeded` and `StoreError`."""
        if self._read_only:
            raise Refused("storage writes a file, and this desk was started with --read-only: leave out storage")
        expires = int(time.time() + seconds)
        name = f"{expires:010x}-{secrets.token_hex(16)}.{form}"
        try:
            own = self._folder / sha256(principal.encode()).hexdigest()[:32]
            self._folder.mkdir(mode=0o700, exist_ok=True)
            own.mkdir(mode=0o700, exist_ok=True)
            with self._writing, _locked(self._folder / _LOCK):
                sizes = self._sweep()
                used, mine = sum(map(sum, sizes.values())), sizes.get(own.name, [])
                self._count.check(len(mine))
                self._megabytes.check_bytes(sum(mine), len(data))
                if used + len(data) > self._most:
                    raise StoreError(
                        f"stored pictures take {used / MEGABYTE:.1f} MB of {self._most // MEGABYTE}: wait until some "
                        "expire, or set OPENBELL_CHART_IMAGES_MB"
                    )
                _write(own / name, data)
        except OSError as error:
            raise StoreError(f"the picture cannot be stored: {error.strerror or 'the disk failed'}") from None
        return StoredPicture(name, datetime.fromtimestamp(expires, UTC), len(data))

    def get(self, name: str) -> bytes | None:
        """Returns a picture; None if there is none of this name or it has expired."""
        expiry = expiry_of(name)
        if expiry is None or expiry <= time.time():
            return None
        for folder in self._folders():
            with suppress(OSError):
                return (folder / name).read_bytes()
        return None

    def _folders(self) -> list[Path]:
        """Returns the folders of pictures, one for each principal."""
        with suppress(OSError):
            return [Path(each.path) for each in os.scandir(self._folder) if each.is_dir()]
        return []

    def _sweep(self) -> dict[str, list[int]]:
        """Removes expired pictures, at most once a minute. Returns the sizes of the others by folder."""
        now, sizes = time.time(), dict[str, list[int]]()
        remove = time.monotonic() - self._swept >= _SWEEP_SECONDS
        for folder in self._folders():
            kept = sizes[folder.name] = []
            for entry in os.scandir(folder):
                with suppress(OSError):
                    if remove and _is_over(entry, now):
                        Path(entry.path).unlink()
                    else:
                        kept.append(entry.stat().st_size)
        if remove:
            self._swept = time.monotonic()
        return sizes


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes out: what is counted must still be true when the picture is written."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


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
