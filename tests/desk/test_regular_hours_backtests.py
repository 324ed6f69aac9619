"""Backtests on bars of the desk: indicators of regular hours are computed from minutes, and missing minutes are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.desk.bars.service import BarService
from openbell.desk.research.backtester import LocalBacktester
from openbell.desk.research.backtests import BacktestService
from openbell.feeds.none.feed import NoFeed
from openbell.feeds.port import Feed
from openbell.feeds.sim.feed import SimFeed
from openbell.indicators.regular_hours import regular_part_from_minutes
from openbell.market.clock import FixedClock
from openbell.market.errors import InsufficientData, NoData
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from openbell.strategies.compiled import compiled
from openbell.strategies.library import canonical
from tests.stores.samples import FILE, at, bars

AAPL = parse("AAPL")
VWAP = compiled(canonical()["VWAP_MEAN_REVERSION"])
START, NOW = at("2025-10-14"), at("2025-12-02T22:00:00Z")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ParquetStore]:
    with closing(ParquetStore(tmp_path)) as opened:
        yield opened


def run(store: ParquetStore, feed: Feed, timeframe: Timeframe, start: int = START) -> Backtest:
    service = BacktestService(BarService(store, feed, FixedClock(NOW)), LocalBacktester(60.0))
    return asyncio.run(service.run(VWAP, Series(AAPL, timeframe), Setup(), start))


@pytest.mark.parametrize("timeframe", [Timeframe.M30, Timeframe.H1, Timeframe.H4])
def test_vwap_of_bars_that_hold_more_than_regular_hours_is_computed_from_minutes(
    store: ParquetStore, timeframe: Timeframe
) -> None:
    feed = SimFeed(FixedClock(NOW))
    found = run(store, feed, timeframe)
    minutes = asyncio.run(feed.history(Series(AAPL), START, NOW))
    expected = backtest(VWAP, found.bars, Setup(), regular=regular_part_from_minutes(found.bars, minutes))
    assert list(found.run.trades) == list(expected.run.trades)
    assert len(found.run.trades) > 5
    within = timeframe is Timeframe.M30  # such bars lie inside or outside regular hours
    assert found.note == ("" if within else "VWAP Bands: computed from minutes of regular hours")


def test_a_range_that_begins_within_a_session_uses_the_whole_session(store: ParquetStore) -> None:
    feed = SimFeed(FixedClock(NOW))
    whole, late = (run(store, feed, Timeframe.H1, start) for start in (START, at("2025-10-15T17:00:00Z")))
    trades = {(int(late.bars.time[each.entry_index]), each.entry_price) for each in late.run.trades}
    assert trades <= {(int(whole.bars.time[each.entry_index]), each.entry_price) for each in whole.run.trades}
    assert len(trades) > 5


def store_bars(store: ParquetStore, timeframe: Timeframe, since: int) -> None:
    opens = buckets(AAPL, timeframe, since, NOW)[0]
    store.write([bars(Series(AAPL, timeframe), opens)], FILE, covers=Span(since, NOW))


def test_without_minutes_the_error_names_what_to_do(store: ParquetStore) -> None:
    store_bars(store, Timeframe.H1, START)
    with pytest.raises(
        NoData, match=r"VWAP Bands on 1h bars of AAPL is computed from minutes.*there are none.*30 minutes or less"
    ):
        run(store, NoFeed(), Timeframe.H1)


def test_bars_without_minutes_are_counted(store: ParquetStore) -> None:
    store_bars(store, Timeframe.H1, START)
    store_bars(store, Timeframe.M1, at("2025-12-01T14:00:00Z"))
    note = run(store, NoFeed(), Timeframe.H1, at("2025-11-28T00:00:00Z")).note
    # A half day from 9:30 to 13:00 without minutes: four hourly bars. The two days after it have seven each.
    assert note == (
        "VWAP Bands: computed from minutes of regular hours; 4 of 18 bars have no minutes, and conditions on it do not hold "
        "there"
    )


def test_a_range_without_bars_names_what_is_stored(store: ParquetStore) -> None:
    store_bars(store, Timeframe.H1, START)
    with pytest.raises(InsufficientData, match="0 closed bars, 2 needed; what is stored are bars of 1h"):
        run(store, NoFeed(), Timeframe.M1)
