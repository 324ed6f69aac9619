"""Learning of commits to PostgreSQL by any process, through LISTEN and NOTIFY."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress
from hashlib import sha256
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, text

log = logging.getLogger(__name__)

_NOTIFY = text("SELECT pg_notify(:channel, '')")
_RETRY_SECONDS = 5.0


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
