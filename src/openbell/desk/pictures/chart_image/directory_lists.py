"""Lists of exchanges and symbols: the vendor's, read in all of their forms, and those of this desk's instruments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openbell.desk.bars.symbol_advice import stored_instruments
from openbell.desk.pictures.chart_image.exchanges import (
    CURRENCIES,
    EXCHANGES,
    LISTED,
    VendorExchange,
    describe,
    type_of,
)
from openbell.desk.pictures.chart_image.words import clean
from openbell.feeds.sim.universe import LISTINGS
from openbell.market.errors import InvalidSymbol
from openbell.market.instruments import CRYPTO_VENUES, FOREX_VENUES, STOCK_VENUES, AssetClass, Instrument, parse

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.watchlist import WatchlistFile

EXCHANGE_ID = re.compile(r"[A-Z0-9_.&-]{1,40}")
_SYMBOL = re.compile(r"[!-9;-~]{1,60}")
"""Printable characters without blanks and colons."""
_MARKUP = re.compile(r"</?em>")
_MOST_SYMBOLS = 200_000
_LONGEST = 120
"""Characters of a name or a description."""
_VENUES = {AssetClass.STOCK: STOCK_VENUES, AssetClass.CRYPTO: CRYPTO_VENUES, AssetClass.FOREX: FOREX_VENUES}
_TYPES = {AssetClass.STOCK: "stock", AssetClass.CRYPTO: "crypto", AssetClass.FOREX: "forex"}
_MAIN_STOCK_VENUES = frozenset({"NASDAQ", "NYSE", "AMEX"})
"""Where stocks are shown whose listing exchange is not known here."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of an exchange."""

    symbol: str
    full_symbol: str
    description: str
    type: str


def read_exchanges(items: Sequence[Any], key: str) -> tuple[VendorExchange, ...]:
    """Returns the exchanges of a list of ids or objects, sorted by type, then name. Others are left out."""
    found: dict[str, VendorExchange] = {}
    for item in items[:_MOST_SYMBOLS]:
        fields = item if isinstance(item, dict) else {"id": item}
        code = next(
            (fields[name] for name in ("id", "exchange", "value", "name") if isinstance(fields.get(name), str)), ""
        )
        code = clean(code, key, _LONGEST).upper()
        if EXCHANGE_ID.fullmatch(code):
            found[code] = describe(
                code, _text(fields, "name", key), type_of(fields.get("type")), _text(fields, "description", key)
            )
    return tuple(sorted(found.values(), key=lambda each: (each.type, each.name.lower(), each.id)))


def read_symbols(items: Sequence[Any], exchange: str, key: str) -> tuple[Symbol, ...]:
    """Returns the symbols of a list of names or objects, sorted by type, then symbol. Others are left out."""
    usual = describe(exchange).type
    found: dict[str, Symbol] = {}
    for item in items[:_MOST_SYMBOLS]:
        fields = item if isinstance(item, dict) else {"symbol": item}
        name = fields.get("symbol") or fields.get("name")
        if not isinstance(name, str):
            continue
        name = clean(_MARKUP.sub("", name).rpartition(":")[2], key, _LONGEST)
        if _SYMBOL.fullmatch(name):
            kind = type_of(fields.get("type"), fields.get("typespecs")) or usual
            text = _MARKUP.sub("", _text(fields, "description", key)) or name
            found[name] = Symbol(name, f"{exchange}:{name}", text, kind)
    return tuple(sorted(found.values(), key=lambda each: (each.type, each.symbol)))


def _text(fields: dict[str, Any], name: str, key: str) -> str:
    value = fields.get(name)
    return clean(value, key, _LONGEST) if isinstance(value, str) else ""


def search(symbols: Iterable[Symbol], text: str) -> list[Symbol]:
    """Returns the symbols that have a text in their name, or at the beginning of a word of their description, in any case.

    Equal names come first, then names that begin with it, other names, and descriptions; the order within each is kept.
    """
    wanted = " ".join(text.lower().split())
    if not wanted:
        return list(symbols)
    joined = re.sub(r"[/\-_ ]", "", wanted)  # BTC/USDT as exchanges write it
    of_word = re.compile(rf"(?<!\w){re.escape(wanted)}")  # eth is not in TetherUS
    ranks: tuple[list[Symbol], ...] = ([], [], [], [])
    for each in symbols:
        name = each.symbol.lower()
        if name in {wanted, joined}:
            ranks[0].append(each)
        elif name.startswith(wanted) or (joined and name.startswith(joined)):
            ranks[1].append(each)
        elif wanted in name or (joined and joined in name):
            ranks[2].append(each)
        elif of_word.search(each.description.lower()):
            ranks[3].append(each)
    return [each for rank in ranks for each in rank]


async def known_instruments(bars: BarService, watchlist: WatchlistFile) -> list[Instrument]:
    """Returns the instruments that are watched, well known and delivered by the feed, or stored (for the operator)."""
    watched = dict.fromkeys((await watchlist.current()).instruments)
    others = dict.fromkeys([*await stored_instruments(bars), *LISTINGS])
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


def full_symbol(instrument: Instrument, exchange: str = "") -> str:
    """Returns an instrument as a well-known exchange lists it, such as BINANCE:BTCUSDT; its symbol if none does.

    `exchange` is preferred if it lists the instrument.
    """
    listed = (found for each in (exchange, *EXCHANGES) if (found := _symbol(instrument, each)))
    first = next(listed, None)
    return first.full_symbol if first else instrument.symbol


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
