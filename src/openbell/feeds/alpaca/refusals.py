"""Alpaca's errors in our words: what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.market.errors import FeedUnavailable, OpenbellError, UnknownSymbol
from openbell.market.instruments import Instrument

KEYS_REFUSED = (
    "Alpaca refuses the keys: look at ALPACA_API_KEY and ALPACA_SECRET_KEY "
    "(both of one pair, not withdrawn, without quotes)"
)
_PLAN = (
    "Alpaca's plan of these keys gives the sip feed only after 15 minutes: set OPENBELL_ALPACA_FEED=iex, which every plan "
    "has at once"
)
_STREAM = {
    400: "Alpaca did not understand a message of ours: please report it",
    401: KEYS_REFUSED,
    402: KEYS_REFUSED,
    404: "Alpaca waited for the keys in vain: the connection is too slow",
    405: "Alpaca's plan allows fewer symbols in the stream: take some off the watchlist (the free plan has 30)",
    406: "Another process streams with these keys and Alpaca allows one: stop it, or give this one keys of its own",
    407: "Alpaca cut the stream because this machine reads too slowly",
    409: "Alpaca's plan of these keys does not stream this feed: set OPENBELL_ALPACA_FEED=iex, which every plan has",
    500: "Alpaca's stream has an internal error",
}


def by_status(status: int, message: str, asked: Sequence[Instrument]) -> OpenbellError:
    """What an HTTP status that no further try will change means."""
    said = message.lower()
    if "subscription" in said or "sip" in said.split():
        return FeedUnavailable(_PLAN, status=status)
    if status in {401, 403}:
        return FeedUnavailable(KEYS_REFUSED, status=status)
    if status in {400, 422} and "symbol" in said:
        named = [instrument for instrument in asked if instrument.symbol.lower() in said.replace(",", " ").split()]
        return UnknownSymbol((named or list(asked))[0].symbol, "Alpaca does not know it")
    return FeedUnavailable(
        f"Alpaca refuses the request with HTTP {status}{': ' + message if message else ''}", status=status
    )


def by_code(code: object, message: str) -> FeedUnavailable:
    """What an error message on a stream means."""
    known = _STREAM.get(code) if isinstance(code, int) else None
    return FeedUnavailable(known or f"Alpaca's stream says {message or 'error'} ({code})", code=code)


def unread(what: str, why: str) -> FeedUnavailable:
    """An answer that is not what the protocol says."""
    return FeedUnavailable(
        f"Alpaca's {what} cannot be read ({why}): if it lasts, look for a proxy in between or at status.alpaca.markets"
    )
