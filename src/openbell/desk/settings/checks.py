"""What a single setting accepts. Each check gets the variable and the value, and raises `SettingsError`.

No message repeats any part of a URL of PostgreSQL that could be of a password.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from openbell.market.clock import iso, parse_time
from openbell.market.errors import InvalidParameter, InvalidSymbol, SettingsError
from openbell.market.instruments import parse
from openbell.market.nearest import did_you_mean
from openbell.net.addresses import is_loopback, parse_origin

PREFIX = "OPENBELL_"
HIGHEST_PORT = 65_535
HOST = r"([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])"
NAME = HOST + r"(:\d{1,5})?"
"""A host name or address, with a port or without."""
PATH = r"(/[!-?A-~]*)?"
"""Without an @: the host before it would be a user name, and part of the path a password."""
BARE_PATH = r"""(/[!"$->A-~]*)?"""
"""Without a query or a fragment either, which may hold a password: errors name this URL."""
ORIGIN = rf"[a-z][a-z0-9+.-]*://{NAME}"

Check = Callable[[str, Any], None]
_DATABASE_URL = re.compile(
    r"postgres(?:ql)?://"
    r"(?:[^:/?#@\[\]]*(?::[^/?#@\[\]]*)?@)?"
    r"(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[^/?#@]*)?(?:\?(?P<query>[^#@]*))?"
)
_BAD_DATABASE_URL = (
    " cannot be read: use postgresql://USER:PASSWORD@HOST/NAME, and write characters of user and "
    "password that have a meaning in URLs as codes: @ as %40, / as %2F, ? as %3F, # as %23, [ as %5B, ] as %5D, % as %25"
)
_TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_TLS_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("text", "json")
_ROOT = "openbell"


def variable_of(name: str) -> str:
    """Returns the variable of a setting."""
    return PREFIX + name.upper()


def between(low: float, high: float) -> Check:
    """Accepts numbers from `low` to `high`."""

    def check(variable: str, value: Any) -> None:
        if not low <= value <= high:
            raise SettingsError(f"{variable} must be between {low:,g} and {high:,g}")

    return check


def one_of(*choices: str) -> Check:
    """Accepts these words, in any case."""
    return one_of_those(lambda: choices)


def one_of_those(choices: Callable[[], tuple[str, ...]]) -> Check:
    """Accepts words that are found when a value is checked."""

    def check(variable: str, value: Any) -> None:
        if value.lower() not in (known := choices()):
            raise SettingsError(f"{variable} is {value!r}: use {', '.join(known)}{did_you_mean(value, known)}")

    return check


def matching(pattern: str, hint: str) -> Check:
    """Accepts texts of a pattern. The error has `hint`, but not the text, which may hold a secret."""

    def check(variable: str, value: Any) -> None:
        if not re.fullmatch(pattern, value):
            raise SettingsError(f"{variable} {hint}")

    return check


def port_possible(variable: str, value: Any) -> None:
    """Accept HOST:PORT with a port that exists, and no text at all."""
    port = value.rpartition(":")[2]
    if port and not 0 < int(port) <= HIGHEST_PORT:
        raise SettingsError(f"{variable} has the port {port}: use one from 1 to {HIGHEST_PORT}")


def plain_url(variable: str, value: Any) -> None:
    """Accept URLs that can be parsed, without a query and a fragment."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}") from None
    if parts.query or parts.fragment:
        raise SettingsError(f"{variable} must not have a query or a fragment")


def private_url(risk: str) -> Check:
    """Accepts URLs to which nobody else can read or change what is sent: https, or this machine. The error names `risk`."""

    def check(variable: str, value: Any) -> None:
        if not is_private(value):
            raise SettingsError(f"{variable}{risk}; use https")

    return check


def is_private(url: str) -> bool:
    """Returns True if others cannot read or change what is sent to a URL."""
    parts = urlsplit(url)
    return parts.scheme != "http" or is_loopback(parts.hostname or "")


def public_address(variable: str, value: Any) -> None:
    """Accept the URL of a proxy that tokens can be sent to."""
    plain_url(variable, value)
    if not is_private(value):
        raise SettingsError(f"{variable} is {value}: over http, tokens can be read on the network; use https")


def networks(variable: str, value: Any) -> None:
    """Accept addresses and networks, separated by commas."""
    try:
        for each in value.split(","):
            ip_network(each or "::1", strict=False)
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}") from None


def origins(variable: str, value: Any) -> None:
    """Accept origins, separated by commas."""
    try:
        origins_of(value)
    except InvalidParameter as error:
        raise SettingsError(f"{variable}: {error}") from None


def origins_of(text: str) -> frozenset[str]:
    """Returns origins that are separated by commas, in their normal form. Raises `InvalidParameter`."""
    return frozenset(parse_origin(each.strip()) for each in text.split(",") if each.strip())


def symbols(variable: str, value: Any) -> None:
    """Accept symbols, separated by commas."""
    for symbol in filter(str.strip, value.split(",")):
        try:
            parse(symbol)
        except InvalidSymbol as error:
            raise SettingsError(f"{variable}: {error}") from None


def past_time(variable: str, value: Any) -> None:
    """Accept a time that is not later than this machine's, and no text at all."""
    if not value:
        return
    try:
        moment = parse_time(value)
    except InvalidParameter as error:
        raise SettingsError(f"--as-of ({variable}): {error}") from None
    if moment > time.time():
        raise SettingsError(
            f"--as-of {value} is later than this machine's time, {iso(int(time.time()))}: use an earlier time"
        )


def readable_database_url(variable: str, url: str) -> None:
    """Accept URLs of PostgreSQL that can be read and whose TLS settings can be used, and no text at all."""
    if not url:
        return
    form = _DATABASE_URL.fullmatch(url)
    if form is None or not 0 < int(form["port"] or 5432) <= HIGHEST_PORT:
        raise SettingsError(variable + _BAD_DATABASE_URL)
    query = {name: values[-1] for name, values in parse_qs(form["query"] or "", keep_blank_values=True).items()}
    mode = query.get("sslmode", os.environ.get("PGSSLMODE") or "prefer")
    if mode not in _TLS_MODES:
        raise SettingsError(f"{variable} has an sslmode that does not exist: use {', '.join(_TLS_MODES)}")
    for name in _TLS_FILES:
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


def levels_of(text: str) -> dict[str, str]:
    """Returns the levels by room of a text such as `feeds=debug,desk.trading=info`. Raises `SettingsError`."""
    found = {}
    for each in filter(None, map(str.strip, text.lower().split(","))):
        room, _, level = (part.strip() for part in each.partition("="))
        if level not in LOG_LEVELS or not re.fullmatch(r"[a-z_]+(\.[a-z_]+)*", room) or not list(loggers(room)):
            raise SettingsError(
                f"OPENBELL_LOG_LEVELS has {each!r}: write ROOM=LEVEL, such as feeds=debug,trading=info; rooms are the "
                f"folders of openbell, levels are {', '.join(LOG_LEVELS)}"
            )
        found[room] = level
    return found


def room_levels(_variable: str, value: Any) -> None:
    """Accept levels of rooms."""
    levels_of(value)


def loggers(room: str) -> Iterator[str]:
    """Returns the loggers of a room: of the folder of this name, and of a folder of this name in another room."""
    import openbell

    for base in map(Path, openbell.__path__):
        for pattern in (room.replace(".", "/"), f"*/{room.replace('.', '/')}"):
            for path in base.glob(pattern):
                if path.is_dir():
                    yield ".".join((_ROOT, *path.relative_to(base).parts))
