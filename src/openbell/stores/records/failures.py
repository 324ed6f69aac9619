"""Turns failures of a database into `StoreError`: the place, the cause and since when, in words.

Never a statement, a value, a password or the insides of a driver.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from openbell.market.clock import iso
from openbell.market.errors import StoreError, StoreTimeout, StoreUnreachable
from openbell.stores.failure_causes import LOST, sqlite_words, system_words
from openbell.stores.sqlite_connections import is_locked

_STATES = {
    "08": LOST,
    "28P01": "it refused the user or the password",
    "28": "it does not accept this user from this machine (pg_hba.conf)",
    "3D000": "there is no such database",
    "3F000": "the schema does not exist",
    "25006": "it accepts no writes: it is a standby, or set to read only",
    "25P03": "the transaction took too long and was ended",
    "40P01": "two transactions waited for each other, and this one was ended",
    "53100": "its disk is full",
    "53200": "it has no memory left",
    "53300": "it has no free connection",
    "53": "it has not enough resources",
    "57014": "the statement took too long and was ended",
    "57P01": "the connection was ended: it is shutting down, or an administrator has ended it",
    "57P02": "the connection was ended: it has crashed and is restarting",
    "57P03": "it is starting, stopping or recovering",
    "57P": LOST,
    "58": "the system that it runs on has failed: its log has the details",
    "XX001": "its data is damaged: its log has the details",
    "XX002": "its index is damaged: its log has the details",
}
"""By PostgreSQL's code of an error; a shorter code stands for its class."""
_VALUE = "22"
"""PostgreSQL's class of errors whose message repeats a value."""
_SETTINGS = (
    "sslmode",
    "sslnegotiation",
    "root certificate",
    "TLS version",
    "target_session_attrs",
    "gsslib",
    "user name",
)
"""Words in the driver's errors on connection settings."""
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
        if not _is_driver_error(error):
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
    return StoreError(f"the records in {where} failed: {_words(error, where)}{hint}{since}")


def unreachable(where: str, error: Exception) -> StoreError:
    """The error to raise if no connection to PostgreSQL can be opened."""
    return StoreUnreachable(f"no connection to PostgreSQL at {where}: {_words(error, where)}{failing_since(where)}")


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


def _words(error: BaseException, where: str) -> str:
    """Returns the cause of a failure in words; `where` is the path of a SQLite file."""
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None) or ""
    driver = cause.__cause__ or cause  # asyncpg's error is inside SQLAlchemy's
    for kind in (cause, driver):
        if isinstance(kind, OSError):
            return system_words(kind)
    if type(driver).__name__ == "ClientConfigurationError":
        found = next((word for word in _SETTINGS if word in str(driver)), "a connection setting")
        return f"{found} cannot be used: check OPENBELL_DATABASE_URL and variables that begin with PG"
    if state.startswith(_VALUE) or isinstance(driver, ValueError):
        return "it cannot hold a value that it was given"
    if known := _STATES.get(state) or _STATES.get(state[:3]) or _STATES.get(state[:2]):
        return known
    if isinstance(cause, sqlite3.Error):
        return _shortened(sqlite_words(cause, Path(where)))
    if _is_driver_error(driver) and not state:
        return LOST
    if isinstance(error, SQLAlchemyError) and not isinstance(error, DBAPIError):
        return LOST
    return _shortened(str(cause))


def _is_driver_error(error: BaseException) -> bool:
    """Returns True for an error of asyncpg, which is loaded only if PostgreSQL is used."""
    return type(error).__module__.partition(".")[0] == "asyncpg"


def _shortened(text: str) -> str:
    """Returns the first line of a message, without the class that SQLAlchemy puts before it."""
    lines = text.splitlines()
    return (lines[0] if lines else "it failed").rpartition(">: ")[2][:300]
