"""Currency pairs with names of their own.

Any two of `FIAT`, written as a pair (`EURUSD`, `eur/usd`, `EUR-USD`), are a pair as well and need no entry.
"""

from __future__ import annotations

from openbell.charts.language.instruments.named import Kind, Named, words

FIAT = {
    "USD": words("dollar, us dollar, greenback, buck"),
    "EUR": words("euro"),
    "GBP": words("pound, british pound, sterling, pound sterling"),
    "JPY": words("yen, japanese yen"),
    "CHF": words("franc, swiss franc"),
    "AUD": words("australian dollar"),
    "NZD": words("new zealand dollar"),
    "CAD": words("canadian dollar"),
    "CNH": words("yuan, renminbi, offshore yuan"),
    "CNY": words("onshore yuan"),
    "HKD": words("hong kong dollar"),
    "SGD": words("singapore dollar"),
    "SEK": words("swedish krona"),
    "NOK": words("norwegian krone"),
    "DKK": words("danish krone"),
    "PLN": words("zloty, polish zloty"),
    "CZK": words("czech koruna"),
    "HUF": words("forint, hungarian forint"),
    "TRY": words("lira, turkish lira"),
    "ZAR": words("rand, south african rand"),
    "MXN": words("peso, mexican peso"),
    "BRL": words("real, brazilian real"),
    "INR": words("rupee, indian rupee"),
    "KRW": words("won, korean won"),
    "THB": words("baht, thai baht"),
    "ILS": words("shekel, israeli shekel"),
}
"""Currencies, each with its names. `TRY`, `real` and `won` are English words: they count inside of a pair only."""


def _pair(code: str, names: str, ambiguous: str = "") -> Named:
    return Named(f"FX:{code}", Kind.FOREX, words(names), (code.lower(),), frozenset(words(ambiguous)))


INSTRUMENTS = (
    _pair("EURUSD", "euro dollar, fiber, fibre, euro"),
    _pair("GBPUSD", "cable, pound dollar, sterling, british pound, pound"),
    _pair("USDJPY", "dollar yen, yen, japanese yen, ninja", ambiguous="ninja"),
    _pair("USDCHF", "swissie, swissy, dollar swiss, swiss franc, dollar franc"),
    _pair("AUDUSD", "aussie, aussie dollar, australian dollar"),
    _pair("NZDUSD", "kiwi, kiwi dollar, new zealand dollar"),
    _pair("USDCAD", "loonie, canadian dollar, dollar cad"),
    _pair("EURGBP", "euro pound, euro sterling, chunnel"),
    _pair("EURJPY", "euro yen, yuppy"),
    _pair("EURCHF", "euro swiss, euro franc"),
    _pair("EURAUD", "euro aussie"),
    _pair("EURNZD", "euro kiwi"),
    _pair("EURCAD", "euro cad"),
    _pair("GBPJPY", "pound yen, guppy, gopher, sterling yen"),
    _pair("GBPCHF", "pound swiss, pound franc"),
    _pair("GBPAUD", "pound aussie"),
    _pair("GBPNZD", "pound kiwi"),
    _pair("GBPCAD", "pound cad"),
    _pair("AUDJPY", "aussie yen"),
    _pair("AUDNZD", "aussie kiwi"),
    _pair("AUDCAD", "aussie cad"),
    _pair("AUDCHF", "aussie swiss"),
    _pair("NZDJPY", "kiwi yen"),
    _pair("CADJPY", "cad yen"),
    _pair("CHFJPY", "swiss yen, franc yen"),
    _pair("USDCNH", "dollar yuan, yuan, renminbi"),
    _pair("USDMXN", "dollar peso, mexican peso"),
    _pair("USDTRY", "dollar lira, turkish lira"),
    _pair("USDZAR", "dollar rand, south african rand"),
    _pair("USDSEK", "dollar krona, swedish krona"),
    _pair("USDNOK", "dollar krone, norwegian krone"),
    _pair("USDINR", "dollar rupee, indian rupee"),
)
