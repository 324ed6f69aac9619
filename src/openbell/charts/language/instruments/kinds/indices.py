"""Stock indices, the dollar index and bond yields."""

from __future__ import annotations

from openbell.charts.language.instruments.named import Kind, Named, words


def _index(symbol: str, names: str, tickers: str, ambiguous: str = "") -> Named:
    return Named(symbol, Kind.INDEX, words(names), words(tickers), frozenset(words(ambiguous)))


INSTRUMENTS = (
    _index("SP:SPX", "s&p 500, s&p, s and p 500, s&p500, sp 500, standard and poor's 500", "spx, sp500, us500"),
    _index("NASDAQ:NDX", "nasdaq 100, nasdaq-100", "ndx, nas100, us100"),
    _index("NASDAQ:IXIC", "nasdaq composite, nasdaq", "ixic", ambiguous="nasdaq"),
    _index("DJ:DJI", "dow jones, dow, dow 30, dow jones industrial average", "dji, djia, us30"),
    _index("TVC:RUT", "russell 2000, russell", "rut", ambiguous="rut"),
    _index("TVC:VIX", "cboe volatility index, fear index, fear gauge", "vix"),
    _index("XETR:DAX", "dax 40, german dax", "dax, ger40, de40"),
    _index("TVC:UKX", "ftse 100, ftse, footsie", "ukx, uk100"),
    _index("EURONEXT:PX1", "cac 40, cac", "px1, cac40, fra40"),
    _index("TVC:SX5E", "euro stoxx 50, eurostoxx 50, eurostoxx", "sx5e"),
    _index("TVC:NI225", "nikkei, nikkei 225", "ni225, jp225"),
    _index("HSI:HSI", "hang seng, hang seng index", "hsi, hk50"),
    _index("SSE:000001", "shanghai composite, sse composite", "sse"),
    _index("NSE:NIFTY", "nifty 50, indian nifty", "nifty", ambiguous="nifty"),
    _index("BSE:SENSEX", "bse sensex", "sensex"),
    _index("ASX:XJO", "asx 200, s&p asx 200", "xjo, asx200"),
    _index("TSX:TSX", "tsx composite, toronto composite", "tsx"),
    _index("BMFBOVESPA:IBOV", "bovespa, ibovespa", "ibov"),
    _index("KRX:KOSPI", "korea composite", "kospi"),
    _index("TVC:DXY", "dollar index, us dollar index", "dxy"),
    _index("TVC:US02Y", "us 2 year yield, 2 year yield, two year yield, 2 year treasury, us 2 year", "us02y, us2y"),
    _index("TVC:US10Y", "us 10 year yield, 10 year yield, ten year yield, 10 year treasury, us 10 year", "us10y"),
    _index("TVC:US30Y", "us 30 year yield, 30 year yield, thirty year yield, 30 year treasury, us 30 year", "us30y"),
    _index("TVC:DE10Y", "bund yield, german 10 year yield, german 10 year", "de10y"),
    _index("CRYPTOCAP:BTC.D", "bitcoin dominance, btc dominance", "btc.d"),
    _index("CRYPTOCAP:TOTAL", "total crypto market cap, crypto market cap", "total", ambiguous="total"),
)
