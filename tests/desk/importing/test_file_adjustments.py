"""What the prices of a file are adjusted for: the format declares it, the user can state it, and only stocks have it."""

from __future__ import annotations

import pytest

from openbell.market.provenance import Adjustment
from tests.desk.importing.files import Files, joined, rows_of, table

DAYS = ["2024-05-06", "2024-05-07", "2024-05-08"]
OPENS = ["2024-05-06T13:30:00Z", "2024-05-07T13:30:00Z", "2024-05-08T13:30:00Z"]
MINUTES = ["2024-05-06 09:30:00", "2024-05-06 09:31:00", "2024-05-06 09:32:00"]
PRICES = (10.0, 12.0, 9.0, 11.0)
PLAIN = "timestamp,open,high,low,close,volume"


def rows(times: list[str], *rest: object) -> list[tuple[object, ...]]:
    return [(time, *PRICES, *rest) for time in times]


FILES = {
    "plain": ("plain", "raw", table(PLAIN, rows(OPENS, 100))),
    "tradingview": ("tradingview", "split", table("time,open,high,low,close,Volume", rows(OPENS, 100))),
    "yahoo": ("yahoo", "split", table("Date,Open,High,Low,Close,Adj Close,Volume", rows(DAYS, 5.5, 100))),
    "yfinance adjusts days for dividends unless it writes an adjusted close": (
        "yahoo",
        "all",
        table("Date,Open,High,Low,Close,Volume,Dividends,Stock Splits", rows(DAYS, 100, 0, 0)),
    ),
    "yahoo has no dividends in minutes": (
        "yahoo",
        "split",
        table("Datetime,Open,High,Low,Close,Volume,Dividends,Stock Splits", rows(MINUTES, 100, 0, 0)),
    ),
    "interactive brokers": (
        "interactivebrokers",
        "split",
        table("date,open,high,low,close,volume,average,barCount", rows(DAYS, 100, 10, 5)),
    ),
    "alpha vantage's days": ("alphavantage", "raw", table(PLAIN, rows(DAYS[::-1], 100))),
    "alpha vantage's minutes": ("alphavantage", "all", table(PLAIN, rows(MINUTES[::-1], 100))),
}


@pytest.mark.parametrize(("form", "adjustment", "content"), FILES.values(), ids=FILES)
def test_a_format_declares_what_its_prices_are_adjusted_for(
    files: Files, form: str, adjustment: str, content: str
) -> None:
    found = files.one(content)

    assert (found.format, found.adjustment) == (form, adjustment)
    for stated in Adjustment:
        other = files.one(content, adjustment=stated)
        assert (other.adjustment, rows_of(other.bars)) == (stated, rows_of(found.bars))


def test_coins_and_currencies_are_raw_in_every_format(files: Files) -> None:
    for symbol, clock in (("BTC/USD", "00:00:00Z"), ("EUR/USD", "17:00:00-04:00")):
        times = [f"{day}T{clock}" for day in DAYS]
        content = joined("time,open,high,low,close,Volume", *(joined(*row) for row in rows(times, 100)), by="\n")
        found = files.one(content, symbol=symbol)
        assert (found.format, found.adjustment) == ("tradingview", "raw")
