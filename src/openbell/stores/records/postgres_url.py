"""The address of a PostgreSQL database, as the settings have it."""

from __future__ import annotations

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from openbell.market.errors import SettingsError


def read_url(url: str) -> URL:
    """Parse a `postgresql://` URL for asyncpg. Raises `SettingsError` without quoting the URL, which may hold a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise SettingsError("OPENBELL_DATABASE_URL cannot be read: use postgresql://USER:PASSWORD@HOST/NAME") from None
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        raise SettingsError("OPENBELL_DATABASE_URL must begin with postgresql://")
    return parsed.set(drivername="postgresql+asyncpg")
