"""What a connection to PostgreSQL needs to know, set anew in every transaction, so that proxies cannot lose it.

A proxy may drop the settings of a session, and one that pools transactions gives each transaction another session. So
nothing is kept in sessions: names carry their schema, settings are local to a transaction, locks end with it. Behind a
proxy, statements are not prepared in advance either, and commits of other processes are looked for once a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

_BEGIN = text(
    "SELECT set_config('search_path', :path, true), set_config('synchronous_commit', 'on', true), "
    "set_config('idle_in_transaction_session_timeout', :idle, true)"
)
_PREPARED = 100
"""How many prepared statements of a direct connection are kept."""


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
