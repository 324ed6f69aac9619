"""Compares the ledger in the database with its head, which is stored in a file outside the database.

Before the first read and the first write of a process, the ledger must contain the head that was noted last. Each write must
find the ledger ending where the head file allows: an entry after that was not written by this home, and the next head would
cover it. In PostgreSQL such an entry may come from another machine, which has a head file of its own, and is accepted.

On PostgreSQL the head that a process reads is noted too, about once a second, so that a home which only reads refuses a
ledger that was truncated. A home that has accepted no head yet notes none: its operator decides.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from sqlalchemy import Connection

from openbell.market.errors import StoreError
from openbell.stores.records.journal import LedgerBroken, contains, head_of
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.trading.ledger import Head, goes_beyond, unknown_scheme

log = logging.getLogger(__name__)

_FOLLOW_SECONDS = 1.0
"""The shortest time between two notes of heads that were read."""
Compare = Callable[[Head | None], Awaitable[tuple[Head, bool]]]
"""Runs `compare` in a read transaction."""


def compare(connection: Connection, noted: Head | None) -> tuple[Head, bool]:
    """The ledger's last entry, and whether the ledger contains the head that was noted."""
    newest = head_of(connection)
    return newest, noted is not None and contains(connection, newest, noted)


class HeadGuard:
    """The checks of one process, and the heads that it has seen."""

    def __init__(self, file: HeadFile, where: str, what: str, *, one_home: bool) -> None:
        """`where` and `what` name the records in messages; `one_home`: every writer shares this head file."""
        self._file = file
        self._where = where
        self._what = what
        self._one_home = one_home
        self.noted: Head | None = None
        """The newest head that this process has noted, or found to be noted."""
        self.last_read: Head | None = None
        """Where the ledger ended when this process last read it."""
        self._reads_allowed = False
        self._writes_allowed = False
        self._adoption: bytes | None = None
        """The mark of the head file when this process first compared the ledger with it."""
        self._followed = -_FOLLOW_SECONDS

    async def check_before_reading(self, compare_with: Compare) -> None:
        """Raise `LedgerBroken` if the ledger was cut off or replaced since its head was noted. Checks once.

        A damaged head file is only logged: reading is still allowed.
        """
        if self._reads_allowed:
            return
        await self._remember_adoption()
        try:
            noted = await asyncio.to_thread(self._file.read)
        except StoreError as damage:
            log.warning("%s", damage)
            noted = None
        if noted is not None:
            newest, found = await compare_with(noted)
            if not found:
                raise LedgerBroken(
                    f"the records in {self._where} are not those that were written: {_mismatch(newest, noted)}. "
                    f"Check them with {self._file.verify}; {self._file.verify} --adopt accepts them as they are"
                )
            self.remember(noted)
        self._reads_allowed = True

    async def follow(self, *, at_once: bool = False) -> None:
        """Note the head that was read last, if this home follows the ledger; at most once a second, unless `at_once`."""
        head, noted = self.last_read, self.noted
        if self._one_home or head is None or noted is None or head.seq <= noted.seq:
            return
        if not at_once and time.monotonic() - self._followed < _FOLLOW_SECONDS:
            return
        self._followed = time.monotonic()
        try:
            await asyncio.to_thread(self._file.note, head)
        except StoreError as error:
            log.warning("the ledger's head was read and not noted: %s", error)
        else:
            self.remember(head)

    async def begin_anew(self) -> bool:
        """Forget all heads if an operator has accepted the ledger as it is since they were compared. Returns True then."""
        found = await asyncio.to_thread(self._file.adoption)
        if found == self._adoption:
            return False
        self._adoption, self.noted, self.last_read = found, None, None
        self._reads_allowed = self._writes_allowed = False
        return True

    async def _remember_adoption(self) -> None:
        if self._adoption is None:
            self._adoption = await asyncio.to_thread(self._file.adoption)

    def check_same_ledger(self, connection: Connection, last_read: Head | None) -> None:
        """Raise `LedgerBroken` if the ledger no longer contains `last_read`: this process has cached another ledger.

        `last_read` must be taken before the transaction begins: other tasks may have read a newer ledger since then.
        """
        newest = head_of(connection)
        if last_read is not None and not contains(connection, newest, last_read):
            raise LedgerBroken(
                f"{self._what} emptied or replaced while this process used it: start this process again to use the records "
                f"that are in {self._where} now, or accept them with {self._file.verify} --adopt"
            )
        if self.last_read is None or newest.seq > self.last_read.seq:
            self.last_read = newest

    async def check_before_writing(self, compare_with: Compare) -> None:
        """Raise `LedgerBroken` unless the ledger contains the head that was noted. Checks once.

        The head of an empty ledger is noted before its first entry, so a ledger with entries always has a head.
        """
        while not self._writes_allowed:
            await self._remember_adoption()
            if await asyncio.to_thread(self._file.adoption) != self._adoption:
                raise LedgerBroken(self._refusal("another one was accepted since this process read it"))
            noted = await asyncio.to_thread(self._file.read)
            newest, found = await compare_with(noted)
            if noted is None and newest.seq == 0:
                noted, found = newest, True
                await asyncio.to_thread(self._file.note, newest)
            if not found and noted is None and await asyncio.to_thread(self._file.read) is not None:
                continue  # another process has just noted the first head
            if not found:
                raise LedgerBroken(self._refusal(_mismatch(newest, noted), is_new=noted is None))
            self.noted, self._writes_allowed = noted, True

    def check_end(self, found: Head) -> None:
        """Raise `LedgerBroken` if the ledger's end is not one that the head file allows, `StoreError` if its scheme is new.

        Call it with the write lock: the last writer announced its end before it released the lock.
        """
        ends = self._file.ends() if self._one_home and found != self.noted else (found,)
        if found in ends:
            if unknown := unknown_scheme(found.hash):
                raise StoreError(f"nothing was written: the ledger's last entry {unknown}")
            return
        if ends and goes_beyond(found, ends):
            raise LedgerBroken(self._refusal(_surplus(found, ends[0])))
        raise LedgerBroken(self._refusal(_mismatch(found, ends[0] if ends else None)))

    def announce(self, found: Head, wanted: Head) -> None:
        """Store that a commit will take the ledger from `found` to `wanted`. Raises `StoreError`."""
        try:
            self._file.intend(found, wanted)
        except StoreError as error:
            raise StoreError(f"nothing was written, because the ledger's head cannot be: {error}") from error

    def note(self, head: Head) -> None:
        """Store a committed head, unless this process has noted it already. Raises `StoreError`."""
        if self.noted is not None and head.seq <= self.noted.seq:
            return
        try:
            self._file.note(head)
        except StoreError as error:
            raise StoreError(f"this was written, but the ledger's head was not noted: {error}") from error

    def remember(self, head: Head) -> None:
        """Keep the newest head that was noted."""
        if self.noted is None or head.seq > self.noted.seq:
            self.noted = head

    def adopt(self, head: Head) -> None:
        """Accept the ledger that ends at `head`, which the head file holds now."""
        self.noted, self._writes_allowed, self._reads_allowed = head, True, True
        self.last_read, self._adoption = None, self._file.adoption()

    async def refusal(self, compare_with: Compare) -> str | None:
        """Why a write would be refused now; None if it would not be."""
        noted = await asyncio.to_thread(self._file.read)
        newest, found = await compare_with(noted)
        if not found and (noted or newest.seq):
            return _mismatch(newest, noted)
        # Read after the ledger: the end of every entry found there was announced before.
        ends = await asyncio.to_thread(self._file.ends)
        return _surplus(newest, ends[0]) if self._one_home and ends and goes_beyond(newest, ends) else None

    def _refusal(self, reason: str, *, is_new: bool = False) -> str:
        """The message of a write that is refused; `is_new`: this home has no head, so that there is nothing to check."""
        verify = self._file.verify
        refused = f"the ledger cannot be trusted: {reason}; nothing is written to it. "
        if is_new and not self._one_home:
            head = "--head NUMBER:HASH compares it with the head that openbell verify prints on another machine"
            return f"{refused}Accept it with {verify} --adopt; {head}"
        return f"{refused}Check it with {verify}; if it is correct, accept it as it is with {verify} --adopt"


def _mismatch(newest: Head, noted: Head | None) -> str:
    if noted is None:
        return f"it has {newest.seq} entries, and this home has noted no head of it"
    return f"its entry {noted.seq} is not the one that was noted"


def _surplus(newest: Head, noted: Head) -> str:
    return f"it ends at entry {newest.seq}, and its head was noted at {noted.seq}: this home did not write what comes after"
