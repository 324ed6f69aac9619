"""The cause of a database's failure in words, without a statement, a value, a password or the insides of a driver."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from openbell.stores.network_causes import LOST, system_words
from openbell.stores.sqlite_causes import sqlite_words

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


def words(error: BaseException, where: str) -> str:
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
    if is_driver_error(driver) and not state:
        return LOST
    if isinstance(error, SQLAlchemyError) and not isinstance(error, DBAPIError):
        return LOST
    return _shortened(str(cause))


def is_driver_error(error: BaseException) -> bool:
    """Returns True for an error of asyncpg, which is loaded only if PostgreSQL is used."""
    return type(error).__module__.partition(".")[0] == "asyncpg"


def _shortened(text: str) -> str:
    """Returns the first line of a message, without the class that SQLAlchemy puts before it."""
    lines = text.splitlines()
    return (lines[0] if lines else "it failed").rpartition(">: ")[2][:300]
