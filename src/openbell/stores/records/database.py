"""The port to a database: SQLite and PostgreSQL implement it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class Database(Protocol):
    """Runs functions as transactions."""

    source: str
    """The name that results show as their source: `sqlite` or `postgresql`."""
    where: str
    """A description of the place, without secrets."""

    async def run(
        self, work: Callable[[Connection], T], *, writing: bool, then: Callable[[T], None] | None = None
    ) -> T:
        """Run `work` in a transaction and return its result. `then` is called with it after the commit and may block."""

    def version(self) -> Hashable:
        """Returns a value that differs after every commit, by this or another process; cheap to call."""

    def announce(self, connection: Connection) -> None:
        """Let `version` of every process differ once this transaction has committed."""

    async def exists(self) -> bool:
        """Returns True if there are tables. Creates nothing."""

    def open_connections(self) -> None:
        """Open the least number of connections that it keeps, in the background, and keep as many from now on."""

    async def close(self) -> None:
        """Close all connections."""
