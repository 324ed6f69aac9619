"""The ledger's head, kept outside the database in a small file of four slots of 128 bytes.

| slot | holds |
|---|---|
| 0, 1 | the standing head: the newest entry that is known to be committed. Written in turn; the higher number counts |
| 2, 3 | the intended head: where a commit that has begun will end. It counts while its number is above the standing head's |

A writer calls `intend` before its commit and `note` after it, so the ledger ends at the standing head or at the intended
one, whenever the process is killed. An entry beyond both was written by somebody else. A file of an earlier version has
slots 0 and 1 only, and is read as one without an intended head.

A torn write spoils one slot. `note` never overwrites the newer of its two slots, and `intend` never the slot that holds the
ledger's present end. The standing number only grows: `note` returns at once if its head, or a newer one, is durable
already, so processes share their synchronisations.
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
_SLOTS = 4
_STANDING, _INTENDED = (0, 1), (2, 3)
_EMPTY = b"\0" * _SLOT
_synchronise = getattr(os, "fdatasync", os.fsync)  # not every system has the quicker one


class HeadFile:
    """One ledger's head. Every call may block."""

    def __init__(self, path: Path, verify: str = "openbell verify") -> None:
        """`verify` is the command that checks this ledger, for messages."""
        self.path = path
        self.verify = verify
        self._guard = threading.Lock()
        self._fd: int | None = None

    def read(self) -> Head | None:
        """The standing head; None if there is none. Raises `StoreError` for a file that is damaged."""
        ends = self.ends()
        return ends[0] if ends else None

    def ends(self) -> tuple[Head, ...]:
        """Where the ledger may end: at the standing head, or at an intended one after it. Empty if no head was noted.

        Raises `StoreError` for a file that is damaged.
        """
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                found = file.read(_SLOTS * _SLOT)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror}") from error
        if not found:  # made by somebody who is about to write the first one
            return ()
        slots = _slots(found)
        standing = _newest(slots)
        if standing is None:
            raise StoreError(
                f"{self.path} is damaged: it names no head of the ledger, so nothing is written. Look with {self.verify}; "
                f"if the ledger is as it should be, take it as it stands with {self.verify} --adopt"
            )
        intended = [slots[index] for index in _INTENDED]
        return (standing, *(head for head in intended if head is not None and head.seq > standing.seq))

    def intend(self, found: Head, wanted: Head) -> None:
        """Make durable that a commit is about to take the ledger from `found` to `wanted`. Raises `StoreError`.

        To be called by the one writer that has the database's write lock, with the end of the ledger as it is committed.
        """
        with self._locked() as fd:
            slots = _slots(os.pread(fd, _SLOTS * _SLOT, 0))
            writes = _standing_write(slots, found)
            # The slot with the present end stays: it counts if the standing head's write is torn. Of the others the higher
            # number goes first, which is the intention of a commit that never came.
            free = [index for index in _INTENDED if slots[index] != found]
            _put(fd, {**writes, max(free, key=lambda index: _seq(slots[index])): wanted})

    def note(self, head: Head) -> None:
        """Make a committed head the standing one, unless a newer one is. Raises `StoreError`."""
        with self._locked() as fd:
            if writes := _standing_write(_slots(os.pread(fd, _SLOTS * _SLOT, 0)), head):
                _put(fd, writes)

    def reset(self, head: Head) -> None:
        """Note a head even though a newer one stands there, or none can be read: an operator's decision."""
        with self._locked() as fd:
            os.ftruncate(fd, 0)
            _put(fd, {0: head})

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


def _standing_write(slots: list[Head | None], head: Head) -> dict[int, Head]:
    """The slot to write so that a head stands; none if it does. Never over the newest: it is left if this write is torn."""
    older, newer = sorted(_STANDING, key=lambda index: _seq(slots[index]))
    return {older: head} if _seq(slots[newer]) < head.seq else {}


def _put(fd: int, writes: dict[int, Head]) -> None:
    """Write some slots, durable when it returns."""
    try:
        for index, head in writes.items():
            if os.pwrite(fd, _slot(head), index * _SLOT) != _SLOT:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _synchronise(fd)
    except OSError:
        # It may not be durable: nobody is to find it there and believe so.
        with suppress(OSError):
            for index in writes:
                os.pwrite(fd, _EMPTY, index * _SLOT)
        raise


def _slot(head: Head) -> bytes:
    text = f"{head.seq} {head.hash}"
    return (f"{text} {crc32(text.encode()):08x}".ljust(_SLOT - 1) + "\n").encode()


def _slots(found: bytes) -> list[Head | None]:
    return [_head(found[index * _SLOT : (index + 1) * _SLOT]) for index in range(_SLOTS)]


def _newest(slots: list[Head | None]) -> Head | None:
    return max((slots[index] for index in _STANDING), key=_seq)


def _seq(head: Head | None) -> int:
    return -1 if head is None else head.seq


def _head(slot: bytes) -> Head | None:
    try:
        seq, digest, check = slot.decode().split()
        return Head(int(seq), digest) if int(check, 16) == crc32(f"{seq} {digest}".encode()) else None
    except ValueError:
        return None
