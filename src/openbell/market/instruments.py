"""Instruments and the many ways to write one.

One canonical form: `AAPL`, `BRK.B`, `BTC/USD`, `EUR/USD`. `parse` reads every form that the contracts use (`BTCUSDT`,
`BTC-USD`, `BTC_USD`, `BINANCE:BTCUSDT`, `NASDAQ:AAPL`), case-insensitive, and refuses what it would have to guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from openbell.market.errors import InvalidSymbol


class AssetClass(StrEnum):
    """What kind of thing trades; also the name of its folder on disk."""

    STOCK = "stocks"
    CRYPTO = "crypto"
    FOREX = "forex"


@dataclass(frozen=True, slots=True, order=True)
class Instrument:
    """One tradable thing, under its canonical symbol."""

    symbol: str
    asset_class: AssetClass

    @property
    def file_name(self) -> str:
        """The symbol as it stands in file names: `BTC_USD`."""
        return self.symbol.replace("/", "_")

    @property
    def has_volume(self) -> bool:
        """Whether its bars' volume is what was traded: of forex it is a count of ticks, or nothing at all."""
        return self.asset_class is not AssetClass.FOREX

    @property
    def can_be_shorted(self) -> bool:
        """Whether it can be sold without being held: spot crypto cannot."""
        return self.asset_class is not AssetClass.CRYPTO

    def __str__(self) -> str:
        return self.symbol


FIAT = frozenset(
    "USD EUR GBP JPY CHF AUD CAD NZD CNY CNH HKD SGD SEK NOK DKK PLN CZK HUF TRY ZAR MXN BRL INR KRW THB ILS".split()
)
STABLE = frozenset("USDT USDC BUSD DAI TUSD FDUSD PYUSD".split())
"""Crypto that prices other crypto."""
QUOTES = FIAT | STABLE | {"BTC", "ETH", "BNB"}
COINS = frozenset(
    "BTC ETH SOL XRP ADA DOGE DOT LTC BCH LINK AVAX UNI AAVE ATOM NEAR TRX XLM BNB SHIB PEPE SUI APT ARB OP FIL".split()
)
"""Well-known bases: they settle `DOTUSD`, which letters alone could also split as DO/TUSD."""

STOCK_VENUES = frozenset("NASDAQ NYSE AMEX ARCA NYSEARCA BATS CBOE IEX OTC".split())
CRYPTO_VENUES = frozenset(
    "BINANCE BINANCEUS COINBASE KRAKEN BITSTAMP BYBIT OKX KUCOIN BITFINEX GEMINI CRYPTO HUOBI MEXC GATEIO".split()
)
FOREX_VENUES = frozenset("FX FX_IDC OANDA FOREXCOM FXCM SAXO ICE".split())

_STOCK = re.compile(r"[A-Z]{1,5}(?:[.\-][A-Z])?")
_PAIR = re.compile(r"([A-Z0-9]{2,10})[/\-_]([A-Z0-9]{3,5})")
_JOINED = re.compile(r"[A-Z0-9]{6,15}")
_FORMS = "write stocks as AAPL and pairs as BTC/USD"
LONGEST_SYMBOL = 64
"""Characters, blanks around it included; the longest of the contracts' forms has 27."""
TOO_LONG = f"longer than {LONGEST_SYMBOL} characters; {_FORMS}"


def parse(text: str) -> Instrument:
    """Read one symbol in any of the contracts' forms. Raises `InvalidSymbol`."""
    if len(text) > LONGEST_SYMBOL:  # before the cache, which would keep it
        raise InvalidSymbol(text.strip(), TOO_LONG)
    return _parse(text)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Instrument:
    name = text.strip()
    if not name.isascii():  # before the upper case, which makes TSLA of TſLA and SS of ß
        raise InvalidSymbol(text, _FORMS)
    name = name.upper()
    venue, colon, rest = name.rpartition(":")
    if not colon:
        return _parse_plain(name, text)
    asset_class = _venue_class(venue, text)
    instrument = _parse_plain(rest, text)
    if instrument.asset_class is not asset_class:
        raise InvalidSymbol(text, f"{venue} does not list {instrument.symbol}")
    return instrument


def _venue_class(venue: str, text: str) -> AssetClass:
    if venue in STOCK_VENUES:
        return AssetClass.STOCK
    if venue in CRYPTO_VENUES:
        return AssetClass.CRYPTO
    if venue in FOREX_VENUES:
        return AssetClass.FOREX
    raise InvalidSymbol(text, f"unknown exchange {venue[:20]!r}")


def _parse_plain(name: str, text: str) -> Instrument:
    if _STOCK.fullmatch(name):
        return Instrument(name.replace("-", "."), AssetClass.STOCK)
    if pair := _PAIR.fullmatch(name):
        base, quote = pair.groups()
        if quote not in QUOTES:
            raise InvalidSymbol(text, f"{quote} is not a currency that prices others; {_FORMS}")
        return _pair(base, quote, text)
    if _JOINED.fullmatch(name):
        return _split_joined(name, text)
    raise InvalidSymbol(text, _FORMS)


def _split_joined(name: str, text: str) -> Instrument:
    """Split `BTCUSDT`; two ways to read it is one too many."""
    splits = [(name[: -len(q)], q) for q in sorted(QUOTES) if name.endswith(q) and len(name) - len(q) >= 2]
    splits = [(base, quote) for base, quote in splits if len(base) <= 10]
    if not splits:
        raise InvalidSymbol(text, _FORMS)
    # Stable coins are bases too: USDTUSD is tether in dollars at least as much as it is USD/TUSD.
    known = [(base, quote) for base, quote in splits if base in COINS | FIAT | STABLE]
    if len(known) == 1:
        splits = known
    if len(splits) > 1:
        ways = " or ".join(f"{base}/{quote}" for base, quote in splits)
        raise InvalidSymbol(text, f"it could be {ways}; write it with a slash")
    return _pair(*splits[0], text)


def _pair(base: str, quote: str, text: str) -> Instrument:
    if base == quote:
        raise InvalidSymbol(text, "both sides are the same")
    forex = base in FIAT and quote in FIAT
    return Instrument(f"{base}/{quote}", AssetClass.FOREX if forex else AssetClass.CRYPTO)
