"""TradeStream's contract, row by row: a file for each of its six servers, then what all of them share.

The rows of all files are in the order of the page, whichever file is imported first.
"""

from importlib import import_module

import pytest

pytest.register_assert_rewrite(f"{__name__}.agent", f"{__name__}.schemas")

_FILES = (
    "strategy",
    "market_data",
    "portfolio",
    "backtest",
    "decisions",
    "strategy_db",
    "common_patterns",
    "connection_pools",
    "acceptance",
)

for _file in _FILES:
    import_module(f"{__name__}.test_{_file}")
