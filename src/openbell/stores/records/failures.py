"""Turns failures of a database into `StoreError`: the place, the cause and since when, never a statement or a password."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from openbell.market.clock import iso
from openbell.market.errors import StoreError, StoreTimeout, StoreUnreachable
from openbell.stores.records.causes import is_driver_error, words
from openbell.stores.sqlite_connections import is_locked

_LOST = ("08", "57P")
"""PostgreSQL's classes of errors that end a connection."""
_NO_OUTAGE = ("22", "23", "40", "42")
"""PostgreSQL's classes of errors of one statement: the database works."""
_REMEMBERED = 120.0
"""Seconds without a failure after which the next one begins another outage."""
_since: dict[str, tuple[float, float]] = {}
"""By place: when the first and the last of its failures in a row were seen."""


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Raise failures of the database inside the block as `StoreError` or `StoreTimeout`."""
    try:
        yield
    except (SQLAlchemyError, OSError) as error:
        raise store_error(where, error) from None
    except Exception as error:
        if not is_driver_error(error):
            raise
        raise store_error(where, error) from None


def store_error(where: str, error: Exception) -> StoreError:
    """The error to raise instead of a database's own; `where` names the database."""
    cause = getattr(error, "orig", None) or error
    if is_locked(cause):
        return StoreTimeout(f"the records in {where} are locked by another process for too long")
    if isinstance(error, TimeoutError | PoolTimeout):
        return StoreTimeout(f"the records in {where} did not answer in time{failing_since(where)}")
    hint = ""
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        hint = "; the file was left unchanged: stop every Openbell process and restore a backup"
    since = "" if _state(error).startswith(_NO_OUTAGE) else failing_since(where)
    return StoreError(f"the records in {where} failed: {words(error, where)}{hint}{since}")


def unreachable(where: str, error: Exception) -> StoreError:
    """The error to raise if no connection to PostgreSQL can be opened."""
    return StoreUnreachable(f"no connection to PostgreSQL at {where}: {words(error, where)}{failing_since(where)}")


def failing_since(where: str) -> str:
    """Note that a database fails; returns since when, for messages."""
    now = time.time()
    began, last = _since.get(where, (now, now))
    began = began if now - last < _REMEMBERED else now
    _since[where] = began, now
    return f" (since {iso(int(began))})"


def recovered(where: str) -> None:
    """Note that a database works."""
    _since.pop(where, None)


def is_deadlock(error: SQLAlchemyError) -> bool:
    """Returns True if the database has ended the transaction because it and another one waited for each other."""
    return isinstance(error, DBAPIError) and _state(error) == "40P01"


def is_unknown_statement(error: BaseException) -> bool:
    """Returns True if the server does not know a statement that was prepared: a proxy has given us another session."""
    return (_state(error) or getattr(error, "sqlstate", None)) == "26000"


def is_lost(error: SQLAlchemyError) -> bool:
    """Returns True if the connection has ended."""
    return isinstance(error, DBAPIError) and (error.connection_invalidated or _state(error).startswith(_LOST))


def was_answered(error: Exception) -> bool:
    """Returns True if PostgreSQL itself refused a commit, so that nothing was written."""
    state = _state(error)
    return bool(state) and not state.startswith(_LOST)


def _state(error: BaseException) -> str:
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""
