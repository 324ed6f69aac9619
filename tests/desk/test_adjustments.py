"""A vendor that has adjusted its prices again is noticed; one that has corrected a day is not."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from openbell.desk.adjustments import factor, to_compare
from openbell.market.bars import Bars
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet import ParquetStore
from tests.stores.native_samples import whole
from tests.stores.samples import FILE, LIVE, run

SPLIT = replace(LIVE, adjustment="split")
DAYS = whole("AAPL", Timeframe.D1)


def scaled(bars: Bars, *by: float) -> Bars:
    return replace(bars, close=bars.close * np.array(by))


@pytest.mark.parametrize("by", [0.25, 0.5, 0.9975, 1.001, 10.0])
def test_the_same_factor_on_every_day_is_an_adjustment(by: float) -> None:
    stored = DAYS.tail(3)
    assert factor(stored, scaled(stored, by, by, by)) == pytest.approx(by)


@pytest.mark.parametrize("by", [(1, 1, 1), (1, 1, 0.5), (1, 1.01, 1), (0.5, 0.52, 0.5), (1.0001, 1.0001, 1.0001)])
def test_corrections_are_no_adjustment(by: tuple[float, float, float]) -> None:
    stored = DAYS.tail(3)
    assert factor(stored, scaled(stored, *by)) is None


def test_a_day_that_the_vendor_leaves_out_proves_nothing() -> None:
    stored = DAYS.tail(3)
    assert factor(stored, scaled(stored, 0.5, 0.5, 0.5).tail(2)) is None
    assert factor(stored.take(slice(0, 0)), stored) is None


def test_only_adjusted_days_of_the_same_source_just_before_are_compared(tmp_path: Path) -> None:
    end = int(DAYS.time[-1]) + 1
    with closing(ParquetStore(tmp_path)) as store:
        store.write([DAYS.take(slice(0, -1))], SPLIT)
        assert to_compare(store, DAYS.series, SPLIT, end).same_as(DAYS.take(slice(-4, -1)))
        assert len(to_compare(store, DAYS.series, LIVE, end)) == 0, "raw prices are never adjusted"
        assert len(to_compare(store, DAYS.series, SPLIT, end + 15 * 86400)) == 0
        assert len(to_compare(store, Series(DAYS.instrument), SPLIT, end)) == 0
        store.write([DAYS.tail(1)], replace(FILE, adjustment="split"))
        assert len(to_compare(store, DAYS.series, SPLIT, end)) == 0, "a file is not adjusted by a feed"
        btc = run("BTC/USD", end - 1, 5)
        store.write([btc], SPLIT)
        assert len(to_compare(store, btc.series, SPLIT, end + 600)) == 0
