"""Names of currencies: "euro vs yen" is a pair, "Bitcoin in euros" a quote currency."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.charts.language.spans import Phrases
from openbell.charts.language.words import Word
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
