"""Exchange-traded funds of the United States."""

from __future__ import annotations

from openbell.charts.language.instruments.named import Kind, Named, words


def _fund(symbol: str, names: str, ambiguous: str = "") -> Named:
    ticker = symbol.partition(":")[2].lower()
    return Named(symbol, Kind.ETF, words(names), (ticker,), frozenset(words(ambiguous)))


INSTRUMENTS = (
    _fund("AMEX:SPY", "spdr s&p 500, s&p 500 etf, s&p etf"),
    _fund("NASDAQ:QQQ", "invesco qqq, nasdaq etf, nasdaq 100 etf, cubes", ambiguous="cubes"),
    _fund("AMEX:VOO", "vanguard s&p 500"),
    _fund("AMEX:VTI", "vanguard total stock market"),
    _fund("AMEX:DIA", "dow etf, diamonds", ambiguous="diamonds"),
    _fund("AMEX:IWM", "russell etf, russell 2000 etf, small cap etf"),
    _fund("AMEX:EEM", "emerging markets etf"),
    _fund("AMEX:GLD", "gold etf, spdr gold"),
    _fund("AMEX:SLV", "silver etf, ishares silver"),
    _fund("AMEX:USO", "oil etf, oil fund"),
    _fund("AMEX:GDX", "gold miners, gold miners etf"),
    _fund("AMEX:XLF", "financials etf, financial sector etf"),
    _fund("AMEX:XLK", "technology etf, tech sector etf, tech etf"),
    _fund("AMEX:XLE", "energy etf, energy sector etf"),
    _fund("AMEX:XLV", "health care etf, healthcare etf"),
    _fund("NASDAQ:SMH", "semiconductor etf"),
    _fund("NASDAQ:TLT", "long bond etf, treasury bond etf, 20 year treasury etf"),
    _fund("AMEX:HYG", "high yield etf, junk bond etf"),
    _fund("AMEX:ARKK", "ark innovation, ark innovation etf"),
    _fund("NASDAQ:TQQQ", "triple qqq, proshares ultrapro qqq"),
    _fund("NASDAQ:IBIT", "bitcoin etf, ishares bitcoin trust"),
)
