"""The instruments that this desk knows, as symbols of exchanges: the directory of a desk without a key of the vendor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from openbell.desk.pictures.chart_image.directory_lists import Symbol
from openbell.desk.pictures.chart_image.exchanges import CURRENCIES, EXCHANGES, LISTED, VendorExchange
from openbell.feeds.sim.universe import LISTINGS
from openbell.market.errors import InvalidSymbol
from openbell.market.instruments import CRYPTO_VENUES, FOREX_VENUES, STOCK_VENUES, AssetClass, Instrument, parse

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.watchlist import WatchlistFile

_VENUES = {AssetClass.STOCK: STOCK_VENUES, AssetClass.CRYPTO: CRYPTO_VENUES, AssetClass.FOREX: FOREX_VENUES}
_TYPES = {AssetClass.STOCK: "stock", AssetClass.CRYPTO: "crypto", AssetClass.FOREX: "forex"}
_MAIN_STOCK_VENUES = frozenset({"NASDAQ", "NYSE", "AMEX"})
"""Where stocks are shown whose listing exchange is not known here."""


async def known_instruments(bars: BarService, watchlist: WatchlistFile) -> list[Instrument]:
    """Returns the instruments that are watched, stored, or well known and delivered by the feed."""
    watched = dict.fromkeys(watchlist.read().instruments)
    stored = await bars.threads.run(bars.store.stored)
    others = dict.fromkeys([*(series.instrument for series in stored), *LISTINGS])
    return [*watched, *[each for each in others if each not in watched and await bars.known(each)]]


def desk_exchanges(instruments: Iterable[Instrument]) -> tuple[VendorExchange, ...]:
    """Returns the well-known exchanges of some instruments, sorted by type, then name."""
    known = list(instruments)
    found = [each for each in EXCHANGES.values() if any(_symbol(one, each.id) for one in known)]
    return tuple(sorted(found, key=lambda each: (each.type, each.name.lower(), each.id)))


def desk_symbols(instruments: Iterable[Instrument], exchange: str) -> tuple[Symbol, ...]:
    """Returns the symbols of an exchange that this desk knows, sorted by type, then symbol."""
    found = filter(None, (_symbol(each, exchange) for each in instruments))
    return tuple(sorted(found, key=lambda each: (each.type, each.symbol)))


def _symbol(instrument: Instrument, exchange: str) -> Symbol | None:
    """Returns an instrument as a symbol of an exchange; None if the exchange does not list it."""
    kind = instrument.asset_class
    if exchange not in _VENUES[kind]:
        return None
    name = instrument.symbol.replace("/", "")
    description = " / ".join(CURRENCIES.get(each, each) for each in instrument.symbol.split("/"))
    if kind is AssetClass.STOCK:
        home, description = LISTED.get(name, ("", f"{name}, on an exchange that this desk does not know"))
        if exchange != home and (home or exchange not in _MAIN_STOCK_VENUES):
            return None
    full = f"{exchange}:{name}"
    try:
        if parse(full) != instrument:
            return None
    except InvalidSymbol:  # a pair that cannot be written without a slash
        return None
    return Symbol(name, full, description, _TYPES[kind])
