"""A vendor that has adjusted its prices again is noticed; one that has corrected a day is not."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.bars.adjustments import ComparedBars, factor, to_compare, widened
from openbell.market.bars import Bars, closed_at
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.stores.samples import FILE, LIVE, run, whole

SPLIT = replace(LIVE, adjustment="split")
SPLIT_FILE = replace(FILE, adjustment="split")
DAYS = whole("AAPL", Timeframe.D1)


def scaled(bars: Bars, *by: float) -> Bars:
    return replace(bars, close=bars.close * np.array(by))


@pytest.mark.parametrize("by", [0.25, 0.5, 0.9975, 1.001, 10.0])
def test_the_same_factor_on_every_day_is_an_adjustment(by: float) -> None:
    stored = DAYS.tail(3)
    assert factor(ComparedBars(stored, SPLIT), scaled(stored, by, by, by)) == pytest.approx(by)


@pytest.mark.parametrize(("by", "found"), [(0.5, 0.5), (1.05, 1.05), (0.9975, None), (1.01, None)])
def test_another_vendor_s_file_differs_a_little_without_an_adjustment(by: float, found: float | None) -> None:
    stored = DAYS.tail(3)
    assert factor(ComparedBars(stored, SPLIT_FILE), scaled(stored, by, by, by)) == pytest.approx(found)


@pytest.mark.parametrize("by", [(1, 1, 1), (1, 1, 0.5), (1, 1.01, 1), (0.5, 0.52, 0.5), (1.0001, 1.0001, 1.0001)])
def test_corrections_are_no_adjustment(by: tuple[float, float, float]) -> None:
    stored = DAYS.tail(3)
    assert factor(ComparedBars(stored, SPLIT), scaled(stored, *by)) is None


def test_a_day_that_the_vendor_leaves_out_proves_nothing() -> None:
    stored = DAYS.tail(3)
    assert factor(ComparedBars(stored, SPLIT), scaled(stored, 0.5, 0.5, 0.5).tail(2)) is None
    assert factor(ComparedBars(stored.take(slice(0, 0)), SPLIT), stored) is None


def test_bars_of_the_same_source_on_both_sides_of_a_gap_are_compared(tmp_path: Path) -> None:
    first, last = int(DAYS.time[5]), int(DAYS.time[-5])
    gap = Span(first, last)
    with closing(ParquetStore(tmp_path)) as store:
        before, after = DAYS.take(slice(0, 5)), DAYS.take(slice(-5, None))
        store.write([before], SPLIT)
        (only,) = to_compare(store, DAYS.series, SPLIT, gap)
        assert (only.bars.time.tolist(), only.source) == (before.time[-3:].tolist(), SPLIT)
        assert to_compare(store, DAYS.series, LIVE, gap) == [], "raw prices are never adjusted"
        assert to_compare(store, DAYS.series, SPLIT, Span(first + 60 * 86400, first + 61 * 86400)) == []
        store.write([after], SPLIT_FILE)
        both = to_compare(store, DAYS.series, SPLIT, gap)
        assert [each.source for each in both] == [SPLIT, SPLIT_FILE]
        store.write([after], replace(SPLIT, feed="other"), replace=True)
        assert len(to_compare(store, DAYS.series, SPLIT, gap)) == 1, "another vendor adjusts by itself"
        store.write([after], SPLIT, replace=True)
        both = to_compare(store, DAYS.series, SPLIT, gap)
        assert [each.bars.time.tolist() for each in both] == [before.time[-3:].tolist(), after.time[:3].tolist()]
        asked = widened(gap, both)
        assert (asked.start, asked.end) == (int(before.time[-3]), closed_at(after.take(slice(0, 3))))
        btc = run("BTC/USD", first // 60 * 60, 5)
        store.write([btc], SPLIT)
        assert to_compare(store, btc.series, SPLIT, Span(first + 600, first + 1200)) == []
