"""Well-known exchanges, instruments and currencies: what the vendor's lists of ids do not say."""

from __future__ import annotations

from dataclasses import dataclass

TYPES = ("bond", "cfd", "crypto", "economic", "forex", "fund", "futures", "index", "stock", "other")
"""The types of exchanges and symbols."""
_VENDOR_TYPES = {
    **{name: name for name in TYPES},
    **dict.fromkeys(("dr", "right", "warrant", "preferred", "stocks", "equity"), "stock"),
    **dict.fromkeys(("bitcoin", "spot", "swap", "cryptocurrency"), "crypto"),
    **dict.fromkeys(("etf", "funds", "structured"), "fund"),
    **dict.fromkeys(("future", "commodity"), "futures"),
    **dict.fromkeys(("indices", "indexes"), "index"),
    **dict.fromkeys(("currency", "fx"), "forex"),
    "economy": "economic",
    "bonds": "bond",
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange."""

    id: str
    name: str
    type: str
    description: str


def type_of(word: object, specs: object = ()) -> str | None:
    """Returns the type that a word of the vendor means; None if it is unknown. `specs` are finer types, such as crypto."""
    if isinstance(specs, list) and "crypto" in specs:
        return "crypto"
    return _VENDOR_TYPES.get(word.strip().lower()) if isinstance(word, str) else None


def describe(exchange: str, name: str = "", kind: str | None = None, description: str = "") -> Exchange:
    """Returns an exchange by its id, with what is known about it here unless the vendor says it."""
    known = EXCHANGES.get(exchange)
    if known is None:
        return Exchange(exchange, name or exchange, kind or "other", description or f"Exchange {exchange}")
    return Exchange(exchange, name or known.name, kind or known.type, description or known.description)


EXCHANGES = {
    found.id: found
    for found in (
        Exchange("BINANCE", "Binance", "crypto", "Global cryptocurrency exchange"),
        Exchange("BINANCEUS", "Binance US", "crypto", "US cryptocurrency exchange"),
        Exchange("BINGX", "BingX", "crypto", "Global cryptocurrency exchange"),
        Exchange("BITFINEX", "Bitfinex", "crypto", "Cryptocurrency exchange"),
        Exchange("BITFLYER", "bitFlyer", "crypto", "Japanese cryptocurrency exchange"),
        Exchange("BITGET", "Bitget", "crypto", "Global cryptocurrency exchange"),
        Exchange("BITMEX", "BitMEX", "crypto", "Cryptocurrency derivatives exchange"),
        Exchange("BITSTAMP", "Bitstamp", "crypto", "European cryptocurrency exchange"),
        Exchange("BYBIT", "Bybit", "crypto", "Global cryptocurrency exchange"),
        Exchange("COINBASE", "Coinbase", "crypto", "US cryptocurrency exchange"),
        Exchange("CRYPTO", "Crypto", "crypto", "Cryptocurrency prices across exchanges"),
        Exchange("CRYPTOCAP", "Crypto Market Cap", "index", "Market capitalisation and dominance of cryptocurrencies"),
        Exchange("DERIBIT", "Deribit", "crypto", "Cryptocurrency options and futures exchange"),
        Exchange("GATEIO", "Gate.io", "crypto", "Global cryptocurrency exchange"),
        Exchange("GEMINI", "Gemini", "crypto", "US cryptocurrency exchange"),
        Exchange("HUOBI", "HTX", "crypto", "Global cryptocurrency exchange"),
        Exchange("KRAKEN", "Kraken", "crypto", "US cryptocurrency exchange"),
        Exchange("KUCOIN", "KuCoin", "crypto", "Global cryptocurrency exchange"),
        Exchange("MEXC", "MEXC", "crypto", "Global cryptocurrency exchange"),
        Exchange("OKX", "OKX", "crypto", "Global cryptocurrency exchange"),
        Exchange("PHEMEX", "Phemex", "crypto", "Cryptocurrency exchange"),
        Exchange("POLONIEX", "Poloniex", "crypto", "Cryptocurrency exchange"),
        Exchange("UNISWAP", "Uniswap", "crypto", "Decentralised cryptocurrency exchange"),
        Exchange("UPBIT", "Upbit", "crypto", "Korean cryptocurrency exchange"),
        Exchange("AMEX", "NYSE American and Arca", "stock", "US stock and fund exchange"),
        Exchange("ARCA", "NYSE Arca", "stock", "US fund exchange"),
        Exchange("ASX", "ASX", "stock", "Australian stock exchange"),
        Exchange("BATS", "Cboe BZX", "stock", "US stock and fund exchange"),
        Exchange("BMFBOVESPA", "B3", "stock", "Brazilian stock exchange"),
        Exchange("BSE", "BSE", "stock", "Indian stock exchange in Mumbai"),
        Exchange("CBOE", "Cboe", "stock", "US stock and fund exchange"),
        Exchange("EURONEXT", "Euronext", "stock", "European stock exchanges"),
        Exchange("FWB", "Frankfurt", "stock", "German stock exchange in Frankfurt"),
        Exchange("HKEX", "HKEX", "stock", "Hong Kong stock exchange"),
        Exchange("KRX", "KRX", "stock", "Korean stock exchange"),
        Exchange("LSE", "LSE", "stock", "London stock exchange"),
        Exchange("NASDAQ", "NASDAQ", "stock", "US stock exchange"),
        Exchange("NSE", "NSE", "stock", "Indian national stock exchange"),
        Exchange("NYSE", "NYSE", "stock", "New York stock exchange"),
        Exchange("OTC", "OTC Markets", "stock", "US stocks traded over the counter"),
        Exchange("SIX", "SIX", "stock", "Swiss stock exchange"),
        Exchange("SSE", "SSE", "stock", "Shanghai stock exchange"),
        Exchange("SZSE", "SZSE", "stock", "Shenzhen stock exchange"),
        Exchange("TSE", "TSE", "stock", "Tokyo stock exchange"),
        Exchange("TSX", "TSX", "stock", "Toronto stock exchange"),
        Exchange("XETR", "XETRA", "stock", "German electronic stock exchange"),
        Exchange("FOREXCOM", "FOREX.com", "forex", "Currency prices of a broker"),
        Exchange("FX", "FXCM", "forex", "Currency pairs"),
        Exchange("FX_IDC", "ICE currencies", "forex", "Currency pairs and crosses"),
        Exchange("FXCM", "FXCM", "forex", "Currency prices of a broker"),
        Exchange("OANDA", "OANDA", "forex", "Currency prices of a broker"),
        Exchange("SAXO", "Saxo", "forex", "Currency prices of a broker"),
        Exchange("CAPITALCOM", "Capital.com", "cfd", "Contracts for difference of a broker"),
        Exchange("PEPPERSTONE", "Pepperstone", "cfd", "Contracts for difference of a broker"),
        Exchange("TVC", "TradingView composites", "index", "Indices, yields and commodities"),
        Exchange("CBOT", "CBOT", "futures", "Futures on grains and US interest rates"),
        Exchange("CBOT_MINI", "CBOT E-mini", "futures", "Small futures on the Dow Jones and grains"),
        Exchange("CME", "CME", "futures", "Futures on indices, currencies and livestock"),
        Exchange("CME_MINI", "CME E-mini", "futures", "Small futures on US stock indices"),
        Exchange("COMEX", "COMEX", "futures", "Futures on gold, silver and copper"),
        Exchange("EUREX", "Eurex", "futures", "European futures"),
        Exchange("ICEEUR", "ICE Europe", "futures", "Futures on European energy and interest rates"),
        Exchange("ICEUS", "ICE US", "futures", "Futures on soft commodities and the US dollar"),
        Exchange("MCX", "MCX", "futures", "Indian commodity futures"),
        Exchange("NYMEX", "NYMEX", "futures", "Futures on energy and platinum"),
        Exchange("DJ", "Dow Jones", "index", "Dow Jones indices"),
        Exchange("SP", "S&P", "index", "S&P indices"),
        Exchange("INDEX", "Indices", "index", "Indices of several markets"),
        Exchange("ECONOMICS", "Economic data", "economic", "Economic series of countries"),
        Exchange("FRED", "FRED", "economic", "Economic series of the Federal Reserve"),
    )
}

LISTED = {
    "SPY": ("AMEX", "SPDR S&P 500 ETF"),
    "QQQ": ("NASDAQ", "Invesco QQQ"),
    "IWM": ("AMEX", "iShares Russell 2000 ETF"),
    "AAPL": ("NASDAQ", "Apple"),
    "MSFT": ("NASDAQ", "Microsoft"),
    "GOOGL": ("NASDAQ", "Alphabet A"),
    "AMZN": ("NASDAQ", "Amazon"),
    "META": ("NASDAQ", "Meta Platforms"),
    "NVDA": ("NASDAQ", "NVIDIA"),
    "TSLA": ("NASDAQ", "Tesla"),
    "BBAI": ("NYSE", "BigBear.ai"),
    "RIOT": ("NASDAQ", "Riot Platforms"),
    "NVDX": ("CBOE", "T-Rex 2X Long NVIDIA Daily Target ETF"),
    "SMR": ("NYSE", "NuScale Power"),
    "APLD": ("NASDAQ", "Applied Digital"),
    "SOUN": ("NASDAQ", "SoundHound AI"),
    "SERV": ("NASDAQ", "Serve Robotics"),
    "ACHR": ("NYSE", "Archer Aviation"),
    "BITQ": ("AMEX", "Bitwise Crypto Industry Innovators ETF"),
    "UEC": ("AMEX", "Uranium Energy"),
}
"""The exchange and the name of the stocks and funds that a new desk watches."""

CURRENCIES = {
    "BTC": "Bitcoin",
    "ETH": "Ethereum",
    "SOL": "Solana",
    "XRP": "XRP",
    "ADA": "Cardano",
    "DOGE": "Dogecoin",
    "DOT": "Polkadot",
    "LTC": "Litecoin",
    "BCH": "Bitcoin Cash",
    "LINK": "Chainlink",
    "AVAX": "Avalanche",
    "BNB": "BNB",
    "USDT": "TetherUS",
    "USDC": "USD Coin",
    "USD": "US Dollar",
    "EUR": "Euro",
    "GBP": "British Pound",
    "JPY": "Japanese Yen",
    "CHF": "Swiss Franc",
    "AUD": "Australian Dollar",
    "CAD": "Canadian Dollar",
    "NZD": "New Zealand Dollar",
}
