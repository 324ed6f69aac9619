"""Bars of any timeframe, written in any way that is not ambiguous, are read as the same bars."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.importing import ImportOptions, read
from openbell.desk.importing.keys import zone_of
from openbell.market import bars as barlib
from openbell.market.bars import Bars, bucket_bounds
from openbell.market.instruments import parse
from openbell.market.timeframes import SHORT
from tests.desk.importing.files import NOW, at

INSTRUMENTS = [parse(symbol) for symbol in ("AAPL", "BTC/USD", "EUR/USD")]
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Sydney"]
BEGIN = at("2025-05-05")
NAMES = {
    "time": ["timestamp", "time", "Date", "DATETIME", "", " Open Time"],
    "open": ["open", "Open", "OPEN", "<OPEN>"],
    "high": ["high", "High", " HIGH"],
    "low": ["low", "Low", "LOW "],
    "close": ["close", "Close", "CLOSE"],
    "volume": ["volume", "Volume", "Vol", "<VOL>"],
}
DATE_FORMS = ["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y%m%d", "%d-%b-%Y"]
CLOCK_FORMS = ["%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p"]


@st.composite
def some_bars(draw: st.DrawFn) -> Bars:
    """Some tens of bars with gaps, of one instrument and timeframe."""
    instrument = draw(st.sampled_from(INSTRUMENTS))
    timeframe = draw(st.sampled_from(list(SHORT.values())))
    count = draw(st.integers(30, 60)) if timeframe.seconds < 43200 else 18
    step = timeframe.seconds if timeframe.intraday else 86400
    span = np.arange(BEGIN, BEGIN + (count + 14) * max(step, timeframe.seconds), min(step, 1800))
    starts = np.unique(bucket_bounds(instrument, timeframe, span)[0])
    starts = starts[starts >= 0][:count]
    if timeframe.intraday:
        seed = draw(st.integers(0, 99))
        kept = np.random.default_rng(seed).random(len(starts)) < 0.8
        kept[:4] = True
        starts = starts[kept]
    values = draw(st.lists(st.integers(1, 10**6), min_size=len(starts) * 5, max_size=len(starts) * 5))
    prices = np.sort(np.array(values[: len(starts) * 4]).reshape(4, -1) / 100, axis=0)
    low, a, b, high = prices
    return barlib.make(instrument, timeframe, starts, a, high, low, b, values[len(starts) * 4 :])


def written_times(draw: st.DrawFn, bars: Bars) -> tuple[list[str], str | None]:
    """The times in one of many ways, and the zone to name."""
    if not bars.timeframe.intraday:
        form = draw(st.sampled_from(DATE_FORMS))
        later = 3 * 3600 if bars.instrument.symbol == "EUR/USD" else 0  # a day of a currency begins on the date before
        return [datetime.fromtimestamp(t + later, UTC).strftime(form) for t in bars.time.tolist()], None
    if draw(st.booleans()):
        unit = draw(st.sampled_from([1, 10**3, 10**6, 10**9]))
        return [str(t * unit) for t in bars.time.tolist()], None
    zone = draw(st.sampled_from(ZONES))
    moments = [datetime.fromtimestamp(t, ZoneInfo(zone)) for t in bars.time.tolist()]
    if draw(st.booleans()):
        return [moment.isoformat(sep=draw(st.sampled_from("T "))) for moment in moments], None
    form = f"{draw(st.sampled_from(DATE_FORMS))} {draw(st.sampled_from(CLOCK_FORMS))}"
    days = {moment.day for moment in moments}
    if form[:8] in {"%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"} and max(days) <= 12:
        form = "%Y-%m-%d %H:%M"
    return [moment.strftime(form) for moment in moments], zone


@st.composite
def files(draw: st.DrawFn) -> tuple[Bars, bytes, str | None]:
    bars = draw(some_bars())
    times, zone = written_times(draw, bars)
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    decimal = "." if delimiter == "," else draw(st.sampled_from([".", ","]))
    header = [draw(st.sampled_from(names)) for names in NAMES.values()]
    columns = [times, *([repr(v).replace(".", decimal) for v in column.tolist()] for column in bars.columns()[1:])]
    order = list(draw(st.permutations(range(6))))
    if header[0] == "":  # an index without a name is the first column
        order = [0, *(at for at in order if at)]
    if draw(st.booleans()):
        header.append("Comment")
        columns.append(["x"] * len(bars))
        order.append(6)
    rows = [[column[row] for column in columns] for row in range(len(bars))]
    rows += draw(st.lists(st.sampled_from(rows), max_size=3))
    if header[0].strip().lower() != "timestamp":  # newest first would be Alpha Vantage's
        rows = draw(st.sampled_from([rows, rows[::-1], draw(st.permutations(rows))]))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = end.join(delimiter.join(cells[at] for at in order) for cells in [header, *rows]) + end
    content = text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))
    return bars, gzip.compress(content) if draw(st.booleans()) else content, zone


@settings(max_examples=250, deadline=None)
@given(drawn=files())
def test_bars_written_in_any_way_are_read_as_the_same_bars(folder: Path, drawn: tuple[Bars, bytes, str | None]) -> None:
    bars, content, zone = drawn
    path = folder / "bars.csv"
    path.write_bytes(content)

    (found,) = read(path, ImportOptions(bars.instrument, zone=zone_of(zone) if zone else None), NOW)

    assert found.bars.same_as(bars)
