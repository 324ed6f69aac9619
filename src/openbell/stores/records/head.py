"""The ledger's head, noted outside the database: two slots in a small file, written in turn.

A torn write spoils one slot and leaves the other. The number only grows: whoever comes with an older head than the one
that stands there finds it durable already, which makes many processes share their synchronisations.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from openbell.market.errors import StoreError
from openbell.trading.ledger import Head

_SLOT = 128
_EMPTY = b"\0" * _SLOT
_synchronise = getattr(os, "fdatasync", os.fsync)  # not every system has the quicker one


class HeadFile:
    """One ledger's head. Every call may block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._fd: int | None = None

    def read(self) -> Head | None:
        """The newest head that was noted; None if there is none. Raises `StoreError` for a file that is damaged."""
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                found = file.read(2 * _SLOT)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror}") from error
        if not found:  # made by somebody who is about to write the first one
            return None
        heads = [head for head in _slots(found) if head]
        if not heads:
            raise StoreError(
                f"{self.path} is damaged: it names no head of the ledger, so nothing is written. Look with openbell verify; "
                "if the ledger is as it should be, take it as it stands with openbell verify --adopt"
            )
        return max(heads, key=lambda head: head.seq)

    def note(self, head: Head) -> None:
        """Make a head durable, unless a newer one is. Raises `StoreError`."""
        with self._locked() as fd:
            first, second = _slots(os.pread(fd, 2 * _SLOT, 0))
            standing = [-1 if each is None else each.seq for each in (first, second)]
            if max(standing) < head.seq:
                # Never over the newest: it is what is left if this write is torn.
                _put(fd, standing.index(min(standing)) * _SLOT, _slot(head))

    def reset(self, head: Head) -> None:
        """Note a head even though a newer one stands there, or none can be read: an operator's decision."""
        with self._locked() as fd:
            os.ftruncate(fd, 0)
            _put(fd, 0, _slot(head))

    def close(self) -> None:
        """Let go of the file."""
        with self._guard:
            self._close()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        with self._guard:
            try:
                fd = self._open()
                fcntl.flock(fd, fcntl.LOCK_EX)
                try:
                    yield fd
                finally:
                    fcntl.flock(fd, fcntl.LOCK_UN)
            except OSError as error:
                self._close()
                raise StoreError(f"cannot write {self.path}: {error.strerror}") from error

    def _open(self) -> int:
        """The file's descriptor; one that was moved or removed is not written to any more."""
        if self._fd is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(self.path.stat(), os.fstat(self._fd)):
                    return self._fd
            self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        made = not self.path.exists()
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if made:
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return self._fd

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _put(fd: int, at: int, slot: bytes) -> None:
    try:
        if os.pwrite(fd, slot, at) != _SLOT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _synchronise(fd)
    except OSError:
        # It may not be durable: nobody is to find it there and believe so.
        with suppress(OSError):
            os.pwrite(fd, _EMPTY, at)
        raise


def _slot(head: Head) -> bytes:
    text = f"{head.seq} {head.hash}"
    return (f"{text} {crc32(text.encode()):08x}".ljust(_SLOT - 1) + "\n").encode()


def _slots(found: bytes) -> tuple[Head | None, Head | None]:
    return _head(found[:_SLOT]), _head(found[_SLOT : 2 * _SLOT])


def _head(slot: bytes) -> Head | None:
    try:
        seq, digest, check = slot.decode().split()
        return Head(int(seq), digest) if int(check, 16) == crc32(f"{seq} {digest}".encode()) else None
    except ValueError:
        return None
