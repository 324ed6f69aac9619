"""Default watchlists that several feeds declare."""

from __future__ import annotations

US_STOCKS = tuple(
    "SPY QQQ IWM AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV ACHR BITQ UEC".split()
)
"""US stocks and funds of the chart-signals contract."""
STOCKS_AND_CRYPTO = (*US_STOCKS, "BTC/USD", "ETH/USD")
"""The watchlist of the chart-signals contract, for feeds that have both."""
