"""Checks of the URL of PostgreSQL. No message repeats any part of it that could be of a password."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qs

from openbell.desk.settings.checks import HIGHEST_PORT
from openbell.market.errors import SettingsError

_FORM = re.compile(
    r"postgres(?:ql)?://"
    r"(?:[^:/?#@\[\]]*(?::[^/?#@\[\]]*)?@)?"
    r"(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[^/?#@]*)?(?:\?(?P<query>[^#@]*))?"
)
_BAD_FORM = (
    " cannot be read: use postgresql://USER:PASSWORD@HOST/NAME, and write characters of user and "
    "password that have a meaning in URLs as codes: @ as %40, / as %2F, ? as %3F, # as %23, [ as %5B, ] as %5D, % as %25"
)
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")


def readable_database_url(variable: str, url: str) -> None:
    """Accept URLs of PostgreSQL that can be read and whose TLS settings can be used, and no text at all."""
    if not url:
        return
    form = _FORM.fullmatch(url)
    if form is None or not 0 < int(form["port"] or 5432) <= HIGHEST_PORT:
        raise SettingsError(variable + _BAD_FORM)
    query = {name: values[-1] for name, values in parse_qs(form["query"] or "", keep_blank_values=True).items()}
    mode = query.get("sslmode", os.environ.get("PGSSLMODE") or "prefer")
    if mode not in _MODES:
        raise SettingsError(f"{variable} has an sslmode that does not exist: use {', '.join(_MODES)}")
    for name in _FILES:
        if query.get(name) and not os.access(query[name], os.R_OK):
            raise SettingsError(f"{variable}: the file of {name}, {query[name]}, does not exist or cannot be read")
    if mode.startswith("verify-") and not _has_authority(query):
        raise SettingsError(
            f"{variable}: sslmode={mode} needs sslrootcert=FILE, the certificate of the authority that has "
            "signed the server's certificate (PEM)"
        )


def _has_authority(query: dict[str, str]) -> bool:
    if query.get("sslrootcert") or os.environ.get("PGSSLROOTCERT"):
        return True
    try:
        return (Path.home() / ".postgresql" / "root.crt").exists()
    except RuntimeError:
        return False
