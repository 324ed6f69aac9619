"""The ledger's head, noted outside the database: two slots in a small file, written in turn.

A torn write spoils one slot and leaves the other. The number only grows: whoever comes with an older head than the one
that stands there finds it durable already, which makes many processes share their synchronisations.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from zlib import crc32

from openbell.market.errors import StoreError
from openbell.trading.ledger import Head

_SLOT = 128


class HeadFile:
    """One ledger's head. Every call may block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._guard = threading.Lock()
        self._fd: int | None = None

    def read(self) -> Head | None:
        """The newest head that was noted; None if there is none. Raises `StoreError` for a file that is damaged."""
        try:
            found = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error}") from error
        heads = _slots(found)
        if not heads:
            raise StoreError(f"{self.path} is damaged: it names no head")
        return max(heads, key=lambda head: head.seq)

    def note(self, head: Head) -> None:
        """Make a head durable, unless a newer one is. Raises `StoreError`."""
        with self._guard:
            try:
                self._note(head)
            except OSError as error:
                self._close()
                raise StoreError(f"cannot write {self.path}: {error}") from error

    def reset(self, head: Head) -> None:
        """Note a head even though a newer one stands there: an operator's decision."""
        with self._guard:
            self._close()
            self.path.unlink(missing_ok=True)
        self.note(head)

    def close(self) -> None:
        """Let go of the file."""
        with self._guard:
            self._close()

    def _note(self, head: Head) -> None:
        fd = self._open()
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            standing = _slots(os.pread(fd, 2 * _SLOT, 0))
            newest = max((each.seq for each in standing), default=0)
            if newest >= head.seq:
                return
            text = f"{head.seq} {head.hash}"
            slot = f"{text} {crc32(text.encode()):08x}".ljust(_SLOT - 1) + "\n"
            os.pwrite(fd, slot.encode(), head.seq % 2 * _SLOT)
            os.fdatasync(fd)
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)

    def _open(self) -> int:
        """The file's descriptor; one that was moved or removed is not written to any more."""
        if self._fd is not None:
            try:
                standing = self.path.stat()
                if os.path.samestat(standing, os.fstat(self._fd)):
                    return self._fd
            except FileNotFoundError:
                pass
            self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        made = not self.path.exists()
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if made:
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        return self._fd

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _slots(found: bytes) -> list[Head]:
    heads = []
    for start in (0, _SLOT):
        try:
            seq, digest, check = found[start : start + _SLOT].decode().split()
            if int(check, 16) == crc32(f"{seq} {digest}".encode()):
                heads.append(Head(int(seq), digest))
        except ValueError:
            continue
    return heads
