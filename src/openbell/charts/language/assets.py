"""Recognises instruments and exchanges: names, tickers, pairs and EXCHANGE:SYMBOL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from openbell.charts.language.instruments.catalogue import all_instruments, by_ticker
from openbell.charts.language.instruments.exchanges import (
    NamedExchange,
    exchanges_by_name,
    joined_pair,
    pair,
    with_quote,
)
from openbell.charts.language.instruments.named import InstrumentKind, Named
from openbell.charts.language.spans import Detection, Phrases, text_of
from openbell.charts.language.words import Word, words_of
from openbell.market.instruments import FIAT, STABLE

_NAMES = {
    "USD": "dollar, us dollar, american dollar, greenback, usd",
    "EUR": "euro, eur",
    "GBP": "pound, british pound, pound sterling, sterling, gbp",
    "JPY": "yen, japanese yen, jpy",
    "CHF": "franc, swiss franc, swissie, chf",
    "AUD": "aussie, australian dollar, aussie dollar, aud",
    "CAD": "canadian dollar, loonie, cad",
    "NZD": "new zealand dollar, kiwi, kiwi dollar, nzd",
    "CNY": "yuan, renminbi, chinese yuan",
    "HKD": "hong kong dollar",
    "SGD": "singapore dollar",
    "SEK": "swedish krona, swedish crown",
    "NOK": "norwegian krone, norwegian crown",
    "DKK": "danish krone",
    "PLN": "zloty, polish zloty",
    "CZK": "czech koruna",
    "HUF": "forint, hungarian forint",
    "TRY": "turkish lira, lira",
    "ZAR": "rand, south african rand",
    "MXN": "mexican peso, peso",
    "BRL": "brazilian real",
    "INR": "rupee, indian rupee",
    "KRW": "won, korean won, south korean won",
    "THB": "baht, thai baht",
    "ILS": "shekel, israeli shekel",
    "USDT": "tether, usdt",
    "USDC": "usdc, usd coin",
}
_CODES = {code: (code.lower(),) for code in FIAT | STABLE}
_TABLE = Phrases(
    [(name.strip().split(), code) for code, names in _NAMES.items() for name in names.split(",")]
    + [(words, code) for code, words in _CODES.items()]
)
JOINS = frozenset({"vs", "versus", "against", "to", "/", "in", "per", "v"})
_ARTICLES = frozenset({"the", "a", "an"})


def currency_at(words: Sequence[Word], at: int) -> tuple[int, str] | None:
    """Returns the index after a currency that begins at a word, and its code. Articles before it are skipped."""
    while at < len(words) and words[at].text in _ARTICLES and not words[at].is_number:
        at += 1
    return _TABLE.at(words, at) if at < len(words) else None


def quote_at(words: Sequence[Word], at: int) -> tuple[int, str] | None:
    """Returns the index after a joining word and a currency: `in euros`, `against the dollar`."""
    if at >= len(words) or words[at].is_number or words[at].text not in JOINS:
        return None
    return currency_at(words, at + 1)


@dataclass(frozen=True, slots=True)
class AssetFound:
    """An instrument that a sentence names."""

    title: str
    """As the sentence writes it."""
    symbol: str
    """EXCHANGE:SYMBOL, if the sentence asks for no exchange."""
    named: Named | None = None
    quote: str = ""
    """The quote currency that the sentence names, for crypto."""
    weak: bool = False
    """True for words of everyday language: they mean the instrument only next to another one, or if there is no other."""
    capitals: bool = False
    """True for a weak ticker."""
    explicit: bool = False
    """True for EXCHANGE:SYMBOL."""


@dataclass(frozen=True, slots=True)
class ExchangeFound:
    """An exchange that a sentence names."""

    exchange: NamedExchange
    weak: bool = False
    """True if the name means an instrument unless the sentence has another one."""


@dataclass(frozen=True, slots=True)
class PerpetualFound:
    """The word that asks for the perpetual contract of a coin."""


AssetMeaning = AssetFound | ExchangeFound | PerpetualFound
_EXPLICIT = re.compile(r"(?<![\w:])([A-Za-z][A-Za-z0-9_]{0,19}):([A-Za-z0-9][A-Za-z0-9._!]{0,29})(?![\w:])")
_PAIR = re.compile(r"(?<![\w:/.])([A-Za-z0-9]{2,6})\s?[/\-_]\s?([A-Za-z]{3,5})(?![\w/])")
_JOINED = re.compile(r"(?<![\w:])([A-Za-z]{5,12})(\.[Pp])?(?!\w)")
_DOTTED = re.compile(r"(?<![\w:.])([A-Za-z][A-Za-z0-9]*(?:[.!][A-Za-z]?))(?!\w)")
_BEFORE_EXCHANGE = frozenset({"on", "at", "from", "via", "using", "through", "exchange"})
_CONFIRMS = frozenset({"stock", "stocks", "share", "shares", "coin", "coins", "token", "tokens"})
_PERPETUAL = frozenset({"perp", "perps", "perpetual", "perpetuals"})


@cache
def _names() -> Phrases[tuple[Named, str]]:
    return Phrases(
        (tuple(text_of(word) for word in words_of(name)), (each, name))
        for each in all_instruments()
        for name in each.names
    )


@cache
def _exchanges() -> Phrases[NamedExchange]:
    return Phrases(
        (tuple(text_of(word) for word in words_of(name)), exchange) for name, exchange in exchanges_by_name().items()
    )


@cache
def asset_words() -> frozenset[str]:
    """Every word of a name of an instrument or exchange."""
    return _names().vocabulary | _exchanges().vocabulary


def assets_in(sentence: str, words: Sequence[Word]) -> Iterator[Detection[AssetMeaning]]:
    """Yields instruments and exchanges."""
    yield from _written(sentence, words)
    loud = sentence.isupper()
    for at, word in enumerate(words):
        yield from _by_name(words, at)
        yield from _by_ticker(sentence, words, at, loud=loud)
        yield from _two_currencies(words, at)
        if word.text in _PERPETUAL and not word.is_number:
            yield Detection(at, at + 1, PerpetualFound())
        if (found := _exchanges().at(words, at)) is not None:
            end, exchange = found
            told = at > 0 and words[at - 1].text in _BEFORE_EXCHANGE
            yield Detection(at - told, end, ExchangeFound(exchange, exchange.ambiguous and not told), rank=5)


def _written(sentence: str, words: Sequence[Word]) -> Iterator[Detection[AssetMeaning]]:
    """Yields the forms that are found in the text itself: EXCHANGE:SYMBOL, EUR/USD, BTCUSDT, BRK.B, ES1!."""
    for match in _EXPLICIT.finditer(sentence):
        if match[1].upper() not in {"HTTP", "HTTPS"}:
            symbol = f"{match[1].upper()}:{match[2].upper().rstrip('.')}"
            yield from _detection(words, match, AssetFound(match[0], symbol, explicit=True), 3.0)
    for match in _PAIR.finditer(sentence):
        if (found := pair(match[1].upper(), match[2].upper())) is not None:
            yield from _detection(words, match, AssetFound(match[0], *found), 1.0)
    for match in _JOINED.finditer(sentence):
        if (found := joined_pair(match[1])) is not None:
            symbol, named, quote = found
            made = AssetFound(match[0], symbol + (match[2] or "").upper(), named, quote, explicit=bool(match[2]))
            yield from _detection(words, match, made, 0.5)
    for match in _DOTTED.finditer(sentence):
        if (named := by_ticker().get(match[1].lower())) is not None:
            yield from _detection(words, match, AssetFound(match[1].upper(), named.symbol, named), 1.0)


def _detection(
    words: Sequence[Word], match: re.Match[str], found: AssetFound, bonus: float
) -> Iterator[Detection[AssetMeaning]]:
    """Yields the detection of a part of the sentence."""
    inside = [at for at, word in enumerate(words) if word.start < match.end() and match.start() < word.end]
    if inside:
        yield Detection(inside[0], inside[-1] + 1, found, bonus=bonus)


def _by_name(words: Sequence[Word], at: int) -> Iterator[Detection[AssetMeaning]]:
    if (found := _names().at(words, at)) is None:
        return
    end, (named, name) = found
    begin, finish, sure = _confirmed(words, at, end)
    weak = named.is_ambiguous(name) and not sure
    title = " ".join(text_of(word) for word in words[at:end])
    yield from _asset(words, begin, finish, AssetFound(title, named.symbol, named, weak=weak), rank=2)


def _by_ticker(sentence: str, words: Sequence[Word], at: int, *, loud: bool) -> Iterator[Detection[AssetMeaning]]:
    word = words[at]
    named = None if word.is_number else by_ticker().get(word.text)
    if named is None:
        return
    dollar = word.start > 0 and sentence[word.start - 1] == "$"
    begin, finish, sure = _confirmed(words, at, at + 1)
    begin -= bool(dollar and begin and words[begin - 1].text == "$")
    ambiguous = named.is_ambiguous(word.text) and not dollar
    if ambiguous and (not word.caps or loud):
        return
    found = AssetFound(word.text.upper(), named.symbol, named, weak=ambiguous and not sure, capitals=ambiguous)
    yield from _asset(words, begin, finish, found, rank=7 if ambiguous and not sure else 2)


def _asset(
    words: Sequence[Word], begin: int, finish: int, found: AssetFound, rank: int
) -> Iterator[Detection[AssetMeaning]]:
    """Yields an instrument, and with the currency that follows a coin: `Bitcoin in euros`."""
    yield Detection(begin, finish, found, rank)
    named = found.named
    if named is None or (quoted := quote_at(words, finish)) is None:
        return
    after, quote = quoted
    if named.kind is InstrumentKind.CRYPTO and quote != named.base:
        symbol = with_quote(named, quote)
        yield Detection(begin, after, AssetFound(found.title, symbol, named, quote), rank)
    elif quote == "USD" and named.kind is not InstrumentKind.FOREX and words[finish].text == "in":
        yield Detection(begin, after, found, rank)


def _confirmed(words: Sequence[Word], at: int, end: int) -> tuple[int, int, bool]:
    """Returns the span of a name with `stock`, `shares of` and the like, and whether there is such a word."""
    if end < len(words) and words[end].text in _CONFIRMS:
        return at, end + 1, True
    if at > 1 and words[at - 1].text == "of" and words[at - 2].text in _CONFIRMS:
        return at - 2, end, True
    return at, end, False


def _two_currencies(words: Sequence[Word], at: int) -> Iterator[Detection[AssetMeaning]]:
    """Yields `euro vs yen`, `the pound versus the Swiss franc`."""
    if words[at].text in {"the", "a", "an"} or (first := currency_at(words, at)) is None:
        return
    second = quote_at(words, first[0])
    if second is None and _is_code(words, at) and first[0] < len(words) and _is_code(words, first[0]):
        second = first[0] + 1, words[first[0]].text.upper()  # `usd cad`
    if second is None or words[first[0]].text == "in":
        return
    found = pair(first[1], second[1])
    if found is not None:
        title = " ".join(text_of(word) for word in words[at : second[0]])
        yield Detection(at, second[0], AssetFound(title, *found), bonus=0.5)


def _is_code(words: Sequence[Word], at: int) -> bool:
    """Returns True for the code of a currency, such as `usd`."""
    return not words[at].is_number and words[at].text.upper() in FIAT
