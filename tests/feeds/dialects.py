"""The exchanges as ccxt speaks to them: their markets, candles, page sizes and rate limits."""

from __future__ import annotations

from typing import Any, ClassVar

from openbell.market.instruments import parse
from openbell.market.timeframes import SHORT, Timeframe
from tests.feeds.exchange_server import Candle, ExchangeServer, Rate

USDT = ("BTC/USDT", "ETH/USDT", "SOL/USDT")
USD = ("BTC/USD", "ETH/USD")


class Binance(ExchangeServer):
    """1,000 candles a request, oldest first; 6,000 of weight a minute."""

    exchange = "binance"
    page = 1000
    pairs: ClassVar = {symbol.replace("/", ""): parse(symbol) for symbol in USDT}
    rate = Rate(6000, 60, {"markets": 20, "candles": 2})

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        if path == "/api/v3/exchangeInfo":
            return "markets", {"symbols": [self._market(pair) for pair in self.pairs]}
        if path.endswith("/exchangeInfo"):
            return "derivatives", {"symbols": []}
        if (host, path) != ("api.binance.com", "/api/v3/klines"):
            return "unknown", None
        start = int(query["startTime"]) // 1000
        rows = self.candles(query["symbol"], SHORT[query["interval"]], start)
        chosen = rows[: min(int(query["limit"]), self.page)]
        return "candles", [
            [at * 1000, *map(repr, values), at * 1000 + 1, "0", 1, "0", "0", "0"] for at, *values in chosen
        ]

    def _market(self, pair: str) -> dict[str, Any]:
        base, quote = self.pairs[pair].symbol.split("/")
        return {
            "symbol": pair,
            "status": "TRADING",
            "baseAsset": base,
            "quoteAsset": quote,
            "isSpotTradingAllowed": True,
            "permissions": ["SPOT"],
            "filters": [],
        }


class Coinbase(ExchangeServer):
    """300 candles a request, newest first, none of 4 h, 12 h and weeks; 10 requests a second."""

    exchange = "coinbase"
    page = 300
    pairs: ClassVar = {symbol.replace("/", "-"): parse(symbol) for symbol in USD}
    rate = Rate(10, 1, {})
    _names: ClassVar = {
        "ONE_MINUTE": Timeframe.M1,
        "FIVE_MINUTE": Timeframe.M5,
        "FIFTEEN_MINUTE": Timeframe.M15,
        "THIRTY_MINUTE": Timeframe.M30,
        "ONE_HOUR": Timeframe.H1,
        "TWO_HOUR": Timeframe.H2,
        "SIX_HOUR": Timeframe.H6,
        "ONE_DAY": Timeframe.D1,
    }

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        if host == "api.coinbase.com" and path.startswith("/v2/"):
            return "currencies", {"data": {} if path.endswith("exchange-rates") else []}
        if path == "/api/v3/brokerage/market/products":
            futures = query.get("product_type") == "FUTURE"
            products = [] if futures else [self._product(pair) for pair in self.pairs]
            return "derivatives" if futures else "markets", {"products": products}
        _, _, pair = path.removesuffix("/candles").rpartition("/")
        if not path.endswith("/candles") or pair not in self.pairs:
            return "unknown", None
        timeframe, start, end = self._names[query["granularity"]], int(query["start"]), int(query["end"])
        if (end - start) // timeframe.seconds > self.page:
            return "candles", {"error": "INVALID_ARGUMENT", "message": "number of candles requested should be less"}
        names = ("start", "open", "high", "low", "close", "volume")
        rows = self.candles(pair, timeframe, start, end + 1)
        return "candles", {"candles": [dict(zip(names, map(str, row), strict=True)) for row in reversed(rows)]}

    def _product(self, pair: str) -> dict[str, Any]:
        base, quote = pair.split("-")
        return {
            "product_id": pair,
            "base_currency_id": base,
            "quote_currency_id": quote,
            "product_type": "SPOT",
            "trading_disabled": False,
            "base_increment": "0.00000001",
            "quote_increment": "0.01",
        }


class Kraken(ExchangeServer):
    """The newest 720 candles, whatever is asked for, the forming one last; a request a second, and a few at once."""

    exchange = "kraken"
    page = 720
    pairs: ClassVar = {"XXBTZUSD": parse("BTC/USD"), "XETHZUSD": parse("ETH/USD")}
    rate = Rate(15, 15, {})
    _minutes: ClassVar = {str(each.seconds // 60): each for each in SHORT.values()}

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        assert host == "api.kraken.com"
        if path == "/0/public/AssetPairs":
            return "markets", {"error": [], "result": {pair: self._market(pair) for pair in self.pairs}}
        if path == "/0/public/Assets":
            return "currencies", {"error": [], "result": {}}
        if path != "/0/public/OHLC":
            return "unknown", None
        timeframe = self._minutes[query["interval"]]
        now = int(self.clock.epoch())
        rows = self.candles(query["pair"], timeframe, now - 721 * timeframe.seconds)[-self.page :]
        shown = [[at, *map(str, (o, h, low, c)), str(o), str(v), 7] for at, o, h, low, c, v in rows]
        return "candles", {"error": [], "result": {query["pair"]: shown, "last": rows[-2][0]}}

    def _market(self, pair: str) -> dict[str, Any]:
        base, quote = pair[:4], pair[4:]
        return {
            "altname": pair,
            "wsname": self.pairs[pair].symbol,
            "base": base,
            "quote": quote,
            "pair_decimals": 2,
            "lot_decimals": 8,
            "status": "online",
        }


class Okx(ExchangeServer):
    """300 candles a request, newest first; 40 requests in 2 seconds. Without `utc`, long candles begin at 16:00 UTC."""

    exchange = "okx"
    page = 300
    pairs: ClassVar = {symbol.replace("/", "-"): parse(symbol) for symbol in USDT}
    rate = Rate(40, 2, {"markets": 2})
    has_utc = True
    """False: it has no UTC form of candles from six hours on, and returns those that begin at 16:00 UTC."""

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        assert host == "www.okx.com"
        if path == "/api/v5/public/instruments":
            spot = query["instType"] == "SPOT"
            data = [self._market(pair) for pair in self.pairs] if spot else []
            return "markets" if spot else "derivatives", {"code": "0", "msg": "", "data": data}
        if path not in ("/api/v5/market/candles", "/api/v5/market/history-candles"):
            return "unknown", None
        timeframe = SHORT[query["bar"].removesuffix("utc").lower()]
        utc = timeframe.seconds < 21600 or (self.has_utc and query["bar"].endswith("utc"))
        shift = 0 if utc else 57600 % timeframe.seconds
        now, step = int(self.clock.epoch()), timeframe.seconds
        start = int(query.get("before", "-1")) // 1000 + 1 - shift
        if path.endswith("market/candles"):
            start = max(start, now - 1440 * step)
        end = -(-int(query.get("after", str(1 << 50))) // 1000) - shift
        rows = self.candles(query["instId"], timeframe, start, end)[-min(int(query["limit"]), self.page) :]
        shown = [self._row(row, shift, row[0] + shift + step <= now) for row in reversed(rows)]
        return "candles", {
            "code": "0",
            "msg": "",
            "data": [row for row in shown if row[8] == "1" or "history" not in path],
        }

    def _row(self, row: Candle, shift: int, ended: bool) -> list[str]:
        at, *values = row
        return [str((at + shift) * 1000), *map(str, values), "0", "0", "1" if ended else "0"]

    def _market(self, pair: str) -> dict[str, Any]:
        base, quote = pair.split("-")
        return {
            "instId": pair,
            "instType": "SPOT",
            "baseCcy": base,
            "quoteCcy": quote,
            "state": "live",
            "lotSz": "0.00000001",
            "tickSz": "0.1",
        }


class Bitstamp(ExchangeServer):
    """1,000 candles a request between start and end, oldest first; 400 requests a second."""

    exchange = "bitstamp"
    page = 1000
    pairs: ClassVar = {symbol.replace("/", "").lower(): parse(symbol) for symbol in USD}
    rate = Rate(400, 1, {})
    _steps: ClassVar = {str(each.seconds): each for each in SHORT.values()}

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        assert host == "www.bitstamp.net"
        if path == "/api/v2/markets/":
            return "markets", [self._market(pair) for pair in self.pairs]
        pair = path.removeprefix("/api/v2/ohlc/").rstrip("/")
        if pair not in self.pairs:
            return "unknown", None
        rows = self.candles(pair, self._steps[query["step"]], int(query["start"]), int(query["end"]) + 1)
        names = ("timestamp", "open", "high", "low", "close", "volume")
        shown = [dict(zip(names, map(str, row), strict=True)) for row in rows[: int(query["limit"])]]
        return "candles", {"data": {"pair": self.pairs[pair].symbol, "ohlc": shown}}

    def _market(self, pair: str) -> dict[str, Any]:
        base, quote = self.pairs[pair].symbol.split("/")
        return {
            "market_symbol": pair,
            "base_currency": base,
            "counter_currency": quote,
            "market_type": "SPOT",
            "trading": "Enabled",
            "description": f"{base} / {quote}",
            "minimum_order_value": "10",
            "base_decimals": 8,
            "counter_decimals": 2,
        }


class Bybit(ExchangeServer):
    """1,000 candles a request, newest first; 600 requests in 5 seconds."""

    exchange = "bybit"
    page = 1000
    pairs: ClassVar = {symbol.replace("/", ""): parse(symbol) for symbol in USDT}
    rate = Rate(600, 5, {})
    _names: ClassVar = {str(each.seconds // 60): each for each in SHORT.values()} | {"D": Timeframe.D1}

    def respond(self, host: str, path: str, query: dict[str, str]) -> tuple[str, Any]:
        assert host == "api.bybit.com"
        if path == "/v5/market/instruments-info":
            spot = query["category"] == "spot"
            markets = [self._market(pair) for pair in self.pairs] if spot else []
            return "markets" if spot else "derivatives", {"retCode": 0, "retMsg": "OK", "result": {"list": markets}}
        if path != "/v5/market/kline":
            return "unknown", None
        rows = self.candles(query["symbol"], self._names[query["interval"]], int(query["start"]) // 1000)
        chosen = rows[: min(int(query["limit"]), self.page)]
        shown = [[str(at * 1000), *map(str, values), "0"] for at, *values in reversed(chosen)]
        return "candles", {"retCode": 0, "retMsg": "OK", "result": {"symbol": query["symbol"], "list": shown}}

    def _market(self, pair: str) -> dict[str, Any]:
        base, quote = self.pairs[pair].symbol.split("/")
        return {
            "symbol": pair,
            "baseCoin": base,
            "quoteCoin": quote,
            "status": "Trading",
            "lotSizeFilter": {"basePrecision": "0.000001"},
            "priceFilter": {"tickSize": "0.01"},
        }


ALL: tuple[type[ExchangeServer], ...] = (Binance, Coinbase, Kraken, Okx, Bitstamp, Bybit)
