"""Records in PostgreSQL, through asyncpg.

The pool is our own: so many connections at least and at most, idle ones closed after a time, a new one made in a bounded
time or not at all.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from openbell.market.errors import SettingsError

T = TypeVar("T")
_SNAPSHOT = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
_ASK_AFTER = 5.0
"""Seconds of idleness after which a connection is asked whether it is still there."""


@dataclass(frozen=True, slots=True)
class Pool:
    """How many connections, and how long they may take."""

    least: int = 2
    most: int = 10
    idle: float = 300.0
    connect: float = 5.0
    timeout: float = 10.0
    """Seconds for one statement."""


class PostgresDatabase:
    """One schema of one database."""

    source = "postgresql"

    def __init__(self, url: str, schema: str, pool: Pool = Pool()) -> None:  # noqa: B008 - immutable
        self._pool = pool
        parsed = read_url(url)
        self.where = f"{parsed.host or 'localhost'}:{parsed.port or 5432}/{parsed.database or ''}, schema {schema}"
        self._schema = schema
        self._engine = create_async_engine(
            parsed,
            poolclass=NullPool,
            connect_args={
                "timeout": pool.connect,
                "command_timeout": pool.timeout,
                "server_settings": {"search_path": schema, "application_name": "openbell"},
            },
        )
        self._idle: deque[tuple[float, AsyncConnection]] = deque()
        self._free = asyncio.Semaphore(pool.most)
        self._made_schema = False
        self._sweeper: asyncio.Task[None] | None = None

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run it on a connection of the pool."""
        async with self._connection() as connection, connection.begin():
            if not writing:
                await connection.execute(_SNAPSHOT)
            result = await connection.run_sync(work)
        if then is not None:
            await asyncio.to_thread(then, result)
        return result

    async def close(self) -> None:
        """Close every connection."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        while self._idle:
            await self._idle.popleft()[1].close()
        await self._engine.dispose()

    @property
    def idle(self) -> int:
        """How many connections wait to be used."""
        return len(self._idle)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection]:
        async with self._free:
            connection = await self._take()
            try:
                yield connection
            except BaseException:
                # It may be in the middle of anything; a new one is cheap.
                with suppress(SQLAlchemyError, OSError):
                    await connection.close()
                raise
            self._idle.append((time.monotonic(), connection))
            if self._sweeper is None:
                self._sweeper = asyncio.create_task(self._sweep())

    async def _take(self) -> AsyncConnection:
        """The connection that was used last, if it is still there, or a new one."""
        while self._idle:
            since, connection = self._idle.pop()
            if time.monotonic() - since < _ASK_AFTER or await _answers(connection):
                return connection
        async with asyncio.timeout(self._pool.connect):
            connection = await self._engine.connect()
            if not self._made_schema:
                async with connection.begin():
                    await connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"'))
                self._made_schema = True
        return connection

    async def _sweep(self) -> None:
        """Close what was idle for too long, but for the least that are kept; make up to that many."""
        while True:
            await asyncio.sleep(min(self._pool.idle, 30.0) / 2)
            while len(self._idle) > self._pool.least and time.monotonic() - self._idle[0][0] > self._pool.idle:
                _, connection = self._idle.popleft()
                with suppress(SQLAlchemyError, OSError):
                    await connection.close()


async def _answers(connection: AsyncConnection) -> bool:
    try:
        async with connection.begin():
            await connection.execute(text("SELECT 1"))
    except (SQLAlchemyError, OSError):
        with suppress(SQLAlchemyError, OSError):
            await connection.close()
        return False
    return True


def read_url(url: str) -> URL:
    """A `postgresql://` URL for asyncpg. Raises `SettingsError`, which does not repeat it: it may hold a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SettingsError("OPENBELL_DATABASE_URL cannot be read: use postgresql://USER:PASSWORD@HOST/NAME") from None
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise SettingsError("OPENBELL_DATABASE_URL must begin with postgresql://")
    return parsed.set(drivername="postgresql+asyncpg")
