"""Every format, from small files of the shape that its source writes."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from openbell.desk.importing.formats import all_formats
from openbell.market.errors import BadBars, InvalidParameter
from openbell.market.timeframes import Timeframe
from tests.desk.importing.files import Files, at, lines, rows_of, times_of

DAYS = ["2024-05-06", "2024-05-07", "2024-05-08"]
ROWS = [(10.0, 12.0, 9.0, 11.0, 100.0), (11.0, 13.5, 10.5, 12.0, 200.0), (12.0, 12.25, 11.0, 11.5, 300.0)]
"""Open, high, low, close and volume of three bars."""
OPENS = [at(f"{day}T13:30:00") for day in DAYS]
"""The sessions of the three days."""
MIDNIGHTS = [at(day) for day in DAYS]
EVENINGS = [time - 3 * 3600 for time in MIDNIGHTS]
"""17:00 in New York of the days before."""
MINUTES = [at(f"2024-05-06T13:3{n}:00") for n in range(3)]


def expected(times: list[int]) -> list[tuple[float, ...]]:
    return [(time, *row) for time, row in zip(times, ROWS, strict=True)]


def csv(header: str | None, *rows: object, by: str = ",") -> str:
    body = [by.join(map(str, row)) for row in rows]  # type: ignore[call-overload]
    return lines(*([header] if header else []), *body)


# Yahoo and yfinance

YAHOO = csv(
    "Date,Open,High,Low,Close,Adj Close,Volume",
    *((day, o, h, low, c, c / 2, int(v)) for day, (o, h, low, c, v) in zip(DAYS, ROWS, strict=True)),
)


def test_yahoo_is_adjusted_for_splits_and_on_request_for_dividends(files: Files) -> None:
    found, adjusted = files.one(YAHOO), files.one(YAHOO, adjusted=True)

    assert (found.format, found.adjustment, found.symbol, found.zone) == ("yahoo", "split", None, "dates")
    assert found.bars.timeframe is Timeframe.D1
    assert rows_of(found.bars) == expected(OPENS)
    assert adjusted.adjustment == "all"
    assert rows_of(adjusted.bars) == [
        (time, o / 2, h / 2, low / 2, c / 2, v) for time, (o, h, low, c, v) in zip(OPENS, ROWS, strict=True)
    ]


def test_an_adjusted_close_stays_within_high_and_low_whatever_is_rounded(files: Files) -> None:
    chance = np.random.default_rng(1)
    days = [f"2024-{month:02}-{day:02}" for month in range(1, 9) for day in range(1, 28)]
    prices = [(day, *chance.uniform(1, 100, 2).tolist()) for day in days]
    assert any(close * (adjusted / close) != adjusted for _, close, adjusted in prices)
    content = csv(
        "Date,Open,High,Low,Close,Adj Close,Volume", *((day, c, c, c, c, adjusted, 1) for day, c, adjusted in prices)
    )

    found = files.one(content, symbol="BTC/USD", adjusted=True)

    assert found.bars.close.tolist() == [adjusted for _, _, adjusted in prices]


def test_a_missing_adjusted_close_matters_only_if_it_is_used(files: Files) -> None:
    content = YAHOO.replace(",5.5,", ",,")

    assert rows_of(files.one(content).bars) == expected(OPENS)
    with pytest.raises(BadBars, match="line 2: missing value in adjusted close"):
        files.one(content, adjusted=True)


def test_yahoo_s_rows_of_null_and_its_actions_are_left_out(files: Files) -> None:
    nulls = files.one(YAHOO + "2024-05-09,null,null,null,null,null,null\n")
    history = files.one(
        csv(
            "Date,Open,High,Low,Close,Volume,Dividends,Stock Splits",
            *((f"{day} 00:00:00-04:00", *row, 0.0, 0.0) for day, row in zip(DAYS, ROWS, strict=True)),
        )
    )

    assert nulls.notes == ("1 row has no prices and was left out",)
    assert rows_of(history.bars) == expected(OPENS)
    assert (history.format, history.zone) == ("yahoo", "in the file")
    assert history.notes == ("columns that were not used: 'Dividends', 'Stock Splits'",)


def test_yahoo_names_currencies_in_its_own_way(files: Files) -> None:
    content = csv(
        "Ticker,Date,Open,High,Low,Close,Adj Close,Volume",
        *(("EURUSD=X", day, *row[:4], row[3], 0) for day, row in zip(DAYS, ROWS, strict=True)),
    )

    found = files.one(content, symbol=None)

    assert str(found.bars.instrument) == "EUR/USD"
    assert found.bars.time.tolist() == EVENINGS


def frame(*tickers: str, adjusted: bool = False) -> pd.DataFrame:
    """A table as yfinance 0.2 and 1 make it."""
    names = [*(["Adj Close"] if adjusted else []), "Close", "High", "Low", "Open", "Volume"]
    order = {"Open": 0, "High": 1, "Low": 2, "Close": 3, "Adj Close": 3, "Volume": 4}
    columns = pd.MultiIndex.from_product([names, tickers], names=["Price", "Ticker"])
    cells = [[row[order[name]] for name in names for _ in tickers] for row in ROWS]
    return pd.DataFrame(cells, index=pd.DatetimeIndex(DAYS, name="Date"), columns=columns)


def test_yfinance_of_one_ticker_with_three_header_lines(files: Files) -> None:
    found = files.one(frame("AAPL").to_csv(), symbol=None)

    assert (found.format, found.symbol, found.adjustment) == ("yfinance", "AAPL", "all")
    assert rows_of(found.bars) == expected(OPENS)
    assert found.notes[0].startswith("no Adj Close: yfinance has adjusted the daily prices of stocks")
    assert files.one(frame("AAPL").to_csv(), symbol=None, adjusted=True).adjustment == "all"
    assert files.one(frame("EURUSD=X").to_csv(), symbol=None).notes == (), "currencies are not adjusted"


@pytest.mark.parametrize("swap", [False, True], ids=["by price", "by ticker"])
def test_yfinance_of_many_tickers_also_where_some_did_not_trade(files: Files, swap: bool) -> None:
    table = frame("AAPL", "BTC-USD", adjusted=True)
    table.loc[pd.Timestamp("2024-05-11")] = [None if ticker == "AAPL" else 5.0 for _, ticker in table.columns]
    table = table.swaplevel(axis=1).sort_index(axis=1) if swap else table

    stock, coin = sorted(files.series(table.to_csv(), symbol=None), key=lambda each: str(each.bars.instrument))

    assert (str(stock.bars.instrument), str(coin.bars.instrument)) == ("AAPL", "BTC/USD")
    assert (stock.adjustment, coin.adjustment) == ("split", "raw"), "a coin has no splits"
    assert rows_of(stock.bars) == expected(OPENS)
    assert rows_of(coin.bars) == [*expected(MIDNIGHTS), (at("2024-05-11"), 5.0, 5.0, 5.0, 5.0, 5.0)]
    assert stock.notes == ("1 row has no prices and was left out",)
    assert coin.notes == ()


def test_a_bad_cell_of_many_tickers_names_its_ticker(files: Files) -> None:
    content = frame("AAPL", "MSFT").to_csv()  # Close, Close, High, High, Low, Low, Open, Open, Volume, Volume
    last = content.splitlines()[-1]

    for cells, said in (
        ("11.5,11.5,12.25,12.25,11.0,99.0", "line 6: MSFT: high below low"),
        ("11.5,11.5,12.25,12.25,11.0,", "line 6: missing value in low of MSFT"),
        ("11.5,x,12.25,12.25,11.0,11.0", "line 6: unreadable number in close of MSFT: 'x'"),
    ):
        rest = ",".join(last.split(",")[7:])
        with pytest.raises(BadBars, match=said):
            files.series(content.replace(last, f"2024-05-08,{cells},{rest}"), symbol=None)


def test_yfinance_in_parquet_has_two_levels_of_columns(files: Files) -> None:
    path = files.folder / "two.parquet"
    frame("AAPL", "MSFT").to_parquet(path)

    found = files.series(path.read_bytes(), "two.parquet", symbol=None)

    assert [(each.format, str(each.bars.instrument)) for each in found] == [("yfinance", "AAPL"), ("yfinance", "MSFT")]
    assert rows_of(found[1].bars) == expected(OPENS)


# pandas

TABLE = pd.DataFrame(ROWS, columns=["Open", "High", "Low", "Close", "Volume"], index=pd.DatetimeIndex(DAYS))


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_pandas_csv_with_an_index_without_a_name(files: Files, case: type[str]) -> None:
    found = files.one(TABLE.rename(columns=case).to_csv())

    assert found.format == "pandas"
    assert rows_of(found.bars) == expected(OPENS)


def test_pandas_csv_with_row_numbers_beside_the_times(files: Files) -> None:
    found = files.one(TABLE.rename_axis("Date").reset_index().to_csv())

    assert found.format == "plain"
    assert rows_of(found.bars) == expected(OPENS)
    assert found.notes == ()


@pytest.mark.parametrize("index", ["unnamed", "named", "column", "zone", "date32", "far zone"])
def test_parquet_with_and_without_an_index(files: Files, index: str) -> None:
    table = TABLE.copy()
    path = files.folder / "days.parquet"
    if index == "zone":
        table.index = table.index.tz_localize("America/New_York")
    if index == "far zone":
        table.index = table.index.tz_localize("Europe/Berlin")  # midnight there is the day before in UTC
    if index == "named":
        table = table.rename_axis("Date")
    if index in {"column", "date32"}:
        table = table.rename_axis("date").reset_index()
    if index == "date32":
        table["date"] = table["date"].dt.date
    table.to_parquet(path)

    found = files.one(path.read_bytes(), "days.parquet")

    assert rows_of(found.bars) == expected(OPENS)
    assert found.format == ("pandas" if index in {"unnamed", "zone", "far zone"} else "plain")


def test_parquet_with_texts_as_times_and_a_symbol_in_each_row(files: Files) -> None:
    table = pa.table(
        {
            "symbol": ["AAPL", "MSFT"] * 3,
            "date": [day for day in DAYS for _ in range(2)],
            **{
                name: [row[n] for row in ROWS for _ in range(2)]
                for n, name in enumerate(["open", "high", "low", "close", "volume"])
            },
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink)

    found = files.series(sink.getvalue(), "x.parquet", symbol=None)

    assert [str(each.bars.instrument) for each in found] == ["AAPL", "MSFT"]
    assert all(rows_of(each.bars) == expected(OPENS) for each in found)


# Stooq


def test_stooq_names_symbol_and_timeframe_in_the_file_s_name(files: Files) -> None:
    content = csv("Date,Open,High,Low,Close,Volume", *((day, *row) for day, row in zip(DAYS, ROWS, strict=True)))
    stock = files.one(content, "aapl_us_d.csv", symbol=None)
    currencies = files.one(
        csv("Date,Open,High,Low,Close", *((day, *row[:4]) for day, row in zip(DAYS, ROWS, strict=True))),
        "eurusd_d.csv",
        symbol=None,
    )

    assert (stock.format, str(stock.bars.instrument)) == ("stooq", "AAPL")
    assert rows_of(stock.bars) == expected(OPENS)
    assert str(currencies.bars.instrument) == "EUR/USD"
    assert currencies.bars.volume.tolist() == [0, 0, 0]
    assert "no column of volume: it is 0" in currencies.notes
    with pytest.raises(InvalidParameter, match="missing column volume"):
        files.one(csv("Date,Open,High,Low,Close", *((day, *row[:4]) for day, row in zip(DAYS, ROWS, strict=True))))


def test_stooq_s_bulk_files_have_tickers_and_periods(files: Files) -> None:
    days = [("AAPL.US", "D", day.replace("-", ""), "000000", *row, 0) for day, row in zip(DAYS, ROWS, strict=True)]
    fives = [("AAPL.US", "5", "20240506", f"13{n}00", *row, 0) for n, row in zip((30, 35, 40), ROWS, strict=True)]
    hours = [("BRK-B.US", "60", "20240506", f"{n}0000", *row, 0) for n, row in zip((14, 15, 16), ROWS, strict=True)]
    header = "<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>"

    found = files.series(csv(header, *days, *fives, *hours), "data.txt", symbol=None)

    assert [(str(each.bars.instrument), each.bars.timeframe) for each in found] == [
        ("AAPL", Timeframe.D1),
        ("AAPL", Timeframe.M5),
        ("BRK.B", Timeframe.H1),
    ]
    assert rows_of(found[0].bars) == expected(OPENS)
    assert times_of(found[1]) == ["2024-05-06 13:30", "2024-05-06 13:35", "2024-05-06 13:40"]
    with pytest.raises(InvalidParameter, match="holds bars of the timeframe 'M'"):
        files.series(csv(header, *days).replace(",D,", ",M,"), symbol=None)


# TradingView


def test_tradingview_with_epochs_and_studies(files: Files) -> None:
    rows = [(time, *row[:4], "NaN", 51.5, row[4]) for time, row in zip(MINUTES, ROWS, strict=True)]
    content = csv("time,open,high,low,close,VWAP,RSI,Volume", *rows)

    found = files.one(content, "NASDAQ_AAPL, 1.csv", symbol=None)

    assert (found.format, found.symbol, str(found.bars.instrument)) == ("tradingview", "NASDAQ:AAPL", "AAPL")
    assert rows_of(found.bars) == expected(MINUTES)
    assert found.notes == ("columns that were not used: 'VWAP', 'RSI'",)
    assert files.one(content, "mine.csv").format == "tradingview"
    with pytest.raises(InvalidParameter, match="does not name its symbol: add --symbol"):
        files.one(content, "mine.csv", symbol=None)


def test_tradingview_with_an_offset_and_daily_bars(files: Files) -> None:
    stock = csv(
        "time,open,high,low,close,Volume",
        *((f"{day}T09:30:00-04:00", *row) for day, row in zip(DAYS, ROWS, strict=True)),
    )
    coin = csv(
        "time,open,high,low,close,Volume",
        *((f"{day}T02:00:00+02:00", *row) for day, row in zip(DAYS, ROWS, strict=True)),
    )

    assert rows_of(files.one(stock, "NASDAQ_AAPL, 1D.csv", symbol=None).bars) == expected(OPENS)
    assert rows_of(files.one(coin, "BINANCE_BTCUSDT, 1D_a1b2c.csv", symbol="BTC/USDT").bars) == expected(MIDNIGHTS)


# Exchanges


def klines(unit: int) -> list[tuple[object, ...]]:
    return [
        (time * unit, *row[:5], (time + 60) * unit - 1, 1000.5, 7, 50.0, 500.0, 0)
        for time, row in zip(MINUTES, ROWS, strict=True)
    ]


@pytest.mark.parametrize("unit", [10**3, 10**6], ids=["ms", "µs"])
@pytest.mark.parametrize(
    "header",
    [
        None,
        "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore",
    ],
)
def test_binance_klines(files: Files, unit: int, header: str | None) -> None:
    content = csv(header, *klines(unit))

    named = files.one(content, "BTCUSDT-1m-2024-05.csv", symbol=None)
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("BTCUSDT-1m-2024-05.csv", content)
    packed = files.one(zipped.getvalue(), "BTCUSDT-1m-2024-05.zip", symbol="BTC/USDT")

    assert (named.format, str(named.bars.instrument)) == ("binance", "BTC/USDT")
    assert rows_of(named.bars) == rows_of(packed.bars) == expected(MINUTES)
    assert packed.file.endswith("BTCUSDT-1m-2024-05.zip: BTCUSDT-1m-2024-05.csv")
    with pytest.raises(InvalidParameter, match=r"holds bars of BTC/USDT \('BTCUSDT'\), not of BTC/USD"):
        files.one(content, "BTCUSDT-1m-2024-05.csv", symbol="BTC/USD")


def test_kraken_s_files_are_named_by_pair_and_minutes(files: Files) -> None:
    rows = [(time, *row, 7) for time, row in zip(MIDNIGHTS, ROWS, strict=True)]
    sparse = [
        (time, *row, 7) for time, row in zip([MINUTES[0], MINUTES[0] + 300, MINUTES[0] + 1200], ROWS, strict=True)
    ]

    days = files.one(csv(None, *rows), "XBTUSD_1440.csv", symbol=None)
    minutes = files.one(csv(None, *sparse), "XDGEUR_1.csv", symbol="DOGE/EUR")

    assert (days.format, days.symbol, str(days.bars.instrument)) == ("kraken", "XBTUSD", "BTC/USD")
    assert rows_of(days.bars) == expected(MIDNIGHTS)
    assert minutes.bars.timeframe is Timeframe.M1, "the name of the file settles what the spacing does not"
    assert files.one(csv(None, *rows), "mine.csv", symbol="BTC/USD").bars.timeframe is Timeframe.D1
    with pytest.raises(InvalidParameter, match="its name says 1m, but its rows are 1d bars: --timeframe settles which"):
        files.one(csv(None, *rows), "XBTUSD_1.csv", symbol=None)
    assert files.one(csv(None, *rows), "XBTUSD_1.csv", symbol=None, timeframe="1d").bars.timeframe is Timeframe.D1
    with pytest.raises(InvalidParameter, match="timeframe '21600'"):
        files.one(csv(None, *rows), "XBTUSD_21600.csv", symbol=None)


# Data vendors


def test_alpha_vantage_is_in_new_york_and_newest_first(files: Files) -> None:
    rows = [(f"2024-05-06 09:3{n}:00", *row) for n, row in enumerate(ROWS)]
    header = "timestamp,open,high,low,close,volume"

    found = files.one(csv(header, *rows[::-1]))
    oldest_first = files.one(csv(header, *rows))

    assert (found.format, found.zone) == ("alphavantage", "America/New_York")
    assert "the times were taken as New York's" in found.notes[0]
    assert rows_of(found.bars) == expected(MINUTES)
    assert (oldest_first.format, oldest_first.zone) == ("plain", "UTC")
    assert files.one(csv(header, *rows[::-1]), tz="UTC").bars.time.tolist() == [time - 4 * 3600 for time in MINUTES]


def test_alpha_vantage_s_adjusted_days(files: Files) -> None:
    header = "timestamp,open,high,low,close,adjusted_close,volume,dividend_amount,split_coefficient"
    rows = [(day, *row[:4], row[3] / 2, row[4], 0, 1) for day, row in zip(DAYS, ROWS, strict=True)]

    assert files.one(csv(header, *rows[::-1]), adjusted=True).bars.close.tolist() == [5.5, 6.0, 5.75]


def test_polygon_s_flat_files_have_all_tickers_in_nanoseconds(files: Files) -> None:
    header = "ticker,volume,open,close,high,low,window_start,transactions"
    rows = [
        (ticker, int(v), o, c, h, low, time * 10**9, 3)
        for ticker in ("AAPL", "ABRpD", "BRK.B", "ZZZZZZZZZZ1")
        for time, (o, h, low, c, v) in zip(MINUTES, ROWS, strict=True)
    ]
    packed = gzip.compress(csv(header, *rows).encode())

    found = files.series(packed, "2024-05-06.csv.gz", symbol=None)
    (one,) = files.series(packed, "2024-05-06.csv.gz", symbol="BRK.B")

    assert [(each.format, str(each.bars.instrument)) for each in found] == [("polygon", "AAPL"), ("polygon", "BRK.B")]
    assert all(rows_of(each.bars) == expected(MINUTES) for each in [*found, one])
    assert "symbols that cannot be read were left out: 'ABRpD', 'ZZZZZZZZZZ1'" in found[0].notes
    with pytest.raises(InvalidParameter, match=r"holds bars of AAPL, BRK\.B, but none of MSFT"):
        files.series(packed, symbol="MSFT")


def test_a_ticker_with_few_trades_has_the_timeframe_of_the_file(files: Files) -> None:
    header = "ticker,volume,open,close,high,low,window_start,transactions"
    rows = [("AAPL", 1, 1, 1, 1, 1, (MINUTES[0] + 60 * n) * 10**9, 3) for n in range(30)]
    rows += [("MSFT", 1, 1, 1, 1, 1, (MINUTES[0] + 3600 * n) * 10**9, 3) for n in range(3)]

    assert {each.bars.timeframe for each in files.series(csv(header, *rows), symbol=None)} == {Timeframe.M1}


def test_interactive_brokers(files: Files) -> None:
    header = "date,open,high,low,close,volume,average,barCount"
    for times, keys in (
        (DAYS, OPENS),
        ([day.replace("-", "") for day in DAYS], OPENS),
        ([f"2024-05-06 09:3{n}:00-04:00" for n in range(3)], MINUTES),
        ([f"20240506  13:3{n}:00" for n in range(3)], MINUTES),
        ([f"20240506 09:3{n}:00 US/Eastern" for n in range(3)], MINUTES),
        ([f"20240506 08:3{n}:00 America/Chicago" for n in range(3)], MINUTES),
    ):
        rows = [(time, *row, 10.5, 7) for time, row in zip(times, ROWS, strict=True)]
        found = files.one(csv(header, *rows))

        assert found.format == "interactivebrokers"
        assert rows_of(found.bars) == expected(keys)
        assert "columns that were not used: 'average', 'barCount'" in found.notes


# MetaTrader

MT5 = "<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-8-sig"])
def test_metatrader_5(files: Files, encoding: str) -> None:
    rows = [("2024.05.06", f"13:3{n}:00", *row[:4], int(row[4]), 0, 2) for n, row in enumerate(ROWS)]
    broker = [("2024.05.06", f"16:3{n}:00", *row[:4], int(row[4]), 0, 2) for n, row in enumerate(ROWS)]

    found = files.one(csv(MT5, *rows, by="\t").encode(encoding), symbol="EUR/USD")
    in_zone = files.one(csv(MT5, *broker, by="\t").encode(encoding), symbol="EUR/USD", tz="Europe/Athens")

    assert found.format == "metatrader5"
    assert rows_of(found.bars) == rows_of(in_zone.bars) == expected(MINUTES)
    assert any(
        note.startswith("MetaTrader writes the time of the broker's server; --tz names its") for note in found.notes
    )
    assert "volume is <TICKVOL>" in found.notes


def test_metatrader_5_days_and_real_volume(files: Files) -> None:
    header = MT5.replace("<TIME>\t", "")
    rows = [(day.replace("-", "."), *row[:4], 1, int(row[4]), 2) for day, row in zip(DAYS, ROWS, strict=True)]

    found = files.one(csv(header, *rows, by="\t"))

    assert rows_of(found.bars) == expected(OPENS)
    assert "volume is <VOL>" in found.notes


def test_metatrader_4(files: Files) -> None:
    rows = [("2024.05.06", f"13:3{n}", *row) for n, row in enumerate(ROWS)]
    days = [(day.replace("-", "."), "00:00", *row) for day, row in zip(DAYS, ROWS, strict=True)]

    found, daily = files.one(csv(None, *rows), symbol="EUR/USD"), files.one(csv(None, *days), symbol="EUR/USD")

    assert (found.format, daily.format) == ("metatrader4", "metatrader4")
    assert rows_of(found.bars) == expected(MINUTES)
    assert rows_of(daily.bars) == expected(EVENINGS)


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        ("EURUSD_H1_202405060000_202405062300.csv", "EUR/USD"),
        ("GBPJPYm60.csv", "GBP/JPY"),
        ("EURUSD.csv", "EUR/USD"),
        ("GER40_H1_202405060000.csv", None),
        ("EURUSDX_H1.csv", None),
        ("BARSOF_H1.csv", None),
    ],
)
def test_metatrader_names_currencies_in_the_file_s_name(files: Files, name: str, symbol: str | None) -> None:
    four = csv(None, *(("2024.05.06", f"13:3{n}", *row) for n, row in enumerate(ROWS)))
    five = csv(MT5, *(("2024.05.06", f"13:3{n}:00", *row[:4], 1, 0, 2) for n, row in enumerate(ROWS)), by="\t")

    for content in (four, five):
        if symbol is None:
            with pytest.raises(InvalidParameter, match="does not name its symbol"):
                files.one(content, name, symbol=None)
            assert str(files.one(content, name, symbol="EUR/USD").bars.instrument) == "EUR/USD"
        else:
            assert str(files.one(content, name, symbol=None).bars.instrument) == symbol


# Dukascopy and HistData


def test_dukascopy_s_times_are_utc_and_its_files_name_currencies(files: Files) -> None:
    rows = [(f"06.05.2024 13:3{n}:00.000", *row) for n, row in enumerate(ROWS)]
    zoned = [(f"06.05.2024 15:3{n}:00.000 GMT+0200", *row) for n, row in enumerate(ROWS)]
    name = "EURUSD_Candlestick_1_M_BID_06.05.2024-07.05.2024.csv"

    for header, some in (("Gmt time", rows), ("Local time", zoned)):
        found = files.one(csv(f"{header},Open,High,Low,Close,Volume", *some), name, symbol=None)

        assert (found.format, str(found.bars.instrument), found.notes) == ("dukascopy", "EUR/USD", ())
        assert rows_of(found.bars) == expected(MINUTES)
    assert files.one(csv("Gmt time,Open,High,Low,Close,Volume", *rows)).bars.instrument.symbol == "AAPL"


def test_histdata_has_winter_time_in_summer_too(files: Files) -> None:
    content = csv(None, *((f"20240506 083{n}00", *row) for n, row in enumerate(ROWS)), by=";")

    found = files.one(content, "DAT_ASCII_EURUSD_M1_2024.csv", symbol=None)
    in_utc = files.one(content.replace(" 08", " 13"), "DAT_ASCII_EURUSD_M1_2024.csv", symbol=None, tz="UTC")

    assert (found.format, found.zone, str(found.bars.instrument)) == ("histdata", "UTC-5", "EUR/USD")
    assert rows_of(found.bars) == rows_of(in_utc.bars) == expected(MINUTES)
    assert found.notes[0].startswith("HistData writes Eastern Standard Time")
    with pytest.raises(InvalidParameter, match="has no header"):
        files.one(content, "mine.csv")


def test_flat_bars_without_volume_are_left_out_at_weekends_of_forex(files: Files) -> None:
    """From Friday 5 January 2024, 20:00 UTC, to Sunday 7 January, 24:00: the market is closed from 22:00 to 22:00."""
    hours = [at("2024-01-05T20:00:00") + 3600 * n for n in range(52)]
    stamps = [f"{pd.Timestamp(time, unit='s'):%d.%m.%Y %H:%M:%S}.000" for time in hours]
    flat = [(stamp, 1.1, 1.1, 1.1, 1.1, 0.0) for stamp in stamps]
    flat[10] = (stamps[10], 1.1, 1.2, 1.1, 1.1, 0.0)
    flat[11] = (stamps[11], 1.1, 1.1, 1.1, 1.1, 0.5)
    kept = [*hours[:2], *hours[10:12], *hours[-2:]]
    note = "46 flat bars without volume while the market is closed: left out"

    for rows in (flat, flat[::-1]):
        content = csv("Gmt time,Open,High,Low,Close,Volume", *rows)
        found, coin = files.one(content, symbol="EUR/USD"), files.one(content, symbol="BTC/USD")

        assert found.bars.time.tolist() == kept
        assert note in found.notes
        assert coin.bars.time.tolist() == hours
        assert note not in coin.notes


def test_a_bar_that_reaches_from_the_weekend_into_the_week_is_kept(files: Files) -> None:
    rows = [(f"2024-01-0{day} {hour:02}:00", 1.1, 1.1, 1.1, 1.1, 0) for day in (5, 6, 7, 8) for hour in range(0, 24, 4)]

    found = files.one(csv("timestamp,open,high,low,close,volume", *rows), symbol="EUR/USD", timeframe="4h")

    weekend = [time for time in times_of(found) if "2024-01-06" < time < "2024-01-08"]
    assert weekend == ["2024-01-07 20:00"]
    assert len(found.bars) == 13


# freqtrade


def test_freqtrade_in_json_and_feather(files: Files) -> None:
    rows = [[time * 1000, *row] for time, row in zip(MINUTES, ROWS, strict=True)]
    table = pa.table(
        {
            "date": pa.array([time * 1000 for time in MINUTES]).cast(pa.timestamp("ms", "UTC")),
            **{name: [row[n] for row in ROWS] for n, name in enumerate(["open", "high", "low", "close", "volume"])},
        }
    )
    path = files.folder / "ETH_USDT-1m.feather"
    feather.write_feather(table, path)

    in_json = files.one(json.dumps(rows), "BTC_USDT-1m.json", symbol=None)
    in_feather = files.one(path.read_bytes(), path.name, symbol=None)

    assert (in_json.format, str(in_json.bars.instrument)) == ("freqtrade", "BTC/USDT")
    assert (in_feather.format, str(in_feather.bars.instrument)) == ("freqtrade", "ETH/USDT")
    assert rows_of(in_json.bars) == rows_of(in_feather.bars) == expected(MINUTES)


def test_json_objects_are_rows_too(files: Files) -> None:
    rows = [
        {"Date": f"{day}T00:00:00", "Open": o, "High": h, "Low": low, "Close": c, "Volume": v}
        for day, (o, h, low, c, v) in zip(DAYS, ROWS, strict=True)
    ]

    found = files.one(json.dumps(rows), "days.json")

    assert rows_of(found.bars) == expected(OPENS)
    rows[1]["High"] = None
    with pytest.raises(BadBars, match="row 2: missing value in high"):
        files.one(json.dumps(rows), "days.json")


# European exports


@pytest.mark.parametrize(
    "header",
    [
        "Datum;Erster;Hoch;Tief;Schlusskurs;Stuecke",
        "Datum;Eröffnung;Tageshoch;Tagestief;Schluss;Volumen",
        "date;ouv;haut;bas;clot;vol",
        "Fecha;Apertura;Máximo;Mínimo;Cierre;Volumen",
        "Date;Open;High;Low;Close;Volume",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_european_exports(files: Files, header: str, encoding: str) -> None:
    rows = [
        (".".join(reversed(day.split("-"))), *(str(value).replace(".", ",") for value in row))
        for day, row in zip(DAYS, ROWS, strict=True)
    ]

    found = files.one(csv(header, *rows, by=";").encode(encoding))

    assert found.format == ("plain" if header.startswith("Date;Open") else "european")
    assert rows_of(found.bars) == expected(OPENS)
    windows = not csv(header, *rows).isascii() and encoding == "cp1252"
    assert found.notes == (("not UTF-8: read as Windows text (cp1252)",) if windows else ())


def test_a_european_export_may_have_date_and_time_apart(files: Files) -> None:
    rows = [("06.05.2024", f"15:3{n}", *(str(value).replace(".", ",") for value in row)) for n, row in enumerate(ROWS)]

    found = files.one(csv("Datum;Zeit;Eröffnung;Hoch;Tief;Schluss;Volumen", *rows, by=";"), tz="Europe/Berlin")

    assert rows_of(found.bars) == expected(MINUTES)


# All of them


def test_every_format_is_tried_in_this_file_and_documented() -> None:
    text = Path(__file__).read_text()
    page = (Path(__file__).resolve().parents[3] / "docs" / "data.md").read_text()
    for each in all_formats():
        assert f'"{each.name}"' in text, each.name
        assert f"| {each.name} |" in page, each.name
        assert each.looks_like in page, each.name


def test_formats_have_one_name_each_and_those_that_accept_most_come_last() -> None:
    names = [each.name for each in all_formats()]

    assert len(set(names)) == len(names)
    assert names[-1] == "plain"
    assert all(re.fullmatch(r"[a-z0-9]+", name) for name in names)
