"""What Alpaca refuses: keys that cannot be sent, and its errors with what happened and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.market.errors import FeedUnavailable, OpenbellError, SettingsError, UnknownSymbol
from openbell.market.instruments import Instrument

KEYS_REFUSED = (
    "Alpaca refuses the keys: check ALPACA_API_KEY and ALPACA_SECRET_KEY "
    "(both of one pair, not revoked, without quotes)"
)
_PLAN = (
    "The Alpaca plan of these keys has sip data only after 15 minutes: set OPENBELL_ALPACA_FEED=iex, which every plan has "
    "in real time"
)
_STREAM = {
    400: "Alpaca could not read a message of this feed: please report it",
    401: KEYS_REFUSED,
    402: KEYS_REFUSED,
    404: "Alpaca did not receive the keys in time: the connection is too slow",
    405: "The Alpaca plan of these keys allows fewer symbols: remove some from the watchlist (the free plan allows 30)",
    406: "Another process streams with these keys and Alpaca allows one: stop it, or use other keys for this one",
    407: "Alpaca closed the stream because this machine reads too slowly",
    409: "The Alpaca plan of these keys does not stream this feed: set OPENBELL_ALPACA_FEED=iex, which every plan has",
    500: "Alpaca's stream has an internal error",
}


def by_status(status: int, message: str, asked: Sequence[Instrument]) -> OpenbellError:
    """Returns the error for an HTTP status that a retry would not change."""
    text = message.lower()
    if "subscription" in text or "sip" in text.split():
        return FeedUnavailable(_PLAN, status=status)
    if status in {401, 403}:
        return FeedUnavailable(KEYS_REFUSED, status=status)
    if status in {400, 422} and "symbol" in text:
        named = [instrument for instrument in asked if instrument.symbol.lower() in text.replace(",", " ").split()]
        return UnknownSymbol((named or list(asked))[0].symbol, "Alpaca does not list it")
    return FeedUnavailable(
        f"Alpaca refuses the request with HTTP {status}{': ' + message if message else ''}", status=status
    )


def by_code(code: object, message: str) -> FeedUnavailable:
    """Returns the error for an error message on a stream."""
    known = _STREAM.get(code) if isinstance(code, int) else None
    return FeedUnavailable(known or f"Alpaca's stream reports {message or 'error'} ({code})", code=code)


def unreadable(what: str, why: str) -> FeedUnavailable:
    """Returns the error for a response that does not follow the protocol."""
    return FeedUnavailable(
        f"Alpaca's {what} cannot be read ({why}): if this persists, check for a proxy in between, and status.alpaca.markets"
    )


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
