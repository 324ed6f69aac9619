"""The instruments that sentences can name, one value each, found by name and by ticker."""

from __future__ import annotations

from functools import cache

from openbell.charts.language.instruments.named import InstrumentKind, Named, words


def _spot(symbol: str, names: str, tickers: str = "", **listings: str) -> Named:
    return Named(symbol, InstrumentKind.COMMODITY, words(names), words(tickers), frozenset(), listings)


COMMODITIES = (
    _spot("TVC:GOLD", "gold", OANDA="XAUUSD"),
    _spot("OANDA:XAUUSD", "spot gold, gold spot", "xauusd, xau"),
    _spot("TVC:SILVER", "silver", OANDA="XAGUSD"),
    _spot("OANDA:XAGUSD", "spot silver, silver spot", "xagusd, xag"),
    _spot("TVC:USOIL", "oil, crude, crude oil, wti crude, us oil, west texas intermediate", "wti, usoil"),
    _spot("TVC:UKOIL", "brent, brent crude, brent oil, brent crude oil, uk oil", "ukoil"),
    _spot("TVC:PLATINUM", "platinum, spot platinum"),
    _spot("TVC:PALLADIUM", "palladium, spot palladium"),
)
"""Commodities as a spot price. Those that are traded as futures only are in `FUTURES`."""


def _coin(base: str, names: str, also: str = "", ambiguous: str = "", **listings: str) -> Named:
    """Returns a coin. `also` are further tickers."""
    tickers = (base.lower(), *words(also))
    return Named(
        f"BINANCE:{base}USDT", InstrumentKind.CRYPTO, words(names), tickers, frozenset(words(ambiguous)), listings
    )


COINS = (
    _coin("BTC", "bitcoin, bit coin, digital gold", "xbt", BITMEX="XBTUSD"),
    _coin("ETH", "ethereum, ether"),
    _coin("SOL", "solana"),
    _coin("BNB", "binance coin, bnb coin"),
    _coin("XRP", "ripple, xrp ledger"),
    _coin("ADA", "cardano"),
    _coin("DOGE", "dogecoin, doge coin", "xdg"),
    _coin("AVAX", "avalanche", ambiguous="avalanche"),
    _coin("DOT", "polkadot, polka dot", ambiguous="dot"),
    _coin("LINK", "chainlink, chain link", ambiguous="link"),
    _coin("LTC", "litecoin, lite coin"),
    _coin("BCH", "bitcoin cash"),
    _coin("ETC", "ethereum classic", ambiguous="etc"),
    _coin("TRX", "tron, tronix"),
    _coin("XLM", "stellar, stellar lumens, lumens", ambiguous="stellar"),
    _coin("SHIB", "shiba inu, shiba"),
    _coin("PEPE", "pepe coin, pepecoin"),
    _coin("NEAR", "near protocol", ambiguous="near"),
    _coin("SUI", "sui network", ambiguous="sui"),
    _coin("APT", "aptos", ambiguous="apt"),
    _coin("ARB", "arbitrum", ambiguous="arb"),
    _coin("OP", "optimism", ambiguous="op, optimism"),
    _coin("ATOM", "cosmos, cosmos hub"),
    _coin("UNI", "uniswap", ambiguous="uni"),
    _coin("AAVE", "aave protocol"),
    _coin("ICP", "internet computer"),
    _coin("FIL", "filecoin"),
    _coin("HBAR", "hedera, hedera hashgraph"),
    _coin("VET", "vechain", ambiguous="vet"),
    _coin("ALGO", "algorand", ambiguous="algo"),
    _coin("TON", "toncoin, the open network", ambiguous="ton"),
    _coin("INJ", "injective"),
    _coin("SEI", "sei network"),
    _coin("TIA", "celestia"),
    _coin("STX", "stacks", ambiguous="stacks"),
    _coin("RENDER", "render token, render network", "rndr", ambiguous="render"),
    _coin("GRT", "the graph token"),
    _coin("IMX", "immutable x, immutable"),
    _coin("POL", "polygon, matic network", "matic", ambiguous="pol"),
    _coin("XTZ", "tezos"),
    _coin("SAND", "the sandbox", ambiguous="sand"),
    _coin("MANA", "decentraland", ambiguous="mana"),
    _coin("AXS", "axie infinity, axie"),
    _coin("THETA", "theta network", ambiguous="theta"),
    _coin("CRV", "curve dao, curve finance"),
    _coin("LDO", "lido, lido dao"),
    _coin("COMP", "compound finance", ambiguous="comp"),
    _coin("SNX", "synthetix"),
    _coin("DYDX", "dydx protocol"),
    _coin("FET", "fetch.ai, artificial superintelligence alliance"),
    _coin("BONK", "bonk coin"),
    _coin("WIF", "dogwifhat"),
    _coin("FLOKI", "floki inu"),
    _coin("JUP", "jupiter exchange"),
    _coin("PYTH", "pyth network"),
    _coin("ENA", "ethena"),
    _coin("ONDO", "ondo finance"),
    _coin("ZEC", "zcash"),
    _coin("DASH", "dash coin", ambiguous="dash"),
    _coin("NEO", "neo coin", ambiguous="neo"),
    _coin("CAKE", "pancakeswap", ambiguous="cake"),
    _coin("GALA", "gala games", ambiguous="gala"),
    _coin("CHZ", "chiliz"),
    _coin("TAO", "bittensor"),
    _coin("KAVA", "kava network"),
    _coin("RUNE", "thorchain", ambiguous="rune"),
)
"""Crypto currencies, by default in Tether on Binance. The ticker is the base currency."""


def _fund(symbol: str, names: str, ambiguous: str = "") -> Named:
    ticker = symbol.partition(":")[2].lower()
    return Named(symbol, InstrumentKind.ETF, words(names), (ticker,), frozenset(words(ambiguous)))


FUNDS = (
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
"""Exchange-traded funds of the United States."""


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
    return Named(f"FX:{code}", InstrumentKind.FOREX, words(names), (code.lower(),), frozenset(words(ambiguous)))


CURRENCY_PAIRS = (
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
"""Currency pairs with names of their own.

Any two of `FIAT`, written as a pair (`EURUSD`, `eur/usd`, `EUR-USD`), are a pair as well and need no entry."""


def _future(symbol: str, names: str, ambiguous: str = "") -> Named:
    """Returns a future. Its ticker is `es1!`."""
    ticker = symbol.partition(":")[2].lower()
    return Named(symbol, InstrumentKind.FUTURE, words(names), (ticker,), frozenset(words(ambiguous)))


FUTURES = (
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
"""Continuous front-month futures of commodities, indices, bonds and crypto."""


def _index(symbol: str, names: str, tickers: str, ambiguous: str = "") -> Named:
    return Named(symbol, InstrumentKind.INDEX, words(names), words(tickers), frozenset(words(ambiguous)))


INDICES = (
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
"""Stock indices, the dollar index and bond yields."""


def _stock(symbol: str, names: str, ambiguous: str = "", also: str = "") -> Named:
    """Returns a stock. Its ticker is that of the exchange; `also` are further ones."""
    tickers = (symbol.partition(":")[2].lower(), *words(also))
    return Named(symbol, InstrumentKind.STOCK, words(names), tickers, frozenset(words(ambiguous)))


STOCKS = (
    # Technology
    _stock("NASDAQ:AAPL", "apple, apple inc"),
    _stock("NASDAQ:MSFT", "microsoft"),
    _stock("NASDAQ:GOOGL", "google, alphabet"),
    _stock("NASDAQ:GOOG", "google class c, alphabet class c"),
    _stock("NASDAQ:AMZN", "amazon"),
    _stock("NASDAQ:META", "facebook, meta platforms"),
    _stock("NASDAQ:NVDA", "nvidia"),
    _stock("NASDAQ:TSLA", "tesla, tesla motors"),
    _stock("NASDAQ:AVGO", "broadcom"),
    _stock("NASDAQ:AMD", "advanced micro devices"),
    _stock("NASDAQ:INTC", "intel"),
    _stock("NASDAQ:QCOM", "qualcomm"),
    _stock("NASDAQ:TXN", "texas instruments"),
    _stock("NASDAQ:MU", "micron, micron technology"),
    _stock("NASDAQ:AMAT", "applied materials"),
    _stock("NASDAQ:LRCX", "lam research"),
    _stock("NASDAQ:MRVL", "marvell"),
    _stock("NASDAQ:ON", "onsemi, on semiconductor", ambiguous="on"),
    _stock("NASDAQ:ASML", "asml holding"),
    _stock("NASDAQ:ARM", "arm holdings", ambiguous="arm"),
    _stock("NYSE:TSM", "tsmc, taiwan semiconductor"),
    _stock("NASDAQ:SMCI", "supermicro, super micro computer"),
    _stock("NASDAQ:ADBE", "adobe"),
    _stock("NYSE:CRM", "salesforce"),
    _stock("NYSE:ORCL", "oracle"),
    _stock("NYSE:IBM", "international business machines, big blue"),
    _stock("NYSE:NOW", "servicenow, service now", ambiguous="now"),
    _stock("NYSE:IT", "gartner", ambiguous="it"),
    _stock("NASDAQ:CSCO", "cisco"),
    _stock("NASDAQ:INTU", "intuit"),
    _stock("NASDAQ:PLTR", "palantir"),
    _stock("NASDAQ:CRWD", "crowdstrike"),
    _stock("NASDAQ:PANW", "palo alto networks"),
    _stock("NYSE:SNOW", "snowflake", ambiguous="snow"),
    _stock("NYSE:NET", "cloudflare", ambiguous="net"),
    _stock("NASDAQ:DDOG", "datadog"),
    _stock("NYSE:AI", "c3.ai, c3 ai", ambiguous="ai"),
    _stock("NYSE:U", "unity software", ambiguous="u"),
    _stock("NYSE:A", "agilent", ambiguous="a"),
    _stock("NASDAQ:SHOP", "shopify", ambiguous="shop"),
    _stock("NYSE:UBER", "uber technologies"),
    _stock("NASDAQ:LYFT", "lyft inc"),
    _stock("NASDAQ:ABNB", "airbnb"),
    _stock("NASDAQ:ZM", "zoom, zoom communications", ambiguous="zoom"),
    _stock("NYSE:SNAP", "snapchat, snap inc", ambiguous="snap"),
    _stock("NYSE:PINS", "pinterest", ambiguous="pins"),
    _stock("NYSE:RDDT", "reddit"),
    _stock("NYSE:SPOT", "spotify", ambiguous="spot"),
    _stock("NYSE:RBLX", "roblox"),
    _stock("NASDAQ:NFLX", "netflix"),
    _stock("NASDAQ:ROKU", "roku inc"),
    _stock("NYSE:DIS", "disney, walt disney"),
    _stock("NASDAQ:CMCSA", "comcast"),
    # Finance
    _stock("NYSE:BRK.B", "berkshire, berkshire hathaway", also="brkb"),
    _stock("NYSE:JPM", "jpmorgan, jp morgan, jpmorgan chase"),
    _stock("NYSE:BAC", "bank of america, bofa"),
    _stock("NYSE:WFC", "wells fargo"),
    _stock("NYSE:C", "citigroup, citi, citibank", ambiguous="c"),
    _stock("NYSE:GS", "goldman sachs, goldman"),
    _stock("NYSE:MS", "morgan stanley", ambiguous="ms"),
    _stock("NYSE:BLK", "blackrock"),
    _stock("NYSE:V", "visa", ambiguous="v, visa"),
    _stock("NYSE:MA", "mastercard, master card", ambiguous="ma"),
    _stock("NYSE:AXP", "american express"),
    _stock("NASDAQ:PYPL", "paypal"),
    _stock("NYSE:XYZ", "block, block inc", ambiguous="block, xyz"),
    _stock("NASDAQ:COIN", "coinbase, coinbase global", ambiguous="coin, coinbase"),
    _stock("NASDAQ:HOOD", "robinhood", ambiguous="hood"),
    _stock("NASDAQ:MSTR", "microstrategy"),
    _stock("NASDAQ:MARA", "mara holdings, marathon digital"),
    _stock("NASDAQ:SOFI", "sofi technologies"),
    _stock("NYSE:ALL", "allstate", ambiguous="all"),
    _stock("NYSE:KEY", "keycorp, keybank", ambiguous="key"),
    # Consumer
    _stock("NASDAQ:WMT", "walmart"),
    _stock("NASDAQ:COST", "costco", ambiguous="cost"),
    _stock("NYSE:TGT", "target, target corporation", ambiguous="target, tgt"),
    _stock("NYSE:HD", "home depot", ambiguous="hd"),
    _stock("NYSE:LOW", "lowe's, lowes", ambiguous="low"),
    _stock("NYSE:GAP", "gap inc, the gap", ambiguous="gap, the gap"),
    _stock("NYSE:NKE", "nike"),
    _stock("NASDAQ:LULU", "lululemon"),
    _stock("NYSE:MCD", "mcdonald's, mcdonalds"),
    _stock("NASDAQ:SBUX", "starbucks"),
    _stock("NYSE:CMG", "chipotle"),
    _stock("NYSE:KO", "coca-cola, coca cola, coke"),
    _stock("NASDAQ:PEP", "pepsi, pepsico"),
    _stock("NYSE:PG", "procter & gamble, procter and gamble"),
    _stock("NYSE:GME", "gamestop, game stop"),
    _stock("NYSE:AMC", "amc entertainment"),
    _stock("NASDAQ:EBAY", "ebay inc"),
    _stock("NYSE:BABA", "alibaba"),
    _stock("NASDAQ:MELI", "mercadolibre, mercado libre"),
    # Health
    _stock("NYSE:JNJ", "johnson & johnson, johnson and johnson"),
    _stock("NYSE:PFE", "pfizer"),
    _stock("NASDAQ:MRNA", "moderna"),
    _stock("NYSE:LLY", "eli lilly, lilly"),
    _stock("NYSE:UNH", "unitedhealth, united health"),
    _stock("NYSE:MRK", "merck"),
    _stock("NYSE:ABBV", "abbvie"),
    _stock("NYSE:NVO", "novo nordisk"),
    _stock("NYSE:CVS", "cvs health"),
    _stock("NASDAQ:GILD", "gilead"),
    # Industry, energy, transport
    _stock("NYSE:XOM", "exxon, exxonmobil, exxon mobil"),
    _stock("NYSE:CVX", "chevron"),
    _stock("NYSE:OXY", "occidental, occidental petroleum"),
    _stock("NYSE:SHEL", "shell"),
    _stock("NYSE:BP", "british petroleum"),
    _stock("NYSE:BA", "boeing"),
    _stock("NYSE:LMT", "lockheed martin, lockheed"),
    _stock("NYSE:CAT", "caterpillar", ambiguous="cat"),
    _stock("NYSE:DE", "john deere, deere", ambiguous="de"),
    _stock("NYSE:GE", "general electric, ge aerospace"),
    _stock("NYSE:F", "ford, ford motor", ambiguous="f"),
    _stock("NYSE:GM", "general motors", ambiguous="gm"),
    _stock("NASDAQ:RIVN", "rivian"),
    _stock("NASDAQ:LCID", "lucid motors, lucid group"),
    _stock("NYSE:NIO", "nio inc"),
    _stock("NYSE:UPS", "united parcel service", ambiguous="ups"),
    _stock("NYSE:FDX", "fedex"),
    _stock("NYSE:DAL", "delta air lines, delta airlines, delta", ambiguous="delta"),
    _stock("NASDAQ:UAL", "united airlines"),
    _stock("NYSE:T", "at&t", ambiguous="t"),
    _stock("NYSE:VZ", "verizon"),
    _stock("NASDAQ:TMUS", "t-mobile, t mobile"),
)
"""Stocks of the United States, on the exchange that lists them."""


@cache
def all_instruments() -> tuple[Named, ...]:
    """All instruments, sorted by symbol."""
    found = (*COMMODITIES, *COINS, *FUNDS, *CURRENCY_PAIRS, *FUTURES, *INDICES, *STOCKS)
    return tuple(sorted(found, key=lambda each: each.symbol))


@cache
def by_name() -> dict[str, Named]:
    """All instruments by each of their names, in lower case."""
    return _table("names")


@cache
def by_ticker() -> dict[str, Named]:
    """All instruments by each of their tickers, in lower case."""
    return _table("tickers")


def _table(field: str) -> dict[str, Named]:
    table: dict[str, Named] = {}
    for instrument in all_instruments():
        for word in getattr(instrument, field):
            if table.setdefault(word, instrument) is not instrument:
                raise ValueError(f"{word!r} names both {table[word].symbol} and {instrument.symbol}")
    return table
