"""Loads ccxt on first use, because it takes almost a second and 100 MB."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from openbell.market.errors import SettingsError


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
        import ccxt.async_support as rest
        import ccxt.pro as sockets
        from ccxt.base import errors
    except ImportError as missing:
        raise SettingsError(
            f"The feed ccxt:{exchange} needs a package that is not installed ({missing}): pip install 'openbell[ccxt]'"
        ) from missing
    if exchange not in rest.exchanges:
        near = get_close_matches(exchange.lower(), rest.exchanges, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "see https://docs.ccxt.com for its exchanges"
        raise SettingsError(f"ccxt has no exchange {exchange[:40]!r}: {hint}", exchange=exchange[:40], near=near)
    return Library(
        getattr(rest, exchange), getattr(sockets, exchange) if exchange in sockets.exchanges else None, errors
    )
