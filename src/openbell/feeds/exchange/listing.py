"""The markets that an exchange lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_FUTURES = ("product_type", "FUTURE")
"""The parameter of Coinbase's futures. ccxt has no option to leave them out, but loads the spot markets without them."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The pairs of an exchange."""

    spot: frozenset[str]
    """Pairs with an active spot market, as `BTC/USDT`."""
    swaps: Mapping[str, str]
    """For each pair its perpetual swap that is settled in the quote currency: `BTC/USDT:USDT`."""


def read_listing(markets: Mapping[str, Mapping[str, Any]]) -> Listing:
    """Reads ccxt's markets. Raises `ValueError` if there is no spot market, because then the response was wrong."""
    spot: set[str] = set()
    swaps: dict[str, str] = {}
    for symbol, market in markets.items():
        if market.get("active") is False:  # None if the exchange does not publish it
            continue
        if market.get("spot"):
            spot.add(symbol)
        elif market.get("swap") and market.get("linear") and market.get("settle") == market.get("quote"):
            swaps[f"{market['base']}/{market['quote']}"] = symbol
    if not spot:
        raise ValueError("no spot markets in the response")
    return Listing(frozenset(spot), swaps)


@contextmanager
def spot_only(rest: Any) -> Iterator[None]:
    """Makes ccxt's `load_markets` leave out currencies and derivatives, for which it sends up to ten more requests."""
    has, request, choice = rest.has, rest.request, rest.options.get("fetchMarkets")
    rest.has = {**has, "fetchCurrencies": False}
    rest.request = _without_futures(request)
    if isinstance(choice, dict) and choice.get("types"):
        rest.options["fetchMarkets"] = {**choice, "types": _spot_of(choice["types"])}
    try:
        yield
    finally:
        rest.has, rest.request = has, request
        rest.options["fetchMarkets"] = choice


def _spot_of(types: Any) -> Any:
    """Returns the types of markets without all but spot; ccxt has them as a list or as a dictionary of switches."""
    return {each: each == "spot" for each in types} if isinstance(types, dict) else ["spot"]


def _without_futures(request: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Makes ccxt's `request` fail for futures before it waits for the exchange's rate."""

    async def checked(path: str, api: Any, method: str, params: Mapping[str, Any], **options: Any) -> Any:
        if _FUTURES in params.items():
            raise LookupError("futures are not loaded")
        return await request(path, api, method, params, **options)

    return checked
