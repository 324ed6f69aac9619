"""The keys of an account."""

from __future__ import annotations

from openbell.market.errors import SettingsError


def header_key(variable: str, value: str, who: str) -> str:
    """Returns a key that is valid in a header.

    Raises `SettingsError` without the key otherwise; the HTTP client's own error would contain it.
    """
    key = value.strip()
    if not key:
        raise SettingsError(f"{variable} is not set: {who} needs the keys of an account, from app.alpaca.markets")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(f"{variable} has characters that no key has: copy it again from app.alpaca.markets")
    return key
