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
class VendorExchange:
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


def describe(exchange: str, name: str = "", kind: str | None = None, description: str = "") -> VendorExchange:
    """Returns an exchange by its id, with what is known about it here unless the vendor says it."""
    known = EXCHANGES.get(exchange)
    if known is None:
        return VendorExchange(exchange, name or exchange, kind or "other", description or f"Exchange {exchange}")
    return VendorExchange(exchange, name or known.name, kind or known.type, description or known.description)


EXCHANGES = {
    found.id: found
    for found in (
        VendorExchange("BINANCE", "Binance", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("BINANCEUS", "Binance US", "crypto", "US cryptocurrency exchange"),
        VendorExchange("BINGX", "BingX", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("BITFINEX", "Bitfinex", "crypto", "Cryptocurrency exchange"),
        VendorExchange("BITFLYER", "bitFlyer", "crypto", "Japanese cryptocurrency exchange"),
        VendorExchange("BITGET", "Bitget", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("BITMEX", "BitMEX", "crypto", "Cryptocurrency derivatives exchange"),
        VendorExchange("BITSTAMP", "Bitstamp", "crypto", "European cryptocurrency exchange"),
        VendorExchange("BYBIT", "Bybit", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("COINBASE", "Coinbase", "crypto", "US cryptocurrency exchange"),
        VendorExchange("CRYPTO", "Crypto", "crypto", "Cryptocurrency prices across exchanges"),
        VendorExchange(
            "CRYPTOCAP", "Crypto Market Cap", "index", "Market capitalisation and dominance of cryptocurrencies"
        ),
        VendorExchange("DERIBIT", "Deribit", "crypto", "Cryptocurrency options and futures exchange"),
        VendorExchange("GATEIO", "Gate.io", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("GEMINI", "Gemini", "crypto", "US cryptocurrency exchange"),
        VendorExchange("HUOBI", "HTX", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("KRAKEN", "Kraken", "crypto", "US cryptocurrency exchange"),
        VendorExchange("KUCOIN", "KuCoin", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("MEXC", "MEXC", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("OKX", "OKX", "crypto", "Global cryptocurrency exchange"),
        VendorExchange("PHEMEX", "Phemex", "crypto", "Cryptocurrency exchange"),
        VendorExchange("POLONIEX", "Poloniex", "crypto", "Cryptocurrency exchange"),
        VendorExchange("UNISWAP", "Uniswap", "crypto", "Decentralised cryptocurrency exchange"),
        VendorExchange("UPBIT", "Upbit", "crypto", "Korean cryptocurrency exchange"),
        VendorExchange("AMEX", "NYSE American and Arca", "stock", "US stock and fund exchange"),
        VendorExchange("ARCA", "NYSE Arca", "stock", "US fund exchange"),
        VendorExchange("ASX", "ASX", "stock", "Australian stock exchange"),
        VendorExchange("BATS", "Cboe BZX", "stock", "US stock and fund exchange"),
        VendorExchange("BMFBOVESPA", "B3", "stock", "Brazilian stock exchange"),
        VendorExchange("BSE", "BSE", "stock", "Indian stock exchange in Mumbai"),
        VendorExchange("CBOE", "Cboe", "stock", "US stock and fund exchange"),
        VendorExchange("EURONEXT", "Euronext", "stock", "European stock exchanges"),
        VendorExchange("FWB", "Frankfurt", "stock", "German stock exchange in Frankfurt"),
        VendorExchange("HKEX", "HKEX", "stock", "Hong Kong stock exchange"),
        VendorExchange("KRX", "KRX", "stock", "Korean stock exchange"),
        VendorExchange("LSE", "LSE", "stock", "London stock exchange"),
        VendorExchange("NASDAQ", "NASDAQ", "stock", "US stock exchange"),
        VendorExchange("NSE", "NSE", "stock", "Indian national stock exchange"),
        VendorExchange("NYSE", "NYSE", "stock", "New York stock exchange"),
        VendorExchange("OTC", "OTC Markets", "stock", "US stocks traded over the counter"),
        VendorExchange("SIX", "SIX", "stock", "Swiss stock exchange"),
        VendorExchange("SSE", "SSE", "stock", "Shanghai stock exchange"),
        VendorExchange("SZSE", "SZSE", "stock", "Shenzhen stock exchange"),
        VendorExchange("TSE", "TSE", "stock", "Tokyo stock exchange"),
        VendorExchange("TSX", "TSX", "stock", "Toronto stock exchange"),
        VendorExchange("XETR", "XETRA", "stock", "German electronic stock exchange"),
        VendorExchange("FOREXCOM", "FOREX.com", "forex", "Currency prices of a broker"),
        VendorExchange("FX", "FXCM", "forex", "Currency pairs"),
        VendorExchange("FX_IDC", "ICE currencies", "forex", "Currency pairs and crosses"),
        VendorExchange("FXCM", "FXCM", "forex", "Currency prices of a broker"),
        VendorExchange("OANDA", "OANDA", "forex", "Currency prices of a broker"),
        VendorExchange("SAXO", "Saxo", "forex", "Currency prices of a broker"),
        VendorExchange("CAPITALCOM", "Capital.com", "cfd", "Contracts for difference of a broker"),
        VendorExchange("PEPPERSTONE", "Pepperstone", "cfd", "Contracts for difference of a broker"),
        VendorExchange("TVC", "TradingView composites", "index", "Indices, yields and commodities"),
        VendorExchange("CBOT", "CBOT", "futures", "Futures on grains and US interest rates"),
        VendorExchange("CBOT_MINI", "CBOT E-mini", "futures", "Small futures on the Dow Jones and grains"),
        VendorExchange("CME", "CME", "futures", "Futures on indices, currencies and livestock"),
        VendorExchange("CME_MINI", "CME E-mini", "futures", "Small futures on US stock indices"),
        VendorExchange("COMEX", "COMEX", "futures", "Futures on gold, silver and copper"),
        VendorExchange("EUREX", "Eurex", "futures", "European futures"),
        VendorExchange("ICEEUR", "ICE Europe", "futures", "Futures on European energy and interest rates"),
        VendorExchange("ICEUS", "ICE US", "futures", "Futures on soft commodities and the US dollar"),
        VendorExchange("MCX", "MCX", "futures", "Indian commodity futures"),
        VendorExchange("NYMEX", "NYMEX", "futures", "Futures on energy and platinum"),
        VendorExchange("DJ", "Dow Jones", "index", "Dow Jones indices"),
        VendorExchange("SP", "S&P", "index", "S&P indices"),
        VendorExchange("INDEX", "Indices", "index", "Indices of several markets"),
        VendorExchange("ECONOMICS", "Economic data", "economic", "Economic series of countries"),
        VendorExchange("FRED", "FRED", "economic", "Economic series of the Federal Reserve"),
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
