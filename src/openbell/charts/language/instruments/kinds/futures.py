"""Continuous front-month futures of commodities, indices, bonds and crypto."""

from __future__ import annotations

from openbell.charts.language.instruments.named import Kind, Named, words


def _future(symbol: str, names: str, ambiguous: str = "") -> Named:
    """Returns a future. Its ticker is `es1!`."""
    ticker = symbol.partition(":")[2].lower()
    return Named(symbol, Kind.FUTURE, words(names), (ticker,), frozenset(words(ambiguous)))


INSTRUMENTS = (
    _future("COMEX:GC1!", "gold futures, gold future, comex gold"),
    _future("COMEX:SI1!", "silver futures, silver future, comex silver"),
    _future("COMEX:HG1!", "copper, copper futures, dr copper"),
    _future("NYMEX:PL1!", "platinum futures, platinum future"),
    _future("NYMEX:PA1!", "palladium futures, palladium future"),
    _future("NYMEX:CL1!", "crude oil futures, crude futures, oil futures, wti futures, oil future"),
    _future("NYMEX:BB1!", "brent futures, brent crude futures"),
    _future("NYMEX:NG1!", "natural gas, natural gas futures, nat gas, natgas"),
    _future("NYMEX:RB1!", "gasoline, gasoline futures, rbob"),
    _future("NYMEX:HO1!", "heating oil, heating oil futures"),
    _future("CBOT:ZC1!", "corn, corn futures"),
    _future("CBOT:ZW1!", "wheat, wheat futures"),
    _future("CBOT:ZS1!", "soybeans, soybean, soybean futures, soya beans"),
    _future("CBOT:ZL1!", "soybean oil, soybean oil futures"),
    _future("CBOT:ZO1!", "oats, oat futures"),
    _future("ICEUS:KC1!", "coffee, coffee futures"),
    _future("ICEUS:SB1!", "sugar, sugar futures"),
    _future("ICEUS:CC1!", "cocoa, cocoa futures"),
    _future("ICEUS:CT1!", "cotton, cotton futures"),
    _future("ICEUS:OJ1!", "orange juice, orange juice futures"),
    _future("CME:LE1!", "live cattle, cattle futures, cattle"),
    _future("CME:HE1!", "lean hogs, hog futures"),
    _future("CME_MINI:ES1!", "s&p futures, s&p 500 futures, sp500 futures, e-mini s&p, emini, e-mini"),
    _future("CME_MINI:NQ1!", "nasdaq futures, nasdaq 100 futures, e-mini nasdaq"),
    _future("CME_MINI:RTY1!", "russell futures, russell 2000 futures"),
    _future("CBOT_MINI:YM1!", "dow futures, dow jones futures"),
    _future("CBOT:ZN1!", "10 year note futures, ten year note futures, t-note futures"),
    _future("CBOT:ZB1!", "bond futures, 30 year bond futures, t-bond futures"),
    _future("CME:BTC1!", "bitcoin futures, btc futures, cme bitcoin"),
    _future("CME:ETH1!", "ether futures, ethereum futures, eth futures"),
    _future("EUREX:FDAX1!", "dax futures, dax future"),
    _future("CME:6E1!", "euro futures, euro fx futures"),
)
