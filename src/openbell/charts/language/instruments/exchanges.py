"""The exchanges that sentences can name, and how they and pairs of currencies and coins are written as symbols."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from openbell.charts.language.instruments.catalogue import all_instruments, by_ticker
from openbell.charts.language.instruments.named import InstrumentKind, Named, words
from openbell.market.instruments import COINS, FIAT, QUOTES, STABLE

Pair = tuple[str, Named | None, str]
"""EXCHANGE:SYMBOL, the instrument of the table, and the quote currency of a coin."""
_METALS = frozenset({"XAU", "XAG", "XPT", "XPD"})


@dataclass(frozen=True, slots=True)
class NamedExchange:
    """One exchange."""

    id: str
    names: tuple[str, ...]
    """What people call it, in lower case."""
    kinds: tuple[InstrumentKind, ...]
    """The kinds of instruments that it lists."""
    quote: str = ""
    """The currency in which it quotes crypto, if a sentence names none or says "dollar"."""
    ambiguous: bool = False
    """True if a name also names an instrument (Coinbase, Nasdaq).

    It is the exchange if the sentence has an instrument that the exchange lists, and the instrument otherwise.
    """

    def lists(self, instrument: Named) -> bool:
        """Returns True if the exchange lists instruments of this kind. Stocks are listed on one exchange only."""
        if instrument.kind in {InstrumentKind.CRYPTO, InstrumentKind.FOREX}:
            return instrument.kind in self.kinds
        return self.id == instrument.exchange or self.id in instrument.listings

    def symbol_of(self, instrument: Named, quote: str = "") -> str:
        """Returns EXCHANGE:SYMBOL of an instrument that it lists, in a quote currency or in that of the exchange."""
        if instrument.kind is not InstrumentKind.CRYPTO:
            return f"{self.id}:{instrument.listings.get(self.id, instrument.code)}"
        if not quote and self.id in instrument.listings:
            return f"{self.id}:{instrument.listings[self.id]}"
        return f"{self.id}:{instrument.base}{quote.upper() or self.quote}"


def _crypto(exchange: str, names: str, quote: str, *, ambiguous: bool = False) -> NamedExchange:
    return NamedExchange(exchange, words(names), (InstrumentKind.CRYPTO,), quote, ambiguous)


def _forex(exchange: str, names: str) -> NamedExchange:
    return NamedExchange(exchange, words(names), (InstrumentKind.FOREX,))


EXCHANGES = (
    _crypto("BINANCE", "binance", "USDT"),
    _crypto("BINANCEUS", "binance us, binance.us, binanceus", "USDT"),
    _crypto("BYBIT", "bybit", "USDT"),
    _crypto("OKX", "okx, okex", "USDT"),
    _crypto("KUCOIN", "kucoin", "USDT"),
    _crypto("MEXC", "mexc", "USDT"),
    _crypto("BITGET", "bitget", "USDT"),
    _crypto("GATEIO", "gate.io, gateio", "USDT"),
    _crypto("HTX", "htx, huobi", "USDT"),
    _crypto("COINBASE", "coinbase, coinbase pro", "USD", ambiguous=True),
    _crypto("KRAKEN", "kraken", "USD"),
    _crypto("BITSTAMP", "bitstamp", "USD"),
    _crypto("BITFINEX", "bitfinex", "USD"),
    _crypto("GEMINI", "gemini", "USD"),
    _crypto("CRYPTOCOM", "crypto.com, cryptocom", "USD"),
    _crypto("BITMEX", "bitmex", "USD"),
    _crypto("UPBIT", "upbit", "KRW"),
    _crypto("BITHUMB", "bithumb", "KRW"),
    _crypto("BITFLYER", "bitflyer", "JPY"),
    _forex("FX", "fxcm"),
    NamedExchange("OANDA", ("oanda",), (InstrumentKind.FOREX, InstrumentKind.COMMODITY)),
    _forex("FOREXCOM", "forex.com, forexcom"),
    _forex("FX_IDC", "ice data"),
    _forex("SAXO", "saxo, saxo bank"),
    NamedExchange(
        "NASDAQ", ("nasdaq",), (InstrumentKind.STOCK, InstrumentKind.ETF, InstrumentKind.INDEX), ambiguous=True
    ),
    NamedExchange("NYSE", ("nyse", "new york stock exchange"), (InstrumentKind.STOCK,)),
    NamedExchange("AMEX", ("amex", "nyse arca", "arca"), (InstrumentKind.STOCK, InstrumentKind.ETF)),
    NamedExchange("COMEX", ("comex",), (InstrumentKind.FUTURE,)),
    NamedExchange("NYMEX", ("nymex",), (InstrumentKind.FUTURE,)),
    NamedExchange("CBOT", ("cbot",), (InstrumentKind.FUTURE,)),
)


@cache
def exchanges_by_id() -> dict[str, NamedExchange]:
    """All exchanges by their id."""
    return {each.id: each for each in EXCHANGES}


@cache
def exchanges_by_name() -> dict[str, NamedExchange]:
    """All exchanges by what people call them. Raises `ValueError` if a name belongs to two."""
    table: dict[str, NamedExchange] = {}
    for each in EXCHANGES:
        for name in each.names:
            if table.setdefault(name, each) is not each:
                raise ValueError(f"{name} names both {table[name].id} and {each.id}")
    return table


def pair(base: str, quote: str) -> Pair | None:
    """Returns the pair of a base and a quote currency; None if these are no currencies."""
    if base == quote or quote not in QUOTES:
        return None
    if base in FIAT and quote in FIAT:
        return f"FX:{base}{quote}", by_ticker().get(f"{base}{quote}".lower()), ""
    named = by_ticker().get(base.lower())
    if named is not None and named.kind is InstrumentKind.CRYPTO:
        return with_quote(named, quote), named, quote
    if base in COINS | STABLE:
        return f"BINANCE:{base}{_on_binance(quote)}", None, quote
    return (f"OANDA:{base}{quote}", None, "") if base in _METALS and quote in FIAT else None


def with_quote(coin: Named, quote: str) -> str:
    """Returns the symbol of a coin in a quote currency, on the exchange of the table."""
    return f"{coin.exchange}:{coin.base}{_on_binance(quote)}"


def _on_binance(quote: str) -> str:
    """Returns the quote currency on Binance, whose dollar is USDT."""
    return "USDT" if quote == "USD" else quote


def joined_pair(text: str) -> Pair | None:
    """Returns the pair of a text without a separator, such as BTCUSDT or eurusd."""
    name = text.upper()
    for quote in sorted(QUOTES, key=len, reverse=True):
        base = name.removesuffix(quote)
        if base not in {name, ""} and (base in COINS | FIAT | STABLE | _METALS or base.lower() in _coins()):
            return pair(base, quote)
    return None


@cache
def _coins() -> frozenset[str]:
    return frozenset(
        ticker for each in all_instruments() if each.kind is InstrumentKind.CRYPTO for ticker in each.tickers
    )
