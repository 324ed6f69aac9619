"""Instruments, the forms of their symbols, and the symbols that a mistaken one may mean.

The canonical form is `AAPL`, `BRK.B`, `BTC/USD`, `EUR/USD`. `parse` reads all forms that the contracts use (`BTCUSDT`,
`BTC-USD`, `BTC_USD`, `BINANCE:BTCUSDT`, `NASDAQ:AAPL`), ignores case, and refuses ambiguous symbols. `nearest_symbols` never
chooses one: BTC may mean BTC/USD, and APPL may mean AAPL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from openbell.market.errors import InvalidSymbol

FIAT = frozenset(
    "USD EUR GBP JPY CHF AUD CAD NZD CNY CNH HKD SGD SEK NOK DKK PLN CZK HUF TRY ZAR MXN BRL INR KRW THB ILS".split()
)
STABLE = frozenset("USDT USDC BUSD DAI TUSD FDUSD PYUSD".split())
"""Stablecoins, which are quote currencies of other crypto."""
QUOTES = FIAT | STABLE | {"BTC", "ETH", "BNB"}
COINS = frozenset(
    "BTC ETH SOL XRP ADA DOGE DOT LTC BCH LINK AVAX UNI AAVE ATOM NEAR TRX XLM BNB SHIB PEPE SUI APT ARB OP FIL".split()
)
"""Well-known base currencies. They make `DOTUSD` unambiguous, which could also be split into DO/TUSD."""

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
"""Characters, including surrounding blanks; the longest form in the contracts has 27."""
TOO_LONG = f"longer than {LONGEST_SYMBOL} characters; {_FORMS}"
_MOST = 3
_FAR = 99
_OTHER_QUOTE = 2
"""The rank of the same base currency with another quote; spellings that differ come after it."""


class AssetClass(StrEnum):
    """The asset class; the value is also the name of its folder on disk."""

    STOCK = "stocks"
    CRYPTO = "crypto"
    FOREX = "forex"


@dataclass(frozen=True, slots=True, order=True)
class Instrument:
    """One instrument, identified by its canonical symbol."""

    symbol: str
    asset_class: AssetClass

    @property
    def file_name(self) -> str:
        """The symbol in file names: `BTC_USD`."""
        return self.symbol.replace("/", "_")

    @property
    def has_volume(self) -> bool:
        """True if the volume of its bars is the traded amount. For forex it is a number of ticks or 0."""
        return self.asset_class is not AssetClass.FOREX

    @property
    def can_be_shorted(self) -> bool:
        """True if it can be sold short. Spot crypto cannot."""
        return self.asset_class is not AssetClass.CRYPTO

    def __str__(self) -> str:
        return self.symbol


def parse(text: str) -> Instrument:
    """Returns the instrument of a symbol in any of the contracts' forms. Raises `InvalidSymbol`."""
    if len(text) > LONGEST_SYMBOL:  # checked here, so that long texts do not fill the cache
        raise InvalidSymbol(text.strip(), TOO_LONG)
    return _parse(text)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Instrument:
    name = text.strip()
    if not name.isascii():  # checked before upper(), which turns TſLA into TSLA and ß into SS
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
            raise InvalidSymbol(text, f"{quote} is not a quote currency; {_FORMS}")
        return _pair(base, quote, text)
    if _JOINED.fullmatch(name):
        return _split_joined(name, text)
    raise InvalidSymbol(text, _FORMS)


def _split_joined(name: str, text: str) -> Instrument:
    """Splits `BTCUSDT` into base and quote. Raises `InvalidSymbol` if there is no split or more than one."""
    splits = [(name[: -len(q)], q) for q in sorted(QUOTES) if name.endswith(q) and len(name) - len(q) >= 2]
    splits = [(base, quote) for base, quote in splits if len(base) <= 10]
    if not splits:
        raise InvalidSymbol(text, _FORMS)
    # Stablecoins are also base currencies: USDTUSD may be USDT/USD as well as USD/TUSD.
    known = [(base, quote) for base, quote in splits if base in COINS | FIAT | STABLE]
    if len(known) == 1:
        splits = known
    if len(splits) > 1:
        ways = " or ".join(f"{base}/{quote}" for base, quote in splits)
        raise InvalidSymbol(text, f"it could be {ways}; write it with a slash")
    return _pair(*splits[0], text)


def _pair(base: str, quote: str, text: str) -> Instrument:
    if base == quote:
        raise InvalidSymbol(text, "base and quote are the same currency")
    forex = base in FIAT and quote in FIAT
    return Instrument(f"{base}/{quote}", AssetClass.FOREX if forex else AssetClass.CRYPTO)


def nearest_symbols(text: str, known: Iterable[Instrument], most: int = _MOST) -> list[Instrument]:
    """Returns the known instruments that are nearest to a text, all equally near, in the order of `known`."""
    asked = re.sub(r"[^A-Z0-9]", "", text[:80].upper().rpartition(":")[2])
    ranks = {each: _rank(asked, each) for each in dict.fromkeys(known)} if asked else {}
    best = min(ranks.values(), default=_FAR)
    return [each for each, rank in ranks.items() if rank == best][:most] if best < _FAR else []


def _rank(asked: str, known: Instrument) -> int:
    """Returns how far a symbol is from what was asked: 0 for the same letters, then a pair with this base."""
    base, _, quote = known.symbol.partition("/")
    letters = re.sub(r"[^A-Z0-9]", "", known.symbol)
    if letters == asked:
        return 0
    if quote and base == asked:
        return 1
    if quote and asked.startswith(base) and asked.removeprefix(base) in QUOTES:
        return _OTHER_QUOTE
    if quote == asked and known.asset_class is AssetClass.FOREX:  # JPY may mean USD/JPY
        return _OTHER_QUOTE
    allowed = 0 if len(asked) < 3 else 1 if len(asked) < 5 else 2
    far = edits(asked, letters, allowed)
    return _OTHER_QUOTE + far if far <= allowed else _FAR


def edits(one: str, two: str, most: int) -> int:
    """Returns how many letters must be added, removed, replaced or swapped with the next; more than `most` if it is more."""
    if abs(len(one) - len(two)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(two) + 1))
    for at, letter in enumerate(one, 1):
        earlier, before, row = before, row, [at]
        for place, other in enumerate(two, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != other))
            if at > 1 and place > 1 and (letter, one[at - 2]) == (two[place - 2], other):
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
    return row[-1]
