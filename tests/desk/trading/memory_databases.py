"""In-memory databases, and the access of simulated processes to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Hashable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import StaticPool

from openbell.market.errors import StoreTimeout
from openbell.stores.records import schema
from openbell.stores.records.sqlite import engine_for
from openbell.stores.records.tables import RECORDS, metadata
from openbell.trading import amounts
from openbell.trading.ledger import Head

if TYPE_CHECKING:
    from tests.desk.trading.simulation import World

T = TypeVar("T")


def spelled(value: object) -> str:
    """Returns a value's text, with every amount in canonical form."""
    return re.sub(r"Decimal\('([^']+)'\)", lambda found: amounts.text(Decimal(found[1])), repr(value))


class Died(BaseException):
    """The simulated process was killed."""


class Memory:
    """A migrated database that is made once per test process; each schedule starts with empty tables."""

    def __init__(self) -> None:
        self.engine = engine_for(":memory:", poolclass=StaticPool)
        self.connection = self.engine.connect()
        schema.create_tables(self.connection, RECORDS)
        self.connection.commit()

    def empty(self) -> None:
        raw = self.raw
        for table in metadata.tables:
            raw.execute(f"DELETE FROM {table}")

    @property
    def raw(self) -> Any:
        return self.connection.connection.dbapi_connection

    def one(self, query: str, *values: object) -> Any:
        """Returns the first value of the first row; None if there is no row."""
        found = self.raw.execute(query, values).fetchone()
        return None if found is None else found[0]

    @property
    def seq(self) -> int:
        """The number of the newest entry of the ledger."""
        return int(self.one("SELECT max(seq) FROM ledger") or 0)

    def transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        connection = self.connection
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
            result = work(connection)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise
        return result


class Place:
    """A database and the stored head of its ledger: what survives the death of a process."""

    def __init__(self, memory: Memory) -> None:
        memory.empty()
        self.memory = memory
        self.head: Head | None = None
        self.intended: tuple[Head, ...] = ()

    def ends(self) -> tuple[Head, ...]:
        """Returns the heads at which the ledger may end: the stored one, or a later announced one."""
        head = self.head
        return () if head is None else (head, *(each for each in self.intended if each.seq > head.seq))


class Life:
    """A simulated process that uses one place. Only a mortal one is killed or finds its database locked."""

    mortal = False

    def __init__(self, world: World, place: Place) -> None:
        self.world = world
        self.place = place
        self.dead = False

    def touch(self, moment: str) -> None:
        """A point at which the process may be killed."""

    async def pause(self, most: int = 2) -> None:
        """Let other tasks run, as a wait for a thread or the network would."""
        for _ in range(self.world.chance.randrange(most + 1)):
            await asyncio.sleep(0)


class Line:
    """The access of one process to the database of its records."""

    source = "sqlite"
    where = "memory"

    def __init__(self, life: Life) -> None:
        self._life = life

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        life, world = self._life, self._life.world
        await life.pause()
        life.touch("before a transaction")
        if life.mortal and world.flaky and not world.calm and world.chance.random() < 0.04:
            raise StoreTimeout("the records are locked")
        try:
            result = life.place.memory.transaction(work, writing=writing)
        except IntegrityError as error:
            world.surprises.append(f"a row that is there was written again: {error.orig}")
            raise
        if writing:
            life.touch("after a transaction")
        if then is not None:
            then(result)
        await life.pause()
        return result

    def version(self) -> Hashable:
        return None

    def announce(self, connection: Connection) -> None: ...

    def open_connections(self) -> None: ...

    async def exists(self) -> bool:
        return True

    async def close(self) -> None: ...


class ReadOnlyLine(Line):
    """The access of a desk that may only read: every write is reported."""

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        memory, surprises = self._life.place.memory, self._life.world.surprises

        def watched(connection: Connection) -> T:
            before = memory.raw.total_changes
            result = work(connection)
            if memory.raw.total_changes != before:
                surprises.append("a desk of an earlier clock changed the present's records")
            return result

        if writing:
            surprises.append("a desk of an earlier clock began to write to the present's records")
        return await super().run(watched, writing=writing, then=then)


class NotedHead:
    """The access of one process to the stored head of its ledger."""

    def __init__(self, life: Life) -> None:
        self._life = life

    def read(self) -> Head | None:
        return self._life.place.head

    def ends(self) -> tuple[Head, ...]:
        return self._life.place.ends()

    def intend(self, found: Head, wanted: Head) -> None:
        self._life.touch("before the head was announced")
        place = self._life.place
        if place.head is None or place.head.seq < found.seq:
            place.head = found
        place.intended = (wanted,)
        self._life.touch("after the head was announced")

    def note(self, head: Head) -> None:
        place = self._life.place
        if place.head is None or place.head.seq < head.seq:
            place.head = head
        self._life.touch("after the head was noted")

    def adoption(self) -> bytes:
        return b""

    def reset(self, head: Head) -> None:
        self._life.place.head, self._life.place.intended = head, ()

    def close(self) -> None: ...
