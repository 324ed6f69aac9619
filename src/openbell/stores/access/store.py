"""Transactions on the access database, the same on SQLite and PostgreSQL.

A transaction is a function that gets a connection; the modules beside this one have the functions to call in it. There is
one writer at a time, in all processes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable
from typing import TypeVar, TypeVarTuple

from sqlalchemy import Connection, insert, select

from openbell.market.errors import Refused
from openbell.stores.access.tables import ACCESS, keys
from openbell.stores.records.database import Database, MigratedDatabase

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
A_TABLE = "users"
"""A table that exists once the database was migrated."""
_KEY = "gateway"
_LOOK_SECONDS = 0.02
"""How often `version` looks at the database, which takes 30 µs on SQLite."""


class AccessStore:
    """Users, clients and tokens of one desk."""

    def __init__(self, database: Database, *, read_only: bool = False) -> None:
        """With `read_only` nothing is created or written; a database that does not exist is read as an empty one."""
        self.database = database
        self._read_only = read_only
        self._tables = MigratedDatabase(database, ACCESS, "the users and tokens", read_only=read_only)
        self._writes = 0
        self._looked_at = -_LOOK_SECONDS
        self._seen: Hashable = None
        self._key: bytes | None = None

    def version(self) -> Hashable:
        """Returns a value that differs after every write, by this or another process; cheap to call.

        It differs at once after a write of this store, and within milliseconds after one of another process.
        """
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at, self._seen = now, self.database.version()
        return (self._writes, self._seen)

    async def read(self, work: Callable[[Connection, *Ts], T], *given: *Ts) -> T:
        """Call a function with a consistent view and what is `given`, and return its result. Raises `StoreError`."""
        await self._tables.prepare()

        def transaction(connection: Connection) -> T:
            return work(connection, *given)

        return await self._tables.run(transaction, writing=False)

    async def write(self, work: Callable[[Connection, *Ts], T], *given: *Ts) -> T:
        """Call a function that may write, also with what is `given`, and return its result.

        Raises `StoreError`, or `Refused` if read-only.
        """
        if self._read_only:
            raise Refused("this desk was started with --read-only: it writes nothing")
        await self._tables.prepare()

        def transaction(connection: Connection) -> T:
            self._tables.begin_write(connection)
            result = work(connection, *given)
            self.database.announce(connection)
            return result

        try:
            return await self._tables.run(transaction, writing=True)
        finally:
            self._writes += 1

    async def key(self) -> bytes:
        """Returns the key of 32 bytes that all gateway processes share; the first call creates it."""
        if self._key is None:
            query = select(keys.c.value).where(keys.c.name == _KEY)
            found: str | None = await self.read(lambda connection: connection.execute(query).scalar())
            if found is None:
                found = await self.write(_create_key)
            self._key = bytes.fromhex(found)
        return self._key

    async def close(self) -> None:
        """Close all files and connections."""
        await self._tables.close()


def _create_key(connection: Connection) -> str:
    """Returns the shared key, which another process may have created meanwhile."""
    found = connection.execute(select(keys.c.value).where(keys.c.name == _KEY)).scalar()
    if found is None:
        found = secrets.token_hex(32)
        connection.execute(insert(keys), {"name": _KEY, "value": found})
    return found
