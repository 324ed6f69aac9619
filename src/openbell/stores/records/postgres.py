"""Records in PostgreSQL, through asyncpg, with a connection pool of our own.

The pool keeps between `least` and `most` connections, closes idle ones, and opens a new one within a timeout. Beginning the
transaction shows whether a connection is alive; a dead one is replaced before any statement of the caller runs. Later
failures are not retried, and a commit without an answer raises an error with `outcome="unknown"`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from openbell.market.errors import SettingsError, StoreError, StoreTimeout
from openbell.stores.records import failures
from openbell.stores.records import schema as schemas
from openbell.stores.records.commits import CommitListener, announce

T = TypeVar("T")
_READING = text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
_WRITING = text("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE")
"""Set explicitly: a writer that has waited for the lock must see what was committed meanwhile."""
_DROP_TRIES = 3
_SWEEP_SECONDS = 15.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pool:
    """The number of connections, and timeouts in seconds."""

    least: int = 2
    most: int = 10
    idle: float = 300.0
    connect: float = 5.0
    timeout: float = 10.0
    """For one statement."""


class PostgresDatabase:
    """One schema of one database."""

    source = "postgresql"

    def __init__(
        self,
        url: str,
        schema: str,
        pool: Pool = Pool(),  # noqa: B008 - immutable
        *,
        creates: bool = True,
        table: str = "ledger",
    ) -> None:
        """`creates`: create the schema if it does not exist. `table` is one that exists once the schema was migrated."""
        self._table = table
        self._pool = pool
        self._creates = creates
        parsed = read_url(url)
        host = parsed.host or parsed.query.get("host") or "localhost"
        self.where = f"{host}:{parsed.port or 5432}/{parsed.database or ''}, schema {schema}"
        self._schema = schema
        self._session = {
            "search_path": '"' + schema.replace('"', '""') + '"',
            "application_name": "openbell",
            "synchronous_commit": "on",
            # A process that is stopped or disconnected during a write must not block all other writers.
            "idle_in_transaction_session_timeout": str(max(1, round(pool.timeout * 1000))),
        }
        self._url = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
        self._engine = create_async_engine(
            "postgresql+asyncpg://", async_creator=self._open, poolclass=NullPool, hide_parameters=True
        )
        self._idle: deque[tuple[float, AsyncConnection]] = deque()
        self._free = asyncio.Semaphore(pool.most)
        self._busy = 0
        # One writer of a process at a time: others would only hold connections while they wait for the lock.
        self._writer = asyncio.Lock()
        self._made_schema = False
        self._closed = False
        self._sweeper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._commits = CommitListener(self._open, schema)

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """See `Database`. Runs on a connection of the pool."""
        async with self._writer if writing else nullcontext():
            result = await self._transaction(work, writing=writing)
        if then is not None:
            await asyncio.to_thread(then, result)
        return result

    def version(self) -> Hashable:
        """See the port."""
        return self._commits.version()

    def announce(self, connection: Connection) -> None:
        """See the port."""
        announce(connection, self._schema)

    async def exists(self) -> bool:
        """See `Database`."""
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = $2"
        try:
            connection = await self._open()
            try:
                return bool(await connection.fetchval(query, self._schema, self._table))
            finally:
                await connection.close()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return True  # the next read raises the error

    async def schema_names(self, prefix: str) -> list[str]:
        """The schemas of the database whose names start with `prefix`. Raises `StoreError`."""
        with failures.translated(self.where):
            return await self.run(lambda connection: schemas.names(connection, prefix), writing=False)

    async def drop_schema(self, name: str) -> None:
        """Drop a schema of the database and everything in it. Raises `StoreError`."""
        with failures.translated(self.where):
            for left in reversed(range(_DROP_TRIES)):
                try:
                    await self.run(lambda connection: schemas.drop(connection, name), writing=True)
                except SQLAlchemyError as error:
                    # Readers lock its tables one after the other, in another order than this does.
                    if not left or not failures.is_deadlock(error):
                        raise
                else:
                    return

    async def close(self) -> None:
        """Close all connections, after waiting for those in use."""
        self._closed = True
        await self._commits.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait([self._sweeper])
        for _ in range(self._pool.most):
            await self._free.acquire()
        while self._idle:
            await _end(self._idle.popleft()[1])
        if self._closing:
            await asyncio.wait(self._closing)
        await self._engine.dispose()
        for _ in range(self._pool.most):
            self._free.release()

    @property
    def idle(self) -> int:
        """The number of idle connections."""
        return len(self._idle)

    async def _transaction(self, work: Callable[[Connection], T], *, writing: bool) -> T:
        if self._closed:
            raise StoreError("the connections to PostgreSQL were closed")
        await self._free.acquire()
        self._busy += 1
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        connection: AsyncConnection | None = None
        try:
            while connection is None:
                fresh = not self._idle
                connection = await self._connect() if fresh else self._idle.pop()[1]
                try:
                    await connection.execute(_WRITING if writing else _READING)
                except SQLAlchemyError as error:
                    if fresh or not failures.is_lost(error):
                        raise
                    self._spawn(_end(connection))
                    connection = None
            result = await connection.run_sync(work)
            await self._commit(connection, writing=writing)
        except BaseException as error:
            # Its state is unknown and a new connection is cheap, so it is closed, in the background.
            self._spawn(self._discard(connection))
            if isinstance(error, TimeoutError):
                self._close_all_idle()
            raise
        self._idle.append((time.monotonic(), connection))
        self._release()
        return result

    async def _commit(self, connection: AsyncConnection, *, writing: bool) -> None:
        try:
            await connection.commit()
        except (SQLAlchemyError, OSError) as error:
            if not writing or failures.was_answered(error):
                raise
            kind = StoreTimeout if isinstance(error, TimeoutError) else StoreError
            raise kind(
                "the connection to PostgreSQL was lost during the commit: it is unknown whether this was written. Check "
                "before you repeat it",
                outcome="unknown",
            ) from None

    async def _discard(self, connection: AsyncConnection | None) -> None:
        try:
            if connection is not None:
                await _end(connection)
        finally:
            self._release()

    def _release(self) -> None:
        self._busy -= 1
        self._free.release()

    def _close_all_idle(self) -> None:
        """Close the idle connections after a timeout: the server would not answer on them either."""
        while self._idle:
            self._spawn(_end(self._idle.pop()[1]))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        return task

    # Opening and closing connections

    async def _open(self) -> Any:
        return await asyncpg.connect(
            self._url,
            timeout=self._pool.connect,
            command_timeout=self._pool.timeout,
            server_settings=self._session,
        )

    async def _connect(self) -> AsyncConnection:
        try:
            async with asyncio.timeout(self._pool.connect):
                connection = await self._engine.connect()
                try:
                    if self._creates and not self._made_schema:
                        await connection.run_sync(schemas.create, self._schema)
                        await connection.commit()
                        self._made_schema = True
                except BaseException:
                    self._spawn(_end(connection))
                    raise
                return connection
        except TimeoutError:
            raise StoreTimeout(f"no connection to PostgreSQL at {self.where} in {self._pool.connect:g} s") from None
        except (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            raise StoreError(f"no connection to PostgreSQL at {self.where}: {failures.message(error)}") from None

    async def _sweep(self) -> None:
        """Repeatedly open connections up to `least` and close those beyond it that were idle for too long."""
        while True:
            try:
                await self._open_least()
                await self._close_idle()
            except StoreError as error:
                log.warning("%s; retrying", error)
            except Exception:
                log.exception("the pool of connections to PostgreSQL could not be maintained; retrying")
            await asyncio.sleep(min(self._pool.idle / 2, _SWEEP_SECONDS))

    async def _open_least(self) -> None:
        while self._busy + len(self._idle) < min(self._pool.least, self._pool.most):
            async with self._free:
                self._idle.append((time.monotonic(), await self._connect()))

    async def _close_idle(self) -> None:
        while self._has_expired():
            await self._free.acquire()  # the connection counts until it is closed
            connection = self._idle.popleft()[1] if self._has_expired() else None
            self._busy += 1
            await asyncio.wait([self._spawn(self._discard(connection))])

    def _has_expired(self) -> bool:
        """Returns True if the oldest idle connection should be closed."""
        return (
            self._busy + len(self._idle) > self._pool.least
            and bool(self._idle)
            and time.monotonic() - self._idle[0][0] >= self._pool.idle
        )


async def _end(connection: AsyncConnection) -> None:
    """Close a connection without waiting for an answer of the server."""
    with suppress(SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        await connection.invalidate()
    with suppress(SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
        await connection.close()


def read_url(url: str) -> URL:
    """Parse a `postgresql://` URL for asyncpg. Raises `SettingsError` without quoting the URL, which may hold a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SettingsError("OPENBELL_DATABASE_URL cannot be read: use postgresql://USER:PASSWORD@HOST/NAME") from None
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise SettingsError("OPENBELL_DATABASE_URL must begin with postgresql://")
    return parsed.set(drivername="postgresql+asyncpg")
