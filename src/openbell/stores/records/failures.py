"""A database's failure as one of ours: what happened and where, never a statement, a value or a password."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from openbell.market.errors import StoreError, StoreTimeout
from openbell.stores.sqlite_connections import is_locked

_LOST = ("08", "57P")
"""PostgreSQL's classes of errors that end a connection."""
_VALUE = "22"
"""Its class of errors whose words repeat a value."""


def said(where: str, error: SQLAlchemyError | OSError) -> StoreError:
    """The error to raise instead."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if is_locked(cause):
        return StoreTimeout(f"the records in {where} are locked by another process for too long")
    if isinstance(error, TimeoutError | PoolTimeout):
        return StoreTimeout(f"the records in {where} did not answer in time")
    hint = ""
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        hint = "; it holds orders, so nothing was changed in it: stop every Openbell and put back a copy that is sound"
    return StoreError(f"the records in {where} failed: {words(error)}{hint}")


def words(error: BaseException) -> str:
    """An error's own words: drivers put their class before them and the statement behind."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, OSError):
        return cause.strerror or str(cause) or type(cause).__name__
    state = getattr(cause, "sqlstate", None)
    driver = cause.__cause__ or cause  # asyncpg's own, inside SQLAlchemy's
    if (state or "").startswith(_VALUE) or isinstance(driver, ValueError):
        return f"it cannot hold a value that it was given ({type(driver).__name__})"
    lines = str(cause).splitlines()
    return (lines[0] if lines else type(cause).__name__).rpartition(">: ")[2][:300]


def is_lost(error: SQLAlchemyError) -> bool:
    """Whether the connection is gone."""
    return isinstance(error, DBAPIError) and (error.connection_invalidated or _state(error).startswith(_LOST))


def was_answered(error: SQLAlchemyError | OSError) -> bool:
    """Whether PostgreSQL itself said no: then nothing was done."""
    state = _state(error)
    return bool(state) and not state.startswith(_LOST)


def _state(error: BaseException) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""
