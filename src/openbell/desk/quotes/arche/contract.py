"""The names and limits of the quotes API, contract v1."""

from __future__ import annotations

from openbell.market.timeframes import Timeframe

API_VERSION = "v2"
CONTRACT_VERSION = "v1"
LIVE = f"/{API_VERSION}/quotes"
HISTORICAL = f"/{API_VERSION}/quotes/historical"
HEALTH = "/healthz"

MOST_TICKERS = 50
MOST_DAYS = 365
"""Days of a range, its first and its last included."""
LARGEST_PAGE = 200
DEFAULT_PAGE = 50
LAST_PAGE = 10**18 - 1
INTERVALS = {"1d": Timeframe.D1, "1m": Timeframe.M1}

TICKER = r"[A-Za-z0-9][A-Za-z0-9./:_-]{0,63}"
"""The form of a ticker. A text of this form that no instrument has is unknown; any other text is a mistake."""
