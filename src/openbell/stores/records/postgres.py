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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from openbell.market.errors import SettingsError, StoreError, StoreTimeout
from openbell.stores.records import failures, postgres_transactions
from openbell.stores.records import schema as schemas
from openbell.stores.records.postgres_transactions import CommitListener, announce
from openbell.stores.threads import CALLER, FairQueue

T = TypeVar("T")
_DROP_TRIES = 3
_CONNECT_TRIES = 5
_SWEEP_SECONDS = 15.0
_FAILURES = (SQLAlchemyError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PoolLimits:
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
        pool: PoolLimits = PoolLimits(),  # noqa: B008 - immutable
        *,
        creates: bool = True,
        table: str = "ledger",
        home: Path | None = None,
    ) -> None:
        """`creates`: create the schema if it does not exist. `table` is one that exists once the schema was migrated.

        `home` is the folder in which this home's processes prove that they run.
        """
        self._table = table
        self._pool = pool
        self._creates = creates
        parsed = read_url(url)
        host = parsed.host or parsed.query.get("host") or "localhost"
        self.where = f"{host}:{parsed.port or 5432}/{parsed.database or ''}, schema {schema}"
        self._schema = schema
        self._url = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
        self._options = {schemas.HOME: home, "schema_translate_map": {None: schema}}
        self._behind_proxy: bool | None = None
        """None until the first connection was opened."""
        self._probing = asyncio.Lock()
        self._probe: asyncpg.Connection | None = None
        """The first connection, until the engine uses it."""
        self._engines: dict[bool, AsyncEngine] = {}
        """By `_behind_proxy`."""
        self._idle: deque[tuple[float, AsyncConnection]] = deque()
        self._free = asyncio.Semaphore(pool.most)
        self._busy = 0
        # Principals are served in turn.
        self._reading = FairQueue(pool.most, pool.most)
        # One writer of a process at a time: others would only hold connections while they wait for the lock.
        self._writing = FairQueue(1, 1)
        self._made_schema = False
        self._closed = False
        self._sweeper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[Any]] = set()
        self._commits = CommitListener(self._open_listener, schema)

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """See `Database`. Runs on a connection of the pool.

        A caller that is cancelled does not wait until the connection is closed: a stalled server takes 2 s for that.
        """
        task = asyncio.ensure_future(self._run(work, writing=writing, then=then))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            task.cancel()
            raise

    async def _run(self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None) -> T:
        async with (self._writing if writing else self._reading).place(CALLER.get()):
            result = await self._transaction(work, writing=writing)
        if then is not None:
            await asyncio.to_thread(then, result)
        return result

    def version(self) -> Hashable:
        """See the port."""
        return self._commits.version()

    def open_connections(self) -> None:
        """See the port."""
        if self._sweeper is None and not self._closed:
            self._sweeper = asyncio.create_task(self._sweep())

    def announce(self, connection: Connection) -> None:
        """See the port."""
        announce(connection, self._schema)

    async def exists(self) -> bool:
        """See `Database`."""
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = $1 AND tablename = $2"
        try:
            connection = await self._open()
            try:
                async with connection.transaction():
                    return bool(await connection.fetchval(query, self._schema, self._table))
            finally:
                await connection.close()
        except _FAILURES:
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
        if self._probe is not None:
            self._probe.terminate()
        for engine in self._engines.values():
            await engine.dispose()
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
        self.open_connections()
        connection: AsyncConnection | None = None
        try:
            while connection is None:
                fresh = not self._idle
                connection = await self._connect() if fresh else self._idle.pop()[1]
                try:
                    await postgres_transactions.begin(connection, self._schema, self._pool.timeout, writing=writing)
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
        failures.recovered(self.where)
        return result

    async def _commit(self, connection: AsyncConnection, *, writing: bool) -> None:
        try:
            await connection.commit()
        except _FAILURES as error:
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

    async def _open(self, **_options: object) -> asyncpg.Connection:
        if self._probe is not None:
            connection, self._probe = self._probe, None
            return connection
        connection = await asyncpg.connect(
            self._url,
            timeout=self._pool.connect,
            command_timeout=self._pool.timeout,
            # Only what every proxy passes on; the rest is set in each transaction.
            server_settings={"application_name": "openbell"},
            statement_cache_size=0,
        )
        try:
            if self._behind_proxy is None:
                self._behind_proxy = await postgres_transactions.is_behind_proxy(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _open_listener(self) -> asyncpg.Connection:
        """Raises `asyncpg.InterfaceError` behind a proxy: it may lose notifications."""
        connection = await self._open()
        if self._behind_proxy:
            connection.terminate()
            raise asyncpg.InterfaceError("a proxy does not pass on notifications")
        return connection

    async def _open_for_engine(self) -> AsyncConnection:
        async with self._probing:
            if self._behind_proxy is None:
                self._probe = await self._open()
        behind = bool(self._behind_proxy)
        if behind not in self._engines:
            self._engines[behind] = postgres_transactions.make_engine(self._open, self._options, behind_proxy=behind)
        for left in reversed(range(_CONNECT_TRIES if behind else 1)):
            try:
                return await self._engines[behind].connect()
            except (SQLAlchemyError, asyncpg.PostgresError) as error:
                # The driver reads types before the first transaction: the proxy may have given it two sessions.
                if not left or not failures.is_unknown_statement(error):
                    raise
        raise AssertionError

    async def _connect(self) -> AsyncConnection:
        try:
            async with asyncio.timeout(self._pool.connect):
                connection = await self._open_for_engine()
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
            since = failures.failing_since(self.where)
            raise StoreTimeout(
                f"no connection to PostgreSQL at {self.where} in {self._pool.connect:g} s{since}"
            ) from None
        except _FAILURES as error:
            raise failures.unreachable(self.where, error) from None

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
    with suppress(*_FAILURES):
        await connection.invalidate()
    with suppress(*_FAILURES):
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
