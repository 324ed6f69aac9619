"""Loads the part of ccxt for one exchange on first use."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from openbell.feeds.exchange.ccxt_modules import exchange_class, modules_of
from openbell.market.errors import SettingsError

REST, SOCKETS = "ccxt.async_support", "ccxt.pro"


@dataclass(frozen=True, slots=True)
class Library:
    """ccxt's classes for one exchange."""

    rest: Any
    """The class for HTTP."""
    sockets: Any | None
    """The class for WebSockets; None if ccxt has none for this exchange."""
    errors: Any
    """The module with ccxt's exceptions."""


@cache
def load(exchange: str) -> Library:
    """Imports ccxt and returns the exchange's classes. Raises `SettingsError` if ccxt or the exchange is missing."""
    try:
        rest = exchange_class(REST, exchange)
        sockets = exchange_class(SOCKETS, exchange)
        errors = import_module("ccxt.base.errors")
    except ImportError as missing:
        raise SettingsError(
            f"The feed ccxt:{exchange} needs a package that is not installed ({missing}): pip install 'openbell[ccxt]'"
        ) from missing
    if rest is None:
        known = modules_of(REST)
        near = get_close_matches(exchange.lower(), known, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "see https://docs.ccxt.com for its exchanges"
        raise SettingsError(f"ccxt has no exchange {exchange[:40]!r}: {hint}", exchange=exchange[:40], near=near)
    return Library(rest, sockets, errors)
