"""Exchanges and symbols: the vendor's, kept for an hour, or without a key those of the instruments that this desk knows."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from openbell.desk.bars.single_flight import SingleFlight
from openbell.desk.pictures.chart_image.directory_lists import EXCHANGE_ID, Symbol, desk_exchanges, desk_symbols, search
from openbell.desk.pictures.chart_image.errors import VendorError, VendorRefused
from openbell.desk.pictures.chart_image.exchanges import EXCHANGES, VendorExchange
from openbell.desk.pictures.chart_image.http import Timing
from openbell.desk.pictures.chart_image.vendor import VendorClient
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import Instrument
from openbell.market.nearest import did_you_mean

log = logging.getLogger(__name__)
FRESH_SECONDS = 3600.0
DEFAULT_LIMIT, LARGEST_LIMIT = 50, 5000
VENDOR, DESK = "vendor", "desk"
_KEPT = 16
"""Lists that are kept. The largest exchanges have tens of thousands of symbols."""
_LONGEST_SEARCH = 100
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SymbolListing(Generic[T]):
    """A list, and where it comes from."""

    items: tuple[T, ...]
    source: str
    """`vendor` or `desk`."""
    age: float = 0.0
    """Seconds since the vendor sent it."""
    error: str | None = None
    """Why an older copy is used."""


@dataclass(frozen=True, slots=True)
class FoundSymbols:
    """The first symbols of a search; `total` is how many there are."""

    exchange: str
    listing: SymbolListing[Symbol]
    total: int


class Directory:
    """Lists exchanges and symbols."""

    def __init__(
        self,
        known: Callable[[], Awaitable[list[Instrument]]],
        client: VendorClient | None,
        timing: Timing | None = None,
    ) -> None:
        """`known` returns the instruments that this desk knows: without a client, the lists are made of them."""
        self._known = known
        self._client = client
        self._timing = timing or Timing()
        self._flights = SingleFlight()
        self._exchanges: dict[str, tuple[float, tuple[VendorExchange, ...]]] = {}
        self._symbols: dict[str, tuple[float, tuple[Symbol, ...]]] = {}
        """Lists by exchange, each with the monotonic time at which it came, the one used last at the end."""

    async def exchanges(self) -> SymbolListing[VendorExchange]:
        """Returns all exchanges, sorted by type, then name. Raises `VendorError` if there is not even an older list."""
        client = self._client
        if client is None:
            return SymbolListing(desk_exchanges(await self._known()), DESK)
        return await self._cached(self._exchanges, "", client.exchanges)

    async def symbols(self, exchange: str, text: str = "", limit: int = DEFAULT_LIMIT) -> FoundSymbols:
        """Returns the symbols of an exchange that have a text in their name or description, the best first.

        Raises `InvalidParameter`, also for an exchange that does not exist, and `VendorError`.
        """
        code = self._checked(exchange, text, limit)
        listing = await self._listed(code)
        found = search(listing.items, text)
        cut = SymbolListing(tuple(found[:limit]), listing.source, listing.age, listing.error)
        return FoundSymbols(code, cut, len(found))

    def _checked(self, exchange: str, text: str, limit: int) -> str:
        code = exchange.strip().upper()
        if not EXCHANGE_ID.fullmatch(code) or not code.strip("."):
            raise InvalidParameter(f"exchange must be an id such as BINANCE, not {exchange[:40]!r}")
        if len(text) > _LONGEST_SEARCH:
            raise InvalidParameter(f"search must have at most {_LONGEST_SEARCH} characters")
        if not 1 <= limit <= LARGEST_LIMIT:
            raise InvalidParameter(f"limit must be 1 to {LARGEST_LIMIT}, not {limit}")
        return code

    async def _listed(self, code: str) -> SymbolListing[Symbol]:
        client = self._client
        if client is None:
            instruments = await self._known()
            symbols = desk_symbols(instruments, code)
            if not symbols:
                raise self._unknown(code, [each.id for each in desk_exchanges(instruments)])
            return SymbolListing(symbols, DESK)
        try:
            return await self._cached(self._symbols, code, lambda: client.symbols(code))
        except VendorRefused as error:
            if error.status != 404:
                raise
            _, listed = self._exchanges.get("", (0.0, ()))
            raise self._unknown(code, [each.id for each in listed] or list(EXCHANGES)) from None

    def _unknown(self, code: str, known: list[str]) -> InvalidParameter:
        return InvalidParameter(f"no exchange {code!r}{did_you_mean(code, known) or '; get_exchanges lists them'}")

    async def _cached(
        self, kept: dict[str, tuple[float, tuple[T, ...]]], code: str, fetch: Callable[[], Awaitable[tuple[T, ...]]]
    ) -> SymbolListing[T]:
        """Returns a list that is at most an hour old; an older one if the vendor fails."""
        if code in kept and self._age(kept[code][0]) < FRESH_SECONDS:
            kept[code] = kept.pop(code)
            return SymbolListing(kept[code][1], VENDOR, self._age(kept[code][0]))
        try:
            items = await self._flights.run((id(kept), code), fetch)
        except VendorError as error:
            if code not in kept or (code and error.status == 404):
                raise
            log.warning(
                "a list of %s is used that is %.0f s old: %s", code or "exchanges", self._age(kept[code][0]), error
            )
            return SymbolListing(kept[code][1], VENDOR, self._age(kept[code][0]), error.message)
        kept.pop(code, None)
        kept[code] = (self._timing.monotonic(), items)
        while len(kept) > _KEPT:
            del kept[next(iter(kept))]
        return SymbolListing(items, VENDOR)

    def _age(self, came: float) -> float:
        return self._timing.monotonic() - came
