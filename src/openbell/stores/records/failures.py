"""Turns failures of a database into `StoreError`: the place and the cause, never a statement, a value or a password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from openbell.market.errors import StoreError, StoreTimeout
from openbell.stores.sqlite_connections import is_locked

_LOST = ("08", "57P")
"""PostgreSQL's classes of errors that end a connection."""
_VALUE = "22"
"""PostgreSQL's class of errors whose message repeats a value."""


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise failures of the database inside the block as `StoreError` or `StoreTimeout`."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise store_error(where, error) from None


def store_error(where: str, error: SQLAlchemyError | OSError) -> StoreError:
    """The error to raise instead of a database's own; `where` names the database."""
    cause = getattr(error, "orig", None) or error
    if is_locked(cause):
        return StoreTimeout(f"the records in {where} are locked by another process for too long")
    if isinstance(error, TimeoutError | PoolTimeout):
        return StoreTimeout(f"the records in {where} did not answer in time")
    hint = ""
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        hint = "; the file was left unchanged: stop every Openbell process and restore a backup"
    return StoreError(f"the records in {where} failed: {message(error)}{hint}")


def message(error: BaseException) -> str:
    """An error's own message, without the class that drivers put before it and the statement after it."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return cause.strerror or str(cause) or type(cause).__name__
    state = getattr(cause, "sqlstate", None)
    driver = cause.__cause__ or cause  # asyncpg's error is inside SQLAlchemy's
    if (state or "").startswith(_VALUE) or isinstance(driver, ValueError):
        return f"it cannot hold a value that it was given ({type(driver).__name__})"
    lines = str(cause).splitlines()
    return (lines[0] if lines else type(cause).__name__).rpartition(">: ")[2][:300]


def is_deadlock(error: SQLAlchemyError) -> bool:
    """Returns True if the database has ended the transaction because it and another one waited for each other."""
    return isinstance(error, DBAPIError) and _state(error) == "40P01"


def is_lost(error: SQLAlchemyError) -> bool:
    """Returns True if the connection has ended."""
    return isinstance(error, DBAPIError) and (error.connection_invalidated or _state(error).startswith(_LOST))


def was_answered(error: SQLAlchemyError | OSError) -> bool:
    """Returns True if PostgreSQL itself refused a commit, so that nothing was written."""
    state = _state(error)
    return bool(state) and not state.startswith(_LOST)


def _state(error: BaseException) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""
