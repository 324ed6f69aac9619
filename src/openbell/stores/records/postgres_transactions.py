"""Transactions on PostgreSQL, with settings that proxies cannot lose, and learning of commits by any process.

A proxy may drop the settings of a session, and one that pools transactions gives each transaction another session. So
nothing is kept in sessions: names carry their schema, settings are local to a transaction, locks end with it. Behind a
proxy, statements are not prepared in advance either, and commits of other processes are looked for once a second; without
one, LISTEN and NOTIFY announce them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

_BEGIN = text(
    "SELECT set_config('search_path', :path, true), set_config('synchronous_commit', 'on', true), "
    "set_config('idle_in_transaction_session_timeout', :idle, true)"
)
_PREPARED = 100
"""How many prepared statements of a direct connection are kept."""
log = logging.getLogger(__name__)
_NOTIFY = text("SELECT pg_notify(:channel, '')")
_RETRY_SECONDS = 5.0


def make_engine(connect: Callable[..., Awaitable[Any]], options: dict[str, Any], *, behind_proxy: bool) -> AsyncEngine:
    """Returns an engine whose connections are opened by `connect`, with these execution options."""
    return create_async_engine(
        "postgresql+asyncpg://",
        connect_args={
            "async_creator_fn": connect,
            "prepared_statement_cache_size": 0 if behind_proxy else _PREPARED,
            # Sessions of the proxy are shared: another client may have used the same name.
            "prepared_statement_name_func": (lambda: f"__openbell_{uuid4().hex}__") if behind_proxy else None,
        },
        poolclass=NullPool,
        hide_parameters=True,
        execution_options=options,
    )


async def begin(connection: AsyncConnection, schema: str, idle_seconds: float, *, writing: bool) -> None:
    """Begin a transaction with its settings.

    A writer that has waited for the lock must see what was committed meanwhile. A process that is stopped or disconnected
    during a write must not block all other writers: the server ends its transaction.
    """
    driver: Any = (await connection.get_raw_connection()).dbapi_connection
    dialect: Any = connection.dialect
    # Not by `execution_options`: until a connection is closed, it keeps what each of them has to reset.
    dialect.set_isolation_level(driver, "READ COMMITTED" if writing else "REPEATABLE READ")
    dialect.set_readonly(driver, not writing)
    path = '"' + schema.replace('"', '""') + '"'
    await connection.execute(_BEGIN, {"path": path, "idle": str(max(1, round(idle_seconds * 1000)))})


async def is_behind_proxy(connection: asyncpg.Connection) -> bool:
    """Returns True if a proxy answers for the server: the process that serves us is not the one that greeted us."""
    async with connection.transaction():
        return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())


def channel_of(schema: str) -> str:
    """Returns the name of the channel on which commits to a schema are announced."""
    return f"openbell_{sha256(schema.encode()).hexdigest()[:16]}"


def announce(connection: Connection, schema: str) -> None:
    """Notify the listeners of every process when this transaction commits."""
    connection.execute(_NOTIFY, {"channel": channel_of(schema)})


class CommitListener:
    """Holds one connection that listens, and counts what it hears. While it has none, it counts seconds instead."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], schema: str) -> None:
        self._connect = connect
        self._channel = channel_of(schema)
        self._connection: Any = None
        self._connecting: asyncio.Task[None] | None = None
        self._tried = -_RETRY_SECONDS
        self._heard = 0

    def version(self) -> Hashable:
        """Returns a value that differs after every announced commit. Opens the connection if there is none."""
        if self._connection is not None and not self._connection.is_closed():
            return self._heard
        if self._connecting is None and time.monotonic() - self._tried >= _RETRY_SECONDS:
            self._tried = time.monotonic()
            self._connecting = asyncio.create_task(self._open(), name="listen")
        return (self._heard, int(time.monotonic()))

    async def close(self) -> None:
        """Close the connection."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._connection is not None:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                await self._connection.close(timeout=1.0)

    async def _open(self) -> None:
        try:
            connection = await self._connect()
            await connection.add_listener(self._channel, self._hear)
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
            log.debug("commits of other processes are looked for once a second: %s", type(error).__name__)
        else:
            self._connection = connection
        finally:
            self._heard += 1  # something may have been committed before
            self._connecting = None

    def _hear(self, *_details: object) -> None:
        self._heard += 1
