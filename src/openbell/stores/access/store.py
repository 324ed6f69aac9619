"""Transactions on the access database, the same on SQLite and PostgreSQL.

A transaction is a function that gets a connection; the modules beside this one have the functions to call in it. There is
one writer at a time, in all processes.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, insert, select

from openbell.market.errors import Refused, StoreError
from openbell.stores.access.tables import ACCESS, keys
from openbell.stores.records import failures, schema
from openbell.stores.records.database import Database
from openbell.stores.records.sqlite import EmptyDatabase

T = TypeVar("T")
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
        self._preparing = asyncio.Lock()
        self._ready = False
        self._writes = 0
        self._looked_at = -_LOOK_SECONDS
        self._seen: Hashable = None
        self._empty: EmptyDatabase | None = None
        self._key: bytes | None = None

    def version(self) -> Hashable:
        """Returns a value that differs after every write, by this or another process; cheap to call.

        It differs at once after a write of this store, and within milliseconds after one of another process.
        """
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at, self._seen = now, self.database.version()
        return (self._writes, self._seen)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Call a function with a consistent view and return its result. Raises `StoreError`."""
        await self._prepare()
        if self._empty is not None:
            return self._empty.read(work)
        return await self._run(work, writing=False)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Call a function that may write and return its result. Raises `StoreError`, or `Refused` if read-only."""
        if self._read_only:
            raise Refused("this desk was started with --read-only: it writes nothing")
        await self._prepare()

        def transaction(connection: Connection) -> T:
            schema.wait_for_writers(connection)
            schema.check_version(connection, ACCESS)
            result = work(connection)
            self.database.announce(connection)
            return result

        try:
            return await self._run(transaction, writing=True)
        except schema.OtherVersion:
            self._ready = False  # the next call migrates older tables, and refuses newer ones
            raise
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
        await self.database.close()
        if self._empty is not None:
            self._empty.close()

    async def _prepare(self) -> None:
        """Create or migrate the tables once. Raises `StoreError`."""
        if not self._ready:
            async with self._preparing:
                self._ready = await self._migrate()

    async def _migrate(self) -> bool:
        """Returns False if there are no tables and this store must not create them."""
        if self._ready:
            return True
        if self._read_only and not await self._exists():
            self._empty = self._empty or EmptyDatabase(ACCESS)
            return False
        if not await self._run(partial(schema.is_newest, tables=ACCESS), writing=False):
            await self._upgrade()
        self._empty = None
        return True

    async def _upgrade(self) -> None:
        if self._read_only:
            raise StoreError(
                f"the users and tokens in {self.database.where} are of another version of Openbell, and --read-only "
                "changes nothing: start Openbell once without --read-only"
            )
        async with schema.migrating():
            await self._run(partial(schema.prepare, tables=ACCESS), writing=True)

    async def _exists(self) -> bool:
        with failures.translated(self.database.where):
            return await self.database.exists()

    async def _run(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        """Run `work` in a transaction. Raises `StoreError` for failures of the database, without statements or values."""
        with failures.translated(self.database.where):
            return await self.database.run(work, writing=writing)


def _create_key(connection: Connection) -> str:
    """Returns the shared key, which another process may have created meanwhile."""
    found = connection.execute(select(keys.c.value).where(keys.c.name == _KEY)).scalar()
    if found is None:
        found = secrets.token_hex(32)
        connection.execute(insert(keys), {"name": _KEY, "value": found})
    return found
