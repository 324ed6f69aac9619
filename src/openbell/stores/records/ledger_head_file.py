"""The ledger's head, stored outside the database in a small file of five slots of 128 bytes.

| slot | holds |
|---|---|
| 0, 1 | the committed head: the last entry that is known to be committed. Written in turn; the higher number is valid |
| 2, 3 | the intended head: where a commit that has begun will end. Valid while its number is above the committed head's |
| 4 | a random mark, written whenever an operator accepts the ledger as it is: running processes then begin anew |

A writer calls `intend` before its commit and `note` after it. So the ledger ends at the committed or at an intended head,
whenever the process is killed; an entry after both was not written by this home.

A torn write destroys one slot. `note` never overwrites the newer of its two slots, and `intend` never overwrites the slot
that holds the ledger's current end. The committed number only grows: `note` returns at once if its head or a newer one is
already durable, so processes share their synchronisations.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

from openbell.market.errors import StoreError
from openbell.stores.folders import sync_folder
from openbell.trading.ledger import Head

_SLOT = 128
_SLOTS = 4
_COMMITTED, _INTENDED, _ADOPTION = (0, 1), (2, 3), 4
_EMPTY = b"\0" * _SLOT
_synchronise = getattr(os, "fdatasync", os.fsync)  # not every system has fdatasync, which is faster


class HeadFile:
    """The head file of one ledger. Every call may block."""

    def __init__(self, path: Path, verify: str = "openbell verify") -> None:
        """`verify` is the command that checks this ledger, for messages."""
        self.path = path
        self.verify = verify
        self._guard = threading.Lock()
        self._fd: int | None = None

    def read(self) -> Head | None:
        """The committed head; None if there is none. Raises `StoreError` if the file is damaged."""
        ends = self.ends()
        return ends[0] if ends else None

    def ends(self) -> tuple[Head, ...]:
        """The heads at which the ledger may end: the committed one, then intended ones. Empty if no head was noted.

        Raises `StoreError` if the file is damaged.
        """
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                found = file.read(_SLOTS * _SLOT)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StoreError(f"cannot read {self.path}: {error.strerror}") from error
        if not found:  # created by a process that is about to write the first head
            return ()
        slots = _slots(found)
        committed = _newest(slots)
        if committed is None:
            raise StoreError(
                f"{self.path} is damaged: it names no head of the ledger, so nothing is written. Check the ledger with "
                f"{self.verify}; if it is correct, accept it as it is with {self.verify} --adopt"
            )
        intended = [slots[index] for index in _INTENDED]
        return (committed, *(head for head in intended if head is not None and head.seq > committed.seq))

    def intend(self, found: Head, wanted: Head) -> None:
        """Store durably that a commit will take the ledger from `found` to `wanted`. Raises `StoreError`.

        Called by the writer that holds the database's write lock; `found` is the committed end of the ledger.
        """
        with self._locked() as fd:
            slots = _slots(os.pread(fd, _SLOTS * _SLOT, 0))
            writes = _committed_write(slots, found)
            # The slot with the current end is kept in case the committed head's write is torn. Of the others the one with
            # the higher number is overwritten: its commit never happened.
            free = [index for index in _INTENDED if slots[index] != found]
            _put(fd, {**writes, max(free, key=lambda index: _seq(slots[index])): wanted})

    def note(self, head: Head) -> None:
        """Store a committed head durably, unless a newer one is stored. Raises `StoreError`."""
        with self._locked() as fd:
            if writes := _committed_write(_slots(os.pread(fd, _SLOTS * _SLOT, 0)), head):
                _put(fd, writes)

    def reset(self, head: Head) -> None:
        """Store a head even if a newer one is stored or the file is damaged: an operator's decision."""
        with self._locked() as fd:
            os.ftruncate(fd, 0)
            os.pwrite(fd, secrets.token_hex(16).encode().ljust(_SLOT), _ADOPTION * _SLOT)
            _put(fd, {0: head})

    def adoption(self) -> bytes:
        """The mark of the last `reset`; empty if there was none, or if the file cannot be read."""
        try:
            with self.path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH)
                return os.pread(file.fileno(), _SLOT, _ADOPTION * _SLOT)
        except OSError:
            return b""

    def close(self) -> None:
        """Close the file."""
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
        """The descriptor of the file at the path; a file that was moved or removed is closed."""
        if self._fd is not None:
            with suppress(FileNotFoundError):
                if os.path.samestat(self.path.stat(), os.fstat(self._fd)):
                    return self._fd
            self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if is_new:
            sync_folder(self.path.parent)
        return self._fd

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def _committed_write(slots: list[Head | None], head: Head) -> dict[int, Head]:
    """The slot to write for a committed head: the older one, in case the write is torn. Empty if it is stored already."""
    older, newer = sorted(_COMMITTED, key=lambda index: _seq(slots[index]))
    return {older: head} if _seq(slots[newer]) < head.seq else {}


def _put(fd: int, writes: dict[int, Head]) -> None:
    """Write some slots durably. Raises `OSError`."""
    try:
        for index, head in writes.items():
            if os.pwrite(fd, _slot(head), index * _SLOT) != _SLOT:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _synchronise(fd)
    except OSError:
        # It may not be durable, so no other process may find it.
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
    return max((slots[index] for index in _COMMITTED), key=_seq)


def _seq(head: Head | None) -> int:
    return -1 if head is None else head.seq


def _head(slot: bytes) -> Head | None:
    try:
        seq, digest, check = slot.decode().split()
        return Head(int(seq), digest) if int(check, 16) == crc32(f"{seq} {digest}".encode()) else None
    except ValueError:
        return None
