"""What a single setting accepts. Each check gets the variable and the value, and raises `SettingsError`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

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
